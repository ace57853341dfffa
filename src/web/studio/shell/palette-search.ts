/** Commands of the palette for items that the service finds: data sources, settings, people, runs and sections of the documentation. */
import BookOpen from "icon:book-open";
import { useEffect, useState } from "react";
import { type DocsSearchResult, searchDocs } from "../docs/read-docs.js";
import { FindPaletteDataSources, FindPalettePeople, ListSettingKeys, ReadPublicSettings } from "../documents.js";
import { asApiError } from "../shared/api.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PaletteCommand } from "./commands.js";
import { PAGE_ICONS } from "./page-icons.js";
import type { Navigation } from "./studio-route.js";

const TYPING_PAUSE_MS = 200;
const DOCS_MIN_CHARACTERS = 3;
const MAX_DOCS_SHOWN = 6;

export interface PaletteContext {
  appId: number;
  isEditor: boolean;
  go: Navigation["go"];
  openDocs: (address: string) => void;
}

/**
 * Hook that returns a command for each data source, setting and member of the app that the person may read. The command of a member opens
 * the page of all people.
 */
export function usePaletteItems({ appId, isEditor, go }: PaletteContext): PaletteCommand[] {
  // Sends one request for each kind. If the person may not read one part of a request, the service would reject all of
  // it.
  const dataSources = useResource(createQueryOptions(FindPaletteDataSources, { appId })).value;
  const publicSettings = useResource(createQueryOptions(ReadPublicSettings, { appId })).value;
  const allSettings = useResource({ ...createQueryOptions(ListSettingKeys, { appId }), enabled: isEditor }).value;
  const people = useResource({ ...createQueryOptions(FindPalettePeople, { appId }), enabled: isEditor }).value;
  // Lists only the keys of settings. Studio never reads the values of protected settings.
  const keys = new Set(Object.keys((publicSettings?.settings ?? {}) as object));
  for (const { key } of allSettings?.keys ?? []) keys.add(key);
  return [
    ...(dataSources?.dataSources ?? []).map(({ id, name }) => ({
      name: `Table ${name}`,
      icon: PAGE_ICONS.data,
      run: () => go({ view: "data", item: String(id), query: {} }),
    })),
    ...[...keys].sort().map((key) => ({
      name: `Setting ${key}`,
      icon: PAGE_ICONS.settings,
      run: () => go({ view: "settings", item: null, query: { key } }),
    })),
    ...(people?.members ?? []).map(({ user: { firstName, lastName, email } }) => ({
      name: `Person ${[firstName, lastName].filter(Boolean).join(" ")} ${email}`.replaceAll(/\s+/g, " "),
      icon: PAGE_ICONS["app/people"],
      run: () => go({ view: "app", item: "people" }),
    })),
  ];
}

interface DocsCommands {
  commands: PaletteCommand[];
  /** Error message if the search in the documentation failed. */
  fault: string | null;
}

const NO_DOCS_COMMANDS: DocsCommands = { commands: [], fault: null };

/** Hook that returns commands which open the documentation sections that contain the typed words. */
export function useDocsCommands(searchText: string, { openDocs }: PaletteContext): DocsCommands {
  const [docsCommands, setDocsCommands] = useState(NO_DOCS_COMMANDS);
  const query = searchText.trim();
  useEffect(() => {
    setDocsCommands(NO_DOCS_COMMANDS);
    if (query.length < DOCS_MIN_CHARACTERS) return;
    let isOver = false;
    const timer = setTimeout(async () => {
      const toCommand = ({ name, path }: DocsSearchResult) => ({
        name: `Docs: ${name}`,
        icon: BookOpen,
        run: () => openDocs(path),
      });
      const outcome = await searchDocs(query).then(
        (hits) => ({ commands: hits.slice(0, MAX_DOCS_SHOWN).map(toCommand), fault: null }),
        (error: unknown) => ({ commands: [], fault: asApiError(error).message }),
      );
      if (!isOver) setDocsCommands(outcome);
    }, TYPING_PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [query, openDocs]);
  return docsCommands;
}

/** Returns a command that opens the run with the typed ID, such as "12", "#12" or "run 12". Returns no command for other texts. */
export function createOpenRunCommands(searchText: string, { go }: PaletteContext): PaletteCommand[] {
  const runId = /^(?:run\s+)?#?([1-9]\d{0,14})$/i.exec(searchText.trim())?.[1];
  if (runId === undefined) return [];
  const openRun = () => go({ view: "runs", item: runId, query: {} });
  return [{ name: `Open run ${runId}`, icon: PAGE_ICONS.runs, run: openRun }];
}
