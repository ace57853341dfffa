/** Functions on assets: the records in an action that refer to the scripts of its dependencies. */
import type { StoredAsset } from "../../data/action-types.js";
import { describeValue } from "../../rules/describe-value.js";
import { createDependencyError, isStoredScript } from "../../rules/packages.js";

/** Returns a JavaScript expression for the value of a global variable. */
export const createGlobalExpression = (name: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(name) ? name : `globalThis[${JSON.stringify(name)}]`;

export const findStoredAsset = (dependency: string, assets: readonly StoredAsset[]): StoredAsset | undefined =>
  assets.find((asset) => asset.name === dependency && isStoredScript(asset));

/** Rejects two packages with the same global variable, unless the action already used both. @throws DEPENDENCY_UNRESOLVED */
export function requireDifferentGlobals(assets: Map<string, StoredAsset>, assetsBefore: readonly StoredAsset[]): void {
  const namesBefore = new Set(assetsBefore.map(({ name }) => name));
  const byGlobal = new Map<string, string>();
  for (const [dependency, { global }] of assets) {
    if (global === undefined) continue;
    const otherName = byGlobal.get(global);
    byGlobal.set(global, dependency);
    if (otherName === undefined || (namesBefore.has(otherName) && namesBefore.has(dependency))) continue;
    const [addedDependency, presentDependency] = namesBefore.has(dependency)
      ? [otherName, dependency]
      : [dependency, otherName];
    assets.delete(addedDependency);
    const reason = `has the same global name ${global} as ${describeValue(presentDependency)}; list only one of them`;
    throw createDependencyError(addedDependency, reason);
  }
}
