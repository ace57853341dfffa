/**
 * Generates the TypeScript declarations of an app (svc.d.ts) for code editors and compilers. The declarations describe
 * the app's definitions and the packages that its drafts import.
 */
import { buildProjectTypes, collectPackageHashes } from "../../rules/project-types.js";
import type { StoredScripts } from "../packages/kept-scripts.js";
import type { Manifests } from "./manifests.js";

/** Returns the text of svc.d.ts for an app. @param reserve reserves memory for the manifest @throws the errors of `Manifests.get` */
export type GenerateAppDeclarations = (appId: number, reserve?: Parameters<Manifests["get"]>[1]) => Promise<string>;

export function createAppDeclarationsGenerator(options: {
  manifests: Pick<Manifests, "get">;
  scripts: Pick<StoredScripts, "readDraftDeclarations">;
  readClientDeclarations: () => Promise<string>;
}): GenerateAppDeclarations {
  const { manifests, scripts, readClientDeclarations: readClient } = options;
  return async (appId, reserve) => {
    const { manifest } = await manifests.get(appId, reserve);
    const declarations = await scripts.readDraftDeclarations(appId);
    const packages = [...collectPackageHashes(manifest.actions ?? [])].map(
      ([name, integrity]): [string, readonly string[] | null] => [name, declarations.get(integrity ?? "") ?? null],
    );
    return buildProjectTypes(manifest, {}, new Map(packages), await readClient());
  };
}
