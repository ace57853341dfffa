/** Limits the size of all scripts of one app's actions and versions, before a save stores them. Stores no script. */
import { LRUCache } from "lru-cache";
import { KEPT_SCRIPTS_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type KeptAsset, unresolved } from "../../rules/packages.js";
import type { StoredScripts } from "./kept-scripts.js";

/** Requester of dependencies, one per request. */
export interface ScriptAuthor {
  caller: Caller;
  appId: number;
}

/** Time after which scripts that other processes have stored are counted. */
const COUNTED_FOR_MS = 60_000;
/** Assumed size of declarations: more than those of any package. */
const DECLARATIONS_BYTES = 2 * 1024 * 1024;

export type ScriptQuota = ReturnType<typeof createScriptQuota>;

export function createScriptQuota(scripts: Pick<StoredScripts, "bytesWith">) {
  /** Upper estimate of the size of an app's scripts. If it is far below the limit, as usual, the scripts are not counted. */
  const atMost = new LRUCache<number, number>({ max: 10_000, ttl: COUNTED_FOR_MS, noUpdateTTL: true });
  /** Scripts that a request has stored so far. No action uses them before its transaction. */
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
      throw unresolved(
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

    /** Counts a script that is already stored, perhaps for other apps. @throws ActionError DEPENDENCY_UNRESOLVED */
    takeKept: (author: ScriptAuthor, { name, sha256, bytes = 0 }: KeptAsset): Promise<void> =>
      reserveBytes(author, name, sha256, bytes + DECLARATIONS_BYTES),
  };
}
