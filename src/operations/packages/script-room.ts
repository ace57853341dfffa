/** How much the scripts of one app's actions and versions may take, judged before a save has them. Keeps no script. */
import { LRUCache } from "lru-cache";
import { KEPT_SCRIPTS_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type KeptAsset, unresolved } from "../../rules/packages.js";
import type { KeptScripts } from "./kept-scripts.js";

/** Who has dependencies resolved, by one request. */
export interface Author {
  caller: Caller;
  appId: number;
}

/** What other processes let in is seen after this. */
const COUNTED_FOR_MS = 60_000;
/** More than what a package declares for TypeScript comes to, beside its script. */
const DECLARATIONS_BYTES = 2 * 1024 * 1024;

export type ScriptRoom = ReturnType<typeof createScriptRoom>;

export function createScriptRoom(scripts: Pick<KeptScripts, "bytesWith">) {
  /** No less than what an app's scripts take: far from the limit, which is where apps are, no save has them counted. */
  const atMost = new LRUCache<number, number>({ max: 10_000, ttl: COUNTED_FOR_MS, noUpdateTTL: true });
  /** Scripts that a request has brought so far: nothing uses them before its transaction. */
  const broughtBy = new WeakMap<Author, Set<string>>();

  async function take(author: Author, dependency: string, sha256: string, bytes: number): Promise<void> {
    const { appId } = author;
    const brought = broughtBy.get(author) ?? new Set();
    broughtBy.set(author, brought);
    if (brought.has(sha256)) return;
    const known = atMost.get(appId);
    let total = known === undefined ? Number.POSITIVE_INFINITY : known + bytes;
    if (total > KEPT_SCRIPTS_MAX_BYTES) total = await scripts.bytesWith(appId, [...brought], { sha256, bytes });
    if (total > KEPT_SCRIPTS_MAX_BYTES) {
      const most = `${KEPT_SCRIPTS_MAX_BYTES / 2 ** 20} MB`;
      throw unresolved(
        dependency,
        `does not fit: the scripts of one app's actions and their versions may take ${most}`,
      );
    }
    brought.add(sha256);
    atMost.set(appId, total);
  }

  return {
    /** A script that is about to be kept, `bytes` with what it declares. @throws DEPENDENCY_UNRESOLVED */
    take,

    /** One that is kept already, perhaps for others. @throws DEPENDENCY_UNRESOLVED */
    takeKept: (author: Author, { name, sha256, bytes = 0 }: KeptAsset): Promise<void> =>
      take(author, name, sha256, bytes + DECLARATIONS_BYTES),
  };
}
