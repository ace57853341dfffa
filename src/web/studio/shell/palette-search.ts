/** Commands of the palette that need the service: data sources, settings, people, runs and the documentation. */
import { useEffect, useState } from "react";
import { searchDocs } from "../docs/read-docs.js";
import { FindPalettePeople, FindPaletteTables, ListSettingKeys, ReadPublicSettings } from "../documents.js";
import { queryOf, useResource } from "../shared/use-resource.js";
import type { Command } from "./commands.js";
import type { Navigation } from "./place.js";

const TYPED_MS = 200;
const DOCS_MIN_CHARACTERS = 3;
const DOCS_SHOWN = 6;

export interface SearchContext {
  appId: number;
  isEditor: boolean;
  go: Navigation["go"];
  openDocs: (address: string) => void;
}

/** Tables, settings and people of the app. A kind that is not read yet, or may not be read, is left out. */
export function useItems({ appId, isEditor, go }: SearchContext): Command[] {
  // Sends separate requests, because the service rejects a whole request if the role may not read a part of it.
  const tables = useResource(queryOf(FindPaletteTables, { appId })).value;
  const readable = useResource(queryOf(ReadPublicSettings, { appId })).value;
  const protectedOnes = useResource({ ...queryOf(ListSettingKeys, { appId }), enabled: isEditor }).value;
  const people = useResource({ ...queryOf(FindPalettePeople, { appId }), enabled: isEditor }).value;
  // Only keys are listed. The values of protected settings are never read.
  const keys = new Set(Object.keys((readable?.settings ?? {}) as object));
  for (const { key } of protectedOnes?.keys ?? []) keys.add(key);
  return [
    ...(tables?.dataSources ?? []).map(({ id, name }) => ({
      name: `Table ${name}`,
      run: () => go({ view: "data", item: String(id), query: {} }),
    })),
    ...[...keys].sort().map((key) => ({
      name: `Setting ${key}`,
      run: () => go({ view: "settings", item: null, query: { key } }),
    })),
    ...(people?.members ?? []).map(({ user: { firstName, lastName, email } }) => ({
      name: `Person ${[firstName, lastName].filter(Boolean).join(" ")} ${email}`.replaceAll(/\s+/g, " "),
      run: () => go({ view: "app", item: "people" }),
    })),
  ];
}

/** Documentation sections that contain the typed words. */
export function useDocsHits(typed: string, { openDocs }: SearchContext): Command[] {
  const [hits, setHits] = useState<Command[]>([]);
  const query = typed.trim();
  useEffect(() => {
    setHits([]);
    if (query.length < DOCS_MIN_CHARACTERS) return;
    let isOver = false;
    const timer = setTimeout(async () => {
      const docPages = await searchDocs(query).catch(() => []);
      const commands = docPages.slice(0, DOCS_SHOWN).map(({ name, path }) => ({
        name: `Docs: ${name}`,
        run: () => openDocs(path),
      }));
      if (!isOver) setHits(commands);
    }, TYPED_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [query, openDocs]);
  return hits;
}

/** Finds the run with the typed number. */
export function runCommands(typed: string, { go }: SearchContext): Command[] {
  const number = /^(?:run\s+)?#?([1-9]\d{0,14})$/i.exec(typed.trim())?.[1];
  if (number === undefined) return [];
  return [{ name: `Open run ${number}`, run: () => go({ view: "runs", item: number, query: {} }) }];
}
