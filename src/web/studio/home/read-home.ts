/** Reads the data of the page Home. shell/start.ts starts the first read before the scripts of the page are loaded. */
import type { Api } from "../shared/api.js";
import { ReadHome, ReadHomeOfEditors, type ReadHomeOfEditorsQuery, type ReadHomeQuery } from "./documents.js";

export const DAY_MS = 24 * 60 * 60 * 1000;

export interface HomeData extends ReadHomeQuery {
  /** Data that only editors may read, such as alerts; null for other people. */
  editorData: ReadHomeOfEditorsQuery | null;
}

async function requestHome(api: Api, appId: number, isEditor: boolean): Promise<HomeData> {
  const from = new Date(Date.now() - DAY_MS).toISOString();
  const { timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
  const [home, editorData] = await Promise.all([
    api.request(ReadHome, { appId, from, timezone }),
    isEditor ? api.request(ReadHomeOfEditors, { appId }) : null,
  ]);
  return { ...home, editorData };
}

let startedRead: { key: string; data: Promise<HomeData> } | null = null;

/** Starts to read the data of Home. The next call of `readHome` for the same app returns this data. */
export function startHome(api: Api, appId: number, isEditor: boolean): void {
  const data = requestHome(api, appId, isEditor);
  // The caller of `readHome` handles the error.
  data.catch(() => undefined);
  startedRead = { key: `${appId} ${isEditor}`, data };
}

export function readHome(api: Api, appId: number, isEditor: boolean): Promise<HomeData> {
  const startedData = startedRead?.key === `${appId} ${isEditor}` ? startedRead.data : null;
  startedRead = null;
  return startedData ?? requestHome(api, appId, isEditor);
}
