/** Builds an app's types for editors and compilers, from its definitions and the declarations of the packages that its drafts import. */
import { importedPackages, projectTypes } from "../../rules/project-types.js";
import type { StoredScripts } from "../packages/kept-scripts.js";
import type { Manifests } from "./manifests.js";

export type AppTypes = ReturnType<typeof createAppTypes>;

/** @param readClient returns the declarations of the client library */
export function createAppTypes(options: {
  manifests: Pick<Manifests, "get">;
  scripts: Pick<StoredScripts, "draftDeclarations">;
  readClient: () => Promise<string>;
}) {
  const { manifests, scripts, readClient } = options;
  /** Returns the text of svc.d.ts. @throws errors of `Manifests.get` */
  return async (appId: number, reserve?: Parameters<Manifests["get"]>[1]): Promise<string> => {
    const { manifest } = await manifests.get(appId, reserve);
    const declarations = await scripts.draftDeclarations(appId);
    const packages = [...importedPackages(manifest.actions ?? [])].map(
      ([name, integrity]): [string, readonly string[] | null] => [name, declarations.get(integrity ?? "") ?? null],
    );
    return projectTypes(manifest, {}, new Map(packages), await readClient());
  };
}
