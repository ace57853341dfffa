/** Downloads and stores the scripts of dependencies that are URLs. Allows only https URLs. */
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
import { computeSha256Hex, type StoredScripts, toStoredScriptAsset } from "./kept-scripts.js";
import { REGISTRY_DOWN_RETRY_SECONDS } from "./registry.js";
import type { ScriptQuota, ScriptQuotaRequest } from "./script-quota.js";

export const SCRIPT_MAX_BYTES = 5 * 1024 * 1024;
const DOWNLOAD_TIMEOUT_MS = 8_000;
/** Time limit in milliseconds of a request that checks if the URL of a stored script still returns the same content. */
export const URL_RECHECK_TIMEOUT_MS = 4_000;
/** If a URL did not respond, the service does not check it again for this many milliseconds. So further saves do not wait for it. */
const UNRESPONSIVE_URL_MS = 60_000;

function requireHttps(url: URL): void {
  if (url.protocol !== "https:")
    throw new NotConnectedError("the URL of the script redirects to a URL that is not an https URL", true);
}

/**
 * Downloads the script of a dependency. Returns null if the host does not respond.
 * @throws DEPENDENCY_UNRESOLVED if the response is an error or too large; with `retryAfter` if the failure may be temporary
 */
export async function fetchScript(
  connections: AddressCheckedConnections,
  dependency: string,
  url: string,
  timeoutMs: number,
): Promise<Buffer | null> {
  const headers = { accept: "text/javascript, application/javascript, */*;q=0.5" };
  const createFetchError = (reason: string, retryAfter?: number) =>
    createDependencyError(dependency, `cannot be fetched: ${reason}`, retryAfter);
  const downloadOptions = { headers, maxBytes: SCRIPT_MAX_BYTES, timeoutMs, checkUrl: requireHttps };
  const answer = await connections.download(new URL(url), downloadOptions).catch((error: Error) => {
    if (error instanceof NotConnectedError && error.forbidden) throw createFetchError(error.message);
    if (error instanceof NotConnectedError || error.name === "TimeoutError") return null;
    if (error instanceof ResponseTooLargeError || error instanceof TooManyRedirectsError)
      throw createFetchError(error.message);
    throw createFetchError(
      "its host sent an incomplete or invalid response; try again later",
      REGISTRY_DOWN_RETRY_SECONDS,
    );
  });
  if (answer === null) return null;
  const { status, body } = answer;
  if (status >= 500 || status === 429)
    throw createFetchError(`its host responded with status ${status}`, REGISTRY_DOWN_RETRY_SECONDS);
  if (status !== 200) throw createFetchError(`its host responded with status ${status}`);
  return body;
}

interface ScriptLoaderOptions {
  connections: AddressCheckedConnections;
  scripts: StoredScripts;
  quota: ScriptQuota;
  receivedDataLimiter: ReceivedDataLimiter;
}

export class ScriptLoader {
  /** URLs that did not respond, by request. Each request tries a URL only once, although many imported actions can contain the same URL. */
  private readonly unansweredUrlsByAuthor = new WeakMap<ScriptQuotaRequest, Set<string>>();
  /** URLs of stored scripts whose host recently did not respond. A key consists of the app's ID and the URL. */
  private readonly unresponsiveUrls = new LRUCache<string, true>({ max: 1_000, ttl: UNRESPONSIVE_URL_MS });

  constructor(private readonly options: ScriptLoaderOptions) {}

  /**
   * Downloads and stores the script of a URL. If the host does not respond, returns an asset (record of the script) with `unreached`: runs
   * and pages then load the script from the URL themselves.
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
    const unansweredUrls = this.unansweredUrlsByAuthor.get(author) ?? new Set();
    if (unansweredUrls.has(href)) return unreached;
    const source = await fetchScript(connections, dependency, url, limitMs);
    if (source === null) {
      this.unansweredUrlsByAuthor.set(author, unansweredUrls.add(href));
      return unreached;
    }
    await quota.countScript(author, dependency, computeSha256Hex(source), source.length);
    receivedDataLimiter.countRows(author.caller, author.appId, source.length);
    const unknownFacts = { package: null, version: null, licence: null, global: null, names: null, parts: [] };
    return toStoredScriptAsset(dependency, await scripts.store(source, unknownFacts));
  }

  /**
   * Requests the URL of a stored script again. If the URL now returns other content, sets `changed` in the returned asset, but does not
   * replace the stored script. If the URL does not respond or returns an error, returns the asset unchanged.
   */
  async recheck(
    { appId }: ScriptQuotaRequest,
    dependency: string,
    url: string,
    known: StoredAsset,
  ): Promise<StoredAsset> {
    const { changed: _, ...asset } = known;
    const key = `${appId} ${url}`;
    if (this.unresponsiveUrls.has(key)) return known;
    const source = await fetchScript(this.options.connections, dependency, url, URL_RECHECK_TIMEOUT_MS).catch(
      () => undefined,
    );
    if (source === null) this.unresponsiveUrls.set(key, true);
    if (!source) return known;
    return computeSha256Hex(source) === known.sha256 ? asset : { ...asset, changed: true };
  }
}
