/**
 * Limits the total size of the scripts that one app's actions and versions use. Each script is checked before a save
 * stores it.
 */
import { boundedCache } from "../../engine/bounded-cache.js";
import { KEPT_SCRIPTS_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type StoredScriptAsset, unresolvedError } from "../../rules/packages.js";
import type { StoredScripts } from "./kept-scripts.js";

/** The request that adds scripts. One object stands for one request. */
export interface ScriptAuthor {
  caller: Caller;
  appId: number;
}

/**
 * Time for which a computed size is used. Scripts that other processes store in this time are counted only afterwards.
 */
const COUNTED_FOR_MS = 60_000;
/** Assumed size of a script's TypeScript declarations. The declarations of a package are never larger. */
const DECLARATIONS_BYTES = 2 * 1024 * 1024;

export type ScriptQuota = ReturnType<typeof createScriptQuota>;

export function createScriptQuota(scripts: Pick<StoredScripts, "bytesWith">) {
  /**
   * Upper bound of the total size of each app's scripts. While the bound is below the limit, the exact size is not
   * computed.
   */
  const upperBounds = boundedCache<number, number>(10_000, { ttl: COUNTED_FOR_MS, noUpdateTTL: true });
  /** Hashes of scripts that a request has counted, and that no action uses yet. */
  const countedBy = new WeakMap<ScriptAuthor, Set<string>>();

  async function reserveBytes(author: ScriptAuthor, dependency: string, sha256: string, bytes: number): Promise<void> {
    const { appId } = author;
    const countedScripts = countedBy.get(author) ?? new Set();
    countedBy.set(author, countedScripts);
    if (countedScripts.has(sha256)) return;
    const knownBytes = upperBounds.get(appId);
    let total = knownBytes === undefined ? Number.POSITIVE_INFINITY : knownBytes + bytes;
    if (total > KEPT_SCRIPTS_MAX_BYTES) total = await scripts.bytesWith(appId, [...countedScripts], { sha256, bytes });
    if (total > KEPT_SCRIPTS_MAX_BYTES) {
      const sizeText = `${KEPT_SCRIPTS_MAX_BYTES / 2 ** 20} MB`;
      throw unresolvedError(
        dependency,
        `is too large: the scripts of one app's actions and versions can use at most ${sizeText}`,
      );
    }
    countedScripts.add(sha256);
    upperBounds.set(appId, total);
  }

  return {
    /**
     * Counts a script that will be stored. @param bytes size including its TypeScript declarations @throws
     * DEPENDENCY_UNRESOLVED
     */
    countScript: reserveBytes,

    /**
     * Counts a script that is already stored, for example because another app uses it. @throws ActionError
     * DEPENDENCY_UNRESOLVED
     */
    countStoredScript: (author: ScriptAuthor, { name, sha256, bytes = 0 }: StoredScriptAsset): Promise<void> =>
      reserveBytes(author, name, sha256, bytes + DECLARATIONS_BYTES),
  };
}
