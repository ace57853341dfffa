/** Hook that loads the types for an action's code: keys of the app's settings, payloads of past runs, and declarations of packages. */
import { useEffect, useMemo, useState } from "react";
import packages from "../../../rules/packages.json";
import { serviceAddress } from "../../service-address.js";
import { LearnPayloads, ListSettingKeys, ReadDeclarations } from "../documents.js";
import type { Api } from "../shared/api.js";
import { type ActionTypes, actionTypes, type Installed, loosened } from "./code-types.js";
import type { Draft } from "./draft.js";
import { editorReady } from "./editor-ready.js";

const PAYLOADS_LEARNED = 10;

let types: Promise<string> | undefined;

/** Reads the declarations of the client library, once, after the editor is loaded. Returns "" if that fails. */
function readTypes(): Promise<string> {
  types ??= editorReady
    .then(() => fetch(serviceAddress("/client/svc.d.ts")))
    .then(async (answer) => (answer.ok ? loosened(await answer.text()) : ""))
    .catch(() => "");
  return types;
}

type Declarations = ReadonlyMap<string, readonly string[]>;

/** Cache of declarations by app and integrity. The declarations of a script never change. */
const read = new Map<string, Promise<readonly string[] | null>>();

function readDeclarations(api: Api, appId: number, integrity: string): Promise<readonly string[] | null> {
  const key = `${appId} ${integrity}`;
  const known = read.get(key);
  if (known) return known;
  const asked = api.ask(ReadDeclarations, { appId, integrity }).then(
    ({ files }) => files ?? null,
    () => {
      // A failed read is removed from the cache, so that it is repeated later.
      read.delete(key);
      return null;
    },
  );
  read.set(key, asked);
  return asked;
}

/** Reads the type declarations of the installed npm packages that have some. */
function useDeclarations(api: Api, appId: number, installed: readonly Installed[]): Declarations {
  const [declarations, setDeclarations] = useState<Declarations>(new Map());
  const wanted = JSON.stringify(installed.flatMap(({ version, integrity }) => (version && integrity ? integrity : [])));
  useEffect(() => {
    let isOver = false;
    const all = (JSON.parse(wanted) as string[]).map(async (integrity) => {
      const files = await readDeclarations(api, appId, integrity);
      return files === null ? [] : [[integrity, files] as const];
    });
    void Promise.all(all).then((found) => isOver || setDeclarations(new Map(found.flat())));
    return () => {
      isOver = true;
    };
  }, [api, appId, wanted]);
  return declarations;
}

interface Learned {
  types: string;
  settings: string[];
  payloads: unknown[];
}

const NOTHING: Learned = { types: "", settings: [], payloads: [] };

/** Types for the editor: those of the client library, and those of the action. */
export interface CodeTypes extends ActionTypes {
  library: string;
}

/**
 * @param ids IDs of the draft and the live version; none for a new action
 * @param installed dependencies as resolved when the action was saved
 */
export function useCodeTypes(
  api: Api,
  appId: number,
  ids: readonly number[],
  draft: Draft | null,
  installed: readonly Installed[],
): CodeTypes {
  const [learned, setLearned] = useState(NOTHING);
  const copies = JSON.stringify(ids);
  useEffect(() => {
    let isOver = false;
    const learn = async (): Promise<Learned> => {
      const asked = (JSON.parse(copies) as number[]).map((id) =>
        api.ask(LearnPayloads, { appId, options: { id, limit: PAYLOADS_LEARNED } }),
      );
      const [text, { keys }, ...pages] = await Promise.all([
        readTypes(),
        api.ask(ListSettingKeys, { appId }),
        ...asked,
      ]);
      return {
        types: text,
        settings: keys.map(({ key }) => key),
        payloads: pages.flatMap(({ page }) => page.logs.map(({ payload }) => payload)),
      };
    };
    // Without these types, the editor works as for any JavaScript.
    void learn().then(
      (all) => isOver || setLearned(all),
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [api, appId, copies]);
  const declarations = useDeclarations(api, appId, installed);
  const environment = draft?.environment ?? "server";
  const listed = JSON.stringify(draft?.dependencies ?? []);
  return useMemo(() => {
    const { types: library, ...known } = learned;
    const dependencies = JSON.parse(listed) as string[];
    return { library, ...actionTypes({ ...known, packages, environment, dependencies, installed, declarations }) };
  }, [learned, environment, listed, installed, declarations]);
}
