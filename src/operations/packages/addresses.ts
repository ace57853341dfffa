/** Downloads and stores the scripts of dependencies that are URLs. Allows only https URLs of public hosts. */
import { LRUCache } from "lru-cache";
import type { StoredAsset } from "../../data/action-types.js";
import {
  type AddressCheckedConnections,
  NotConnectedError,
  ResponseTooLargeError,
  TooManyRedirectsError,
} from "../../engine/checked-connections.js";
import { createDependencyError } from "../../rules/packages.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { type StoredScripts, sha256Hex, toStoredScriptAsset } from "./kept-scripts.js";
import { REGISTRY_DOWN_RETRY_SECONDS } from "./registry.js";
import type { ScriptQuota, ScriptQuotaRequest } from "./script-quota.js";

export const SCRIPT_MAX_BYTES = 5 * 1024 * 1024;
/** Time limit in milliseconds for downloading the script of a URL. */
const DOWNLOAD_TIMEOUT_MS = 8_000;
/** Time limit in milliseconds for checking whether the URL of a stored script still returns the same content. */
export const URL_RECHECK_TIMEOUT_MS = 4_000;
/** Milliseconds for which a URL that did not respond is not checked again, so that not each save of an action waits for it. */
const UNRESPONSIVE_URL_MS = 60_000;

function requireHttps(url: URL): void {
  if (url.protocol !== "https:")
    throw new NotConnectedError("the URL of the script redirects to a URL that is not an https URL", true);
}

/**
 * Downloads the script of a dependency.
 * @returns null if the host does not respond
 * @throws DEPENDENCY_UNRESOLVED if the host responds with an error or with too many bytes. After a temporary failure
 *   the error has `retryAfter`
 */
export async function fetchScript(
  connections: AddressCheckedConnections,
  dependency: string,
  url: string,
  timeoutMs: number,
): Promise<Buffer | null> {
  const headers = { accept: "text/javascript, application/javascript, */*;q=0.5" };
  const addressError = (reason: string, retryAfter?: number) =>
    createDependencyError(dependency, `cannot be fetched: ${reason}`, retryAfter);
  const downloadOptions = { headers, maxBytes: SCRIPT_MAX_BYTES, timeoutMs, checkUrl: requireHttps };
  const answer = await connections.download(new URL(url), downloadOptions).catch((error: Error) => {
    if (error instanceof NotConnectedError && error.forbidden) throw addressError(error.message);
    if (error instanceof NotConnectedError || error.name === "TimeoutError") return null;
    if (error instanceof ResponseTooLargeError || error instanceof TooManyRedirectsError)
      throw addressError(error.message);
    throw addressError("its host ended the response before it was complete", REGISTRY_DOWN_RETRY_SECONDS);
  });
  if (answer === null) return null;
  const { status, body } = answer;
  if (status >= 500 || status === 429)
    throw addressError(`its host responded with status ${status}`, REGISTRY_DOWN_RETRY_SECONDS);
  if (status !== 200) throw addressError(`its host responded with status ${status}`);
  return body;
}

interface ScriptLoaderOptions {
  connections: AddressCheckedConnections;
  scripts: StoredScripts;
  quota: ScriptQuota;
  receivedDataLimiter: ReceivedDataLimiter;
}

export class ScriptLoader {
  /** URLs that did not respond in a request. Each is requested only once, because imported actions can contain it a hundred times. */
  private readonly unansweredUrls = new WeakMap<ScriptQuotaRequest, Set<string>>();
  /** URLs of stored scripts whose host recently did not respond. The keys have the form `appId url`. */
  private readonly silentUrls = new LRUCache<string, true>({ max: 1_000, ttl: UNRESPONSIVE_URL_MS });

  constructor(private readonly options: ScriptLoaderOptions) {}

  /**
   * Downloads and stores the script of a URL. If the host does not respond, stores nothing and sets `unreached` in
   * the returned asset (the record of the script). Runs and pages then load the script from the URL, because their
   * browsers may reach hosts that this machine cannot reach.
   * @throws DEPENDENCY_UNRESOLVED if the host responds without a script; RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async storeScript(
    author: ScriptQuotaRequest,
    dependency: string,
    url: string,
    limitMs = DOWNLOAD_TIMEOUT_MS,
  ): Promise<StoredAsset> {
    const { connections, scripts, quota, receivedDataLimiter } = this.options;
    const { href, pathname } = new URL(url);
    const unreached: StoredAsset = { name: dependency, url: href, path: pathname, unreached: true };
    const unansweredHere = this.unansweredUrls.get(author) ?? new Set();
    if (unansweredHere.has(href)) return unreached;
    const source = await fetchScript(connections, dependency, url, limitMs);
    if (source === null) {
      this.unansweredUrls.set(author, unansweredHere.add(href));
      return unreached;
    }
    await quota.countScript(author, dependency, sha256Hex(source), source.length);
    receivedDataLimiter.takeRows(author.caller, author.appId, source.length);
    const noFacts = { package: null, version: null, licence: null, global: null, names: null, parts: [] };
    return toStoredScriptAsset(dependency, await scripts.store(source, noFacts));
  }

  /**
   * Requests the URL of a stored script again. If the URL now returns other content, sets `changed` in the returned
   * asset. Does not replace the stored script.
   */
  async recheck(
    { appId }: ScriptQuotaRequest,
    dependency: string,
    url: string,
    known: StoredAsset,
  ): Promise<StoredAsset> {
    const { changed: _, ...asset } = known;
    const key = `${appId} ${url}`;
    if (this.silentUrls.has(key)) return known;
    // Ignores a failed request: the asset then stays unchanged.
    const source = await fetchScript(this.options.connections, dependency, url, URL_RECHECK_TIMEOUT_MS).catch(
      () => undefined,
    );
    if (source === null) this.silentUrls.set(key, true);
    if (!source) return known;
    return sha256Hex(source) === known.sha256 ? asset : { ...asset, changed: true };
  }
}
