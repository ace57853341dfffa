/** Reads the data of Studio's page Home. shell/start.ts starts the first read before the page's scripts are loaded. */
import type { ApiClient } from "../shared/api.js";
import { ReadEditorHomePage, type ReadEditorHomePageQuery, ReadHomePage, type ReadHomePageQuery } from "./documents.js";

export const DAY_MS = 24 * 60 * 60 * 1000;

export interface HomeData extends ReadHomePageQuery {
  /** Data that only editors may read, such as alerts; null for other people. */
  editorData: ReadEditorHomePageQuery | null;
}

async function requestHomeData(api: ApiClient, appId: number, isEditor: boolean): Promise<HomeData> {
  const from = new Date(Date.now() - DAY_MS).toISOString();
  const { timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
  const [home, editorData] = await Promise.all([
    api.request(ReadHomePage, { appId, from, timezone }),
    isEditor ? api.request(ReadEditorHomePage, { appId }) : null,
  ]);
  return { ...home, editorData };
}

let prefetch: { key: string; data: Promise<HomeData> } | null = null;

/**
 * Requests the data of Home early. If the next call of `readHomeData` has the same `appId` and `isEditor`, it returns the response to this
 * request.
 */
export function prefetchHomeData(api: ApiClient, appId: number, isEditor: boolean): void {
  const data = requestHomeData(api, appId, isEditor);
  // Prevents an unhandled rejection. The caller of `readHomeData` handles the error.
  data.catch(() => undefined);
  prefetch = { key: `${appId} ${isEditor}`, data };
}

export function readHomeData(api: ApiClient, appId: number, isEditor: boolean): Promise<HomeData> {
  const prefetchedData = prefetch?.key === `${appId} ${isEditor}` ? prefetch.data : null;
  prefetch = null;
  return prefetchedData ?? requestHomeData(api, appId, isEditor);
}
