/** What the editor can say of an action's code: its app's settings, what past runs were given, and the packages. Draws nothing. */
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

/** Returns the declarations of the client library, read once after the editor is loaded. "" if the service does not return them. */
function readTypes(): Promise<string> {
  types ??= editorReady
    .then(() => fetch(serviceAddress("/client/svc.d.ts")))
    .then(async (answer) => (answer.ok ? loosened(await answer.text()) : ""))
    .catch(() => "");
  return types;
}

type Declarations = ReadonlyMap<string, readonly string[]>;

/** By app and integrity. A script's never change: what was read stays read. */
const read = new Map<string, Promise<readonly string[] | null>>();

function readDeclarations(api: Api, appId: number, integrity: string): Promise<readonly string[] | null> {
  const key = `${appId} ${integrity}`;
  const known = read.get(key);
  if (known) return known;
  const asked = api.ask(ReadDeclarations, { appId, integrity }).then(
    ({ files }) => files ?? null,
    () => {
      // It may be had the next time.
      read.delete(key);
      return null;
    },
  );
  read.set(key, asked);
  return asked;
}

/** What npm's packages declare, of those that declare anything. */
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

/** What is known for the editor: of the client library, and of this action. */
export interface CodeTypes extends ActionTypes {
  library: string;
}

/**
 * @param ids the action's copies; none of a new one
 * @param installed what its dependencies became when it was saved
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
    // Without them one writes as in any editor.
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
