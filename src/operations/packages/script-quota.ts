/** Limits the total size of the scripts of one app's actions and versions. A save is checked before it stores scripts. */
import { LRUCache } from "lru-cache";
import { KEPT_SCRIPTS_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type KeptAsset, unresolvedError } from "../../rules/packages.js";
import type { StoredScripts } from "./kept-scripts.js";

/** Identifies the request that adds scripts. */
export interface ScriptAuthor {
  caller: Caller;
  appId: number;
}

/** Time for which a counted size is used. Scripts that other processes store meanwhile are counted after it. */
const COUNTED_FOR_MS = 60_000;
/** Assumed size of a script's declarations: larger than those of any package. */
const DECLARATIONS_BYTES = 2 * 1024 * 1024;

export type ScriptQuota = ReturnType<typeof createScriptQuota>;

export function createScriptQuota(scripts: Pick<StoredScripts, "bytesWith">) {
  /** Upper bound of the bytes of each app's scripts. While it is below the limit, the exact size is not computed. */
  const atMost = new LRUCache<number, number>({ max: 10_000, ttl: COUNTED_FOR_MS, noUpdateTTL: true });
  /** Hashes of scripts that a request has stored and that no action uses yet. */
  const broughtBy = new WeakMap<ScriptAuthor, Set<string>>();

  async function reserveBytes(author: ScriptAuthor, dependency: string, sha256: string, bytes: number): Promise<void> {
    const { appId } = author;
    const broughtScripts = broughtBy.get(author) ?? new Set();
    broughtBy.set(author, broughtScripts);
    if (broughtScripts.has(sha256)) return;
    const knownBytes = atMost.get(appId);
    let total = knownBytes === undefined ? Number.POSITIVE_INFINITY : knownBytes + bytes;
    if (total > KEPT_SCRIPTS_MAX_BYTES) total = await scripts.bytesWith(appId, [...broughtScripts], { sha256, bytes });
    if (total > KEPT_SCRIPTS_MAX_BYTES) {
      const sizeText = `${KEPT_SCRIPTS_MAX_BYTES / 2 ** 20} MB`;
      throw unresolvedError(
        dependency,
        `does not fit: the scripts of one app's actions and their versions may take ${sizeText}`,
      );
    }
    broughtScripts.add(sha256);
    atMost.set(appId, total);
  }

  return {
    /** Counts a script before it is stored; `bytes` includes its declarations. @throws DEPENDENCY_UNRESOLVED */
    take: reserveBytes,

    /** Counts a script that is already stored, maybe by another app. @throws ActionError DEPENDENCY_UNRESOLVED */
    takeKept: (author: ScriptAuthor, { name, sha256, bytes = 0 }: KeptAsset): Promise<void> =>
      reserveBytes(author, name, sha256, bytes + DECLARATIONS_BYTES),
  };
}
