/** The source of the packages that this service serves, read once each. Knows no action; what has no back end has no source. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { ActionError } from "../errors.js";
import type { Catalogue } from "../rules/packages.js";

/** dist/web, seen from dist/src/operations. */
const BUILT = fileURLToPath(new URL("../../web", import.meta.url));

export interface PackageSource {
  name: string;
  source: string;
}

export function createPackages(catalogue: Catalogue, root: string = BUILT) {
  const known = new Map<string, Promise<PackageSource>>();

  async function read(name: string): Promise<PackageSource> {
    const path = catalogue.get(name)?.path;
    if (path === undefined) {
      throw new ActionError("DEPENDENCIES_INVALID", `the dependency ${name} is not loaded by server runs`);
    }
    try {
      return { name: `${name}.js`, source: await readFile(root + path, "utf8") };
    } catch {
      throw new ActionError("DEPENDENCIES_INVALID", `the package ${name} has no back end in this service yet`);
    }
  }

  return {
    /** @throws DEPENDENCIES_INVALID naming the package that cannot be loaded */
    async sources(dependencies: readonly string[]): Promise<PackageSource[]> {
      return Promise.all(
        [...new Set(dependencies)].map((name) => {
          const source = known.get(name) ?? read(name);
          known.set(name, source);
          return source;
        }),
      );
    },
  };
}
