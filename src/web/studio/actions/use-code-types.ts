/**
 * Hook that loads the data with which the editor checks the types of an action's code. The data are the keys of the app's settings, the
 * payloads of past runs, and the type declarations of the client library and of npm packages.
 */
import { useEffect, useMemo, useState } from "react";
import packages from "../../../rules/packages.json";
import { resolveServiceUrl } from "../../service-address.js";
import { ListSettingKeys, ReadLoggedPayloads, ReadTypeDeclarations } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import {
  type ActionTypeDeclarations,
  createActionTypeDeclarations,
  type InstalledDependency,
  replaceUnknownByAny,
} from "./code-types.js";
import type { ActionDraft } from "./draft.js";
import { whenCodeEditorReady } from "./editor-ready.js";

const MAX_PAYLOADS_READ = 10;

let libraryTypes: Promise<string> | undefined;

/** Reads the type declarations of the client library once, after the editor has loaded. Returns "" if they cannot be read. */
function readLibraryTypes(): Promise<string> {
  libraryTypes ??= whenCodeEditorReady
    .then(() => fetch(resolveServiceUrl("/client/svc.d.ts")))
    .then(async (answer) => (answer.ok ? replaceUnknownByAny(await answer.text()) : ""))
    .catch(() => "");
  return libraryTypes;
}

type Declarations = ReadonlyMap<string, readonly string[]>;

/**
 * Type declarations of npm packages, by app ID and integrity hash of the package's script. They are not read again until Studio reloads,
 * because the hash identifies the script.
 */
const declarationCache = new Map<string, Promise<readonly string[] | null>>();

function readDeclarations(api: ApiClient, appId: number, integrity: string): Promise<readonly string[] | null> {
  const key = `${appId} ${integrity}`;
  const cachedRead = declarationCache.get(key);
  if (cachedRead) return cachedRead;
  const newRead = api.request(ReadTypeDeclarations, { appId, integrity }).then(
    ({ files }) => files ?? null,
    () => {
      // Removes a failed read from the cache, so that the next call reads the declarations again.
      declarationCache.delete(key);
      return null;
    },
  );
  declarationCache.set(key, newRead);
  return newRead;
}

/** Hook that returns the type declarations of the installed npm packages, by the integrity hash of each package's script. */
function useDeclarations(api: ApiClient, appId: number, installed: readonly InstalledDependency[]): Declarations {
  const [declarations, setDeclarations] = useState<Declarations>(new Map());
  const integritiesJson = JSON.stringify(
    installed.flatMap(({ version, integrity }) => (version && integrity ? integrity : [])),
  );
  useEffect(() => {
    let isOver = false;
    const reads = (JSON.parse(integritiesJson) as string[]).map(async (integrity) => {
      const files = await readDeclarations(api, appId, integrity);
      return files === null ? [] : [[integrity, files] as const];
    });
    void Promise.all(reads).then((foundDeclarations) => isOver || setDeclarations(new Map(foundDeclarations.flat())));
    return () => {
      isOver = true;
    };
  }, [api, appId, integritiesJson]);
  return declarations;
}

interface TypeCheckData {
  libraryDeclarations: string;
  settingKeys: string[];
  pastPayloads: unknown[];
}

const EMPTY_TYPE_CHECK_DATA: TypeCheckData = { libraryDeclarations: "", settingKeys: [], pastPayloads: [] };

/**
 * Type declarations for the editor. `libraryDeclarations` has those of the client library; the other fields have those
 * of the action.
 */
export interface EditorTypeDeclarations extends ActionTypeDeclarations {
  libraryDeclarations: string;
}

/**
 * Hook that returns the types with which the editor checks an action's code.
 * @param versionIds IDs of the draft and of the live version, whose past payloads are read; empty for a new action
 * @param installedDependencies dependencies with the versions that the service chose at the last save
 */
export function useEditorTypeDeclarations(
  api: ApiClient,
  appId: number,
  versionIds: readonly number[],
  draft: ActionDraft | null,
  installedDependencies: readonly InstalledDependency[],
): EditorTypeDeclarations {
  const [typeCheckData, setTypeCheckData] = useState(EMPTY_TYPE_CHECK_DATA);
  const versionIdsJson = JSON.stringify(versionIds);
  useEffect(() => {
    let isOver = false;
    const readTypeCheckData = async (): Promise<TypeCheckData> => {
      const payloadReads = (JSON.parse(versionIdsJson) as number[]).map((id) =>
        api.request(ReadLoggedPayloads, { appId, options: { id, limit: MAX_PAYLOADS_READ } }),
      );
      const [text, { keys }, ...pages] = await Promise.all([
        readLibraryTypes(),
        api.request(ListSettingKeys, { appId }),
        ...payloadReads,
      ]);
      return {
        libraryDeclarations: text,
        settingKeys: keys.map(({ key }) => key),
        pastPayloads: pages.flatMap(({ page }) => page.logs.map(({ payload }) => payload)),
      };
    };
    // Ignores a failure: the editor then checks the code without these types.
    void readTypeCheckData().then(
      (data) => isOver || setTypeCheckData(data),
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [api, appId, versionIdsJson]);
  const declarations = useDeclarations(api, appId, installedDependencies);
  const environment = draft?.environment ?? "server";
  const dependenciesJson = JSON.stringify(draft?.dependencies ?? []);
  return useMemo(() => {
    const { libraryDeclarations, ...actionTypeData } = typeCheckData;
    const dependencies = JSON.parse(dependenciesJson) as string[];
    return {
      libraryDeclarations,
      ...createActionTypeDeclarations({
        ...actionTypeData,
        packages,
        environment,
        dependencies,
        installedDependencies,
        declarations,
      }),
    };
  }, [typeCheckData, environment, dependenciesJson, installedDependencies, declarations]);
}
