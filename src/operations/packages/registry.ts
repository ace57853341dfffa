/**
 * Requests versions and archives from an npm registry. Rejects archives that do not match their integrity. Stores nothing, executes
 * nothing.
 */
import ssri from "ssri";
import {
  type CheckedConnections,
  type Download,
  NotConnectedError,
  TooLargeError,
} from "../../engine/checked-connections.js";
import { createThreads } from "../../engine/threads.js";
import type { ActionError } from "../../errors.js";
import type { VersionChoice, VersionQuery, VersionResult } from "../../rules/npm-choice.js";
import { unresolvedError } from "../../rules/packages.js";

/** Maximum size of a registry document of one package, because some packages have thousands of versions. */
const DOCUMENT_MAX_BYTES = 48 * 1024 * 1024;
export const ARCHIVE_MAX_BYTES = 16 * 1024 * 1024;
const ANSWER_LIMIT_MS = 15_000;
const READ_MEMORY_MB = 384;
const READ_TIMEOUT_MS = 10_000;
/** Retry-After of temporary refusals, in seconds. */
export const AWAY_RETRY_SECONDS = 30;
/** Media type of an abbreviated registry document. A full document is ten times as long, but only it has publication times. */
const ABBREVIATED_TYPE = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8";
const FULL_TYPE = "application/json";
const DAY_MS = 86_400_000;

/** Dependency that is being resolved. Its name is in each error. */
export interface RegistryRequest {
  dependency: string;
  signal: AbortSignal;
}

export type PackageRegistry = ReturnType<typeof createRegistry>;

export function createRegistry(options: {
  /** URL of the registry, without a trailing slash. */
  url: string;
  token: string | null;
  connections: CheckedConnections;
  /** Minimum age in days of a version, unless the dependency names an exact version; 0 means none. */
  minAgeDays?: number;
  /** Time limit for reading a document. */
  readLimitMs?: number;
}) {
  const { url: registry, token, connections, minAgeDays = 0, readLimitMs = READ_TIMEOUT_MS } = options;
  const { origin } = new URL(registry);
  const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const threads = createThreads<VersionQuery, VersionResult>({
    module: new URL("../../rules/npm-choice.js", import.meta.url),
    name: "chooseVersion",
    memoryMb: READ_MEMORY_MB,
    timeoutMs: readLimitMs,
  });

  const unreachableError = ({ dependency }: RegistryRequest, name: string, reason: string): ActionError =>
    unresolvedError(dependency, `cannot be fetched now: the registry ${reason}, asked for ${name}`, AWAY_RETRY_SECONDS);

  /** Checks the target of a redirect: the registry itself, or a public host over https. */
  function checkUrl(url: URL): void {
    if (url.origin !== origin && url.protocol !== "https:")
      throw new NotConnectedError("it redirects to a URL without TLS", true);
  }

  async function requestRegistry(
    registryRequest: RegistryRequest,
    name: string,
    url: URL,
    maxBytes: number,
    accept: string,
  ): Promise<Download> {
    // Only the registry receives its token.
    const headers = { accept, ...(url.origin === origin ? authorization : {}) };
    const { signal } = registryRequest;
    try {
      return await connections.download(url, { headers, maxBytes, limitMs: ANSWER_LIMIT_MS, signal, judge: checkUrl });
    } catch (error) {
      if (error instanceof TooLargeError)
        throw unresolvedError(registryRequest.dependency, `cannot be fetched: of ${name} ${error.message}`);
      if (error instanceof NotConnectedError && error.forbidden)
        throw unresolvedError(
          registryRequest.dependency,
          `cannot be fetched: the registry leads to a host that may not be reached, asked for ${name}`,
        );
      throw unreachableError(
        registryRequest,
        name,
        error instanceof NotConnectedError ? "cannot be reached" : "does not answer",
      );
    }
  }

  function checkStatus(registryRequest: RegistryRequest, name: string, { status }: Download): void {
    if (status === 200) return;
    const { dependency } = registryRequest;
    if (status === 401 || status === 403)
      throw unresolvedError(dependency, `cannot be fetched: the registry refuses ${name} (${status})`);
    if (status === 404 || status === 405 || status === 410) {
      throw unresolvedError(
        dependency,
        name === dependency ? "is no package of the registry" : `needs ${name}, which is no package of the registry`,
      );
    }
    throw unreachableError(registryRequest, name, `answers ${status}`);
  }

  return {
    registry,

    /** Returns the registry's document of a package. @throws DEPENDENCY_UNRESOLVED */
    async document(registryRequest: RegistryRequest, name: string): Promise<Uint8Array> {
      const url = new URL(`${registry}/${name.replace("/", "%2f")}`);
      const answer = await requestRegistry(
        registryRequest,
        name,
        url,
        DOCUMENT_MAX_BYTES,
        minAgeDays > 0 ? FULL_TYPE : ABBREVIATED_TYPE,
      );
      checkStatus(registryRequest, name, answer);
      return answer.body;
    },

    /** @throws DEPENDENCY_UNRESOLVED */
    async choose(
      registryRequest: RegistryRequest,
      name: string,
      document: Uint8Array,
      range: string,
    ): Promise<VersionChoice> {
      const publishedBefore = minAgeDays > 0 ? new Date(Date.now() - minAgeDays * DAY_MS).toISOString() : null;
      const threadResult = await threads.call({ document, range: range, publishedBefore });
      // A document of maximum size takes a tenth of this time, unless the machine is busy.
      if (!threadResult.ok && threadResult.limit === "time")
        throw unresolvedError(
          registryRequest.dependency,
          `cannot be chosen now: the registry's document on ${name} could not be read in time`,
          AWAY_RETRY_SECONDS,
        );
      if (!threadResult.ok)
        throw unresolvedError(
          registryRequest.dependency,
          `cannot be chosen: the registry's document on ${name} takes too much memory to read`,
        );
      if ("fault" in threadResult.value)
        throw unresolvedError(registryRequest.dependency, `cannot be used: ${name} ${threadResult.value.fault}`);
      return threadResult.value;
    },

    /** Returns the archive of a version. @throws DEPENDENCY_UNRESOLVED */
    async archive(
      registryRequest: RegistryRequest,
      name: string,
      choice: VersionChoice,
      maxBytes = ARCHIVE_MAX_BYTES,
    ): Promise<Buffer> {
      const { version, tarball, integrity } = choice;
      const url = new URL(tarball);
      if (url.protocol !== "https:" && url.origin !== origin)
        throw unresolvedError(
          registryRequest.dependency,
          `cannot be fetched: the archive of ${name} is at an address without TLS`,
        );
      const answer = await requestRegistry(registryRequest, name, url, maxBytes, "application/octet-stream, */*");
      checkStatus(registryRequest, name, answer);
      if (ssri.checkData(answer.body, integrity) === false)
        throw unresolvedError(
          registryRequest.dependency,
          `cannot be trusted: the archive of ${name}@${version} is not what its integrity says`,
        );
      return answer.body;
    },
  };
}
