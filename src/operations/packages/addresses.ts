/** Fetches scripts at external URLs once, over https and from public hosts only. A slow URL of one app does not delay other apps. */
import { LRUCache } from "lru-cache";
import type { StoredAsset } from "../../data/action-types.js";
import {
  type CheckedConnections,
  NotConnectedError,
  RedirectsError,
  TooLargeError,
} from "../../engine/checked-connections.js";
import { unresolvedError } from "../../rules/packages.js";
import type { IntakeLimiter } from "../records/intake.js";
import { assetOf, type StoredScripts, sha256Of } from "./kept-scripts.js";
import { AWAY_RETRY_SECONDS } from "./registry.js";
import type { ScriptAuthor, ScriptQuota } from "./script-quota.js";

export const SCRIPT_MAX_BYTES = 5 * 1024 * 1024;
const ANSWER_LIMIT_MS = 8_000;
/** Time limit for checking the URL of a script that the action already has. */
export const LOOK_LIMIT_MS = 4_000;
/** Milliseconds for which saves no longer wait for a URL that did not respond, if the action has its script. */
const SILENT_MS = 60_000;

function checkAddress(url: URL): void {
  if (url.protocol !== "https:") throw new NotConnectedError("it redirects to a URL without TLS", true);
}

/**
 * @returns null if the host does not answer
 * @throws DEPENDENCY_UNRESOLVED for an answer that is not a script; 503 if the host reports a temporary failure
 */
export async function fetchScript(
  connections: CheckedConnections,
  dependency: string,
  url: string,
  limitMs: number,
): Promise<Buffer | null> {
  const headers = { accept: "text/javascript, application/javascript, */*;q=0.5" };
  const addressError = (reason: string, retryAfter?: number) =>
    unresolvedError(dependency, `cannot be fetched: ${reason}`, retryAfter);
  const downloadOptions = { headers, maxBytes: SCRIPT_MAX_BYTES, limitMs, judge: checkAddress };
  const answer = await connections.download(new URL(url), downloadOptions).catch((error: Error) => {
    if (error instanceof NotConnectedError && error.forbidden) throw addressError(error.message);
    if (error instanceof NotConnectedError || error.name === "TimeoutError") return null;
    if (error instanceof TooLargeError || error instanceof RedirectsError) throw addressError(error.message);
    throw addressError("its host ended the response early", AWAY_RETRY_SECONDS);
  });
  if (answer === null) return null;
  const { status, body } = answer;
  if (status >= 500 || status === 429) throw addressError(`its host answers ${status}`, AWAY_RETRY_SECONDS);
  if (status !== 200) throw addressError(`its host answers ${status}`);
  return body;
}

export type Addresses = ReturnType<typeof createAddresses>;

export function createAddresses(options: {
  connections: CheckedConnections;
  scripts: StoredScripts;
  room: ScriptQuota;
  intake: IntakeLimiter;
}) {
  const { connections, scripts, room, intake } = options;
  /** URLs that did not answer in this request: an import may list one a hundred times. */
  const unansweredUrls = new WeakMap<ScriptAuthor, Set<string>>();
  /** Apps with a URL that did not answer although its script is stored: affects only the duration of a save. */
  const silentHosts = new LRUCache<string, true>({ max: 1_000, ttl: SILENT_MS });

  return {
    /**
     * Stores the current script of a URL. If the host does not answer, runs and pages load it from there (`unreached`): this machine may
     * lack the network access that their browsers have.
     * @throws DEPENDENCY_UNRESOLVED if the host returns no script; RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    async keep(author: ScriptAuthor, dependency: string, url: string, limitMs = ANSWER_LIMIT_MS): Promise<StoredAsset> {
      const { href, pathname } = new URL(url);
      const unreached: StoredAsset = { name: dependency, url: href, path: pathname, unreached: true };
      const requestedHosts = unansweredUrls.get(author) ?? new Set();
      if (requestedHosts.has(href)) return unreached;
      const source = await fetchScript(connections, dependency, url, limitMs);
      if (source === null) {
        unansweredUrls.set(author, requestedHosts.add(href));
        return unreached;
      }
      await room.take(author, dependency, sha256Of(source), source.length);
      intake.takeRows(author.caller, author.appId, source.length);
      const noFacts = { package: null, version: null, licence: null, global: null, names: null, parts: [] };
      return assetOf(dependency, await scripts.keep(source, noFacts));
    },

    /**
     * Requests the URL of a stored script again, and records in the asset if the URL now returns other content. The
     * stored script stays unchanged.
     */
    async lookAgain(
      { appId }: ScriptAuthor,
      dependency: string,
      url: string,
      known: StoredAsset,
    ): Promise<StoredAsset> {
      const { changed: _, ...asset } = known;
      const key = `${appId} ${url}`;
      if (silentHosts.has(key)) return known;
      // A URL that fails now changes nothing.
      const source = await fetchScript(connections, dependency, url, LOOK_LIMIT_MS).catch(() => undefined);
      if (source === null) silentHosts.set(key, true);
      if (!source) return known;
      return sha256Of(source) === known.sha256 ? asset : { ...asset, changed: true };
    },
  };
}
