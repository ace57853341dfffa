/**
 * Limits the total bytes of the scripts that one app's actions and their versions use. A save checks each script before it stores the
 * script.
 */

import type { SqlClient } from "../../data/database.js";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import type { ActionError } from "../../errors.js";
import { STORED_SCRIPTS_PER_APP_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { createDependencyError, type StoredScriptAsset } from "../../rules/packages.js";
import type { StoredScripts } from "./kept-scripts.js";

/** One request that adds scripts. The object's identity matters: two objects with the same content are different requests. */
export interface ScriptQuotaRequest {
  caller: Caller;
  appId: number;
}

/** Milliseconds for which the total bytes of an app's scripts are cached. In this time, scripts that other processes store do not count. */
const SIZE_CACHE_MS = 60_000;
/** Assumed bytes of a stored script's TypeScript declarations, because their exact size is not known here. */
const ASSUMED_DECLARATION_BYTES = 2 * 1024 * 1024;

function createQuotaError(dependency: string): ActionError {
  const sizeText = `${STORED_SCRIPTS_PER_APP_MAX_BYTES / 2 ** 20} MB`;
  return createDependencyError(
    dependency,
    `is too large: the scripts of one app's actions and versions can use at most ${sizeText}`,
  );
}

export class ScriptQuota {
  /** Upper bound of the total script bytes, by app. If it is unknown or exceeds the limit, the exact total is computed. */
  private readonly upperBoundsByApp = createBoundedCache<number, number>(10_000, {
    ttl: SIZE_CACHE_MS,
    noUpdateTTL: true,
  });
  /** Hashes of the scripts that a request has already counted. */
  private readonly countedScriptsByAuthor = new WeakMap<ScriptQuotaRequest, Set<string>>();

  constructor(private readonly scripts: Pick<StoredScripts, "sumScriptBytes">) {}

  /**
   * Counts a script that will be stored. `bytes` includes the script's TypeScript declarations.
   * @throws DEPENDENCY_UNRESOLVED if the app's scripts would exceed the limit
   */
  async countScript(author: ScriptQuotaRequest, dependency: string, sha256: string, bytes: number): Promise<void> {
    const { appId } = author;
    const countedScripts = this.countedScriptsByAuthor.get(author) ?? new Set();
    this.countedScriptsByAuthor.set(author, countedScripts);
    if (countedScripts.has(sha256)) return;
    const knownBytes = this.upperBoundsByApp.get(appId);
    let total = knownBytes === undefined ? Number.POSITIVE_INFINITY : knownBytes + bytes;
    if (total > STORED_SCRIPTS_PER_APP_MAX_BYTES)
      total = await this.scripts.sumScriptBytes(appId, [...countedScripts], { sha256, bytes });
    if (total > STORED_SCRIPTS_PER_APP_MAX_BYTES) throw createQuotaError(dependency);
    countedScripts.add(sha256);
    this.upperBoundsByApp.set(appId, total);
  }

  /**
   * Checks the exact total in the transaction of a save. Call this method after the transaction has locked the app, because other saves can
   * add scripts until then. `added` are the scripts that the save adds.
   * @throws ActionError DEPENDENCY_UNRESOLVED if the app's scripts exceed the limit
   */
  async checkSavedScripts(executor: SqlClient, appId: number, added: readonly StoredScriptAsset[]): Promise<void> {
    const script = added.at(-1);
    if (!script) return;
    const { name, sha256, bytes = 0 } = script;
    const total = await this.scripts.sumScriptBytes(appId, [], { sha256, bytes }, executor);
    if (total > STORED_SCRIPTS_PER_APP_MAX_BYTES) throw createQuotaError(name);
  }

  /**
   * Counts a script that is already stored, for example because another app uses it.
   * @throws ActionError DEPENDENCY_UNRESOLVED if the app's scripts would exceed the limit
   */
  countStoredScript(author: ScriptQuotaRequest, { name, sha256, bytes = 0 }: StoredScriptAsset): Promise<void> {
    return this.countScript(author, name, sha256, bytes + ASSUMED_DECLARATION_BYTES);
  }
}
