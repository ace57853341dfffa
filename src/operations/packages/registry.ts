/**
 * Requests the versions and archives of packages from an npm registry. Rejects an archive that does not match the integrity value in the
 * registry's document. Executes no code of packages.
 */
import ssri from "ssri";
import {
  type AddressCheckedConnections,
  type Download,
  NotConnectedError,
  ResponseTooLargeError,
  TooManyRedirectsError,
} from "../../engine/checked-connections.js";
import { createThreadPool } from "../../engine/threads.js";
import type { ActionError } from "../../errors.js";
import type * as npmChoice from "../../rules/npm-choice.js";
import type { ChosenNpmVersion, NpmVersionQuery, NpmVersionResult } from "../../rules/npm-choice.js";
import { createDependencyError } from "../../rules/packages.js";

/** Maximum bytes of the registry's document of one package, which lists all versions of the package. */
const DOCUMENT_MAX_BYTES = 48 * 1024 * 1024;
export const PACKAGE_ARCHIVE_MAX_BYTES = 16 * 1024 * 1024;
const RESPONSE_TIMEOUT_MS = 15_000;
const PARSE_MEMORY_MB = 384;
const PARSE_TIMEOUT_MS = 10_000;
/** Value of `retryAfter` in errors that occur because the registry or the host of a script is not available. */
export const REGISTRY_DOWN_RETRY_SECONDS = 30;
/** Header `Accept` for the short document of a package. The full document is much longer, but only it has the times of publication. */
const SHORT_DOCUMENT_TYPE = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8";
const FULL_DOCUMENT_TYPE = "application/json";
const DAY_MS = 86_400_000;

/** The dependency of an action for which the service sends requests to the registry. Error messages contain its name. */
export interface RegistryRequest {
  dependency: string;
  signal: AbortSignal;
}

interface PackageRegistryOptions {
  url: string;
  token: string | null;
  connections: AddressCheckedConnections;
  /** Minimum age in days of a chosen version; 0 allows any age. A dependency that names an exact version may be newer. */
  minAgeDays?: number;
  readLimitMs?: number;
}

const createUnreachableError = ({ dependency }: RegistryRequest, name: string, reason: string): ActionError =>
  createDependencyError(
    dependency,
    `cannot be fetched now: the registry ${reason} (requested package: ${name})`,
    REGISTRY_DOWN_RETRY_SECONDS,
  );

function describeFailure(error: unknown): string {
  if (error instanceof NotConnectedError) return "cannot be reached";
  return error instanceof TooManyRedirectsError ? "redirects the request too often" : "does not respond";
}

function checkStatus(registryRequest: RegistryRequest, name: string, { status }: Download): void {
  if (status === 200) return;
  const { dependency } = registryRequest;
  if (status === 401 || status === 403)
    throw createDependencyError(
      dependency,
      `cannot be fetched: the registry does not permit access to ${name} (status ${status}); the operator of the service can set NPM_TOKEN to a token with access`,
    );
  if (status === 404 || status === 405 || status === 410) {
    throw createDependencyError(
      dependency,
      name === dependency ? "does not exist in the registry" : `needs ${name}, which does not exist in the registry`,
    );
  }
  throw createUnreachableError(registryRequest, name, `responded with status ${status}`);
}

export class PackageRegistry {
  private readonly minAgeDays = this.options.minAgeDays ?? 0;
  private readonly origin = new URL(this.options.url).origin;
  private readonly authorization: Record<string, string> =
    this.options.token === null ? {} : { authorization: `Bearer ${this.options.token}` };
  private readonly threadPool = createThreadPool<NpmVersionQuery, NpmVersionResult>({
    module: new URL("../../rules/npm-choice.js", import.meta.url),
    name: "chooseNpmVersion" satisfies keyof typeof npmChoice,
    memoryMb: PARSE_MEMORY_MB,
    timeoutMs: this.options.readLimitMs ?? PARSE_TIMEOUT_MS,
  });
  readonly registry = this.options.url;

  constructor(private readonly options: PackageRegistryOptions) {}

  /** Allows only https URLs and URLs of the registry's own origin, also for redirects. @throws NotConnectedError */
  private checkUrl(url: URL): void {
    if (url.origin !== this.origin && url.protocol !== "https:")
      throw new NotConnectedError("the registry redirects to a URL that is not an https URL", true);
  }

  private async requestRegistry(
    registryRequest: RegistryRequest,
    name: string,
    url: URL,
    maxBytes: number,
    accept: string,
  ): Promise<Download> {
    // Other servers must not receive the registry's token.
    const headers = { accept, ...(url.origin === this.origin ? this.authorization : {}) };
    const { signal } = registryRequest;
    try {
      return await this.options.connections.download(url, {
        headers,
        maxBytes,
        timeoutMs: RESPONSE_TIMEOUT_MS,
        signal,
        checkUrl: (target) => this.checkUrl(target),
      });
    } catch (error) {
      if (error instanceof ResponseTooLargeError)
        throw createDependencyError(
          registryRequest.dependency,
          `cannot be fetched: ${error.message} (requested package: ${name})`,
        );
      if (error instanceof NotConnectedError && error.forbidden)
        throw createDependencyError(
          registryRequest.dependency,
          `cannot be fetched: the registry redirects to a host that is not allowed (requested package: ${name})`,
        );
      throw createUnreachableError(registryRequest, name, describeFailure(error));
    }
  }

  async downloadDocument(registryRequest: RegistryRequest, name: string): Promise<Uint8Array> {
    const url = new URL(`${this.options.url}/${name.replace("/", "%2f")}`);
    const answer = await this.requestRegistry(
      registryRequest,
      name,
      url,
      DOCUMENT_MAX_BYTES,
      this.minAgeDays > 0 ? FULL_DOCUMENT_TYPE : SHORT_DOCUMENT_TYPE,
    );
    checkStatus(registryRequest, name, answer);
    return answer.body;
  }

  /** Chooses a version that fits the range from the registry's document of a package. @throws DEPENDENCY_UNRESOLVED */
  async choose(
    registryRequest: RegistryRequest,
    name: string,
    document: Uint8Array,
    range: string,
  ): Promise<ChosenNpmVersion> {
    const publishedBefore = this.minAgeDays > 0 ? new Date(Date.now() - this.minAgeDays * DAY_MS).toISOString() : null;
    const threadResult = await this.threadPool.call({ document, range: range, publishedBefore });
    // A timeout is temporary: if the machine is not busy, a tenth of the time limit is enough even for the largest allowed document.
    if (!threadResult.ok && threadResult.limit === "time")
      throw createDependencyError(
        registryRequest.dependency,
        `cannot be fetched now: the registry's list of versions of ${name} could not be read in time`,
        REGISTRY_DOWN_RETRY_SECONDS,
      );
    if (!threadResult.ok)
      throw createDependencyError(
        registryRequest.dependency,
        `cannot be fetched: the registry's list of versions of ${name} needs too much memory`,
      );
    if ("fault" in threadResult.value)
      throw createDependencyError(registryRequest.dependency, `cannot be used: ${name} ${threadResult.value.fault}`);
    return threadResult.value;
  }

  async downloadArchive(
    registryRequest: RegistryRequest,
    name: string,
    choice: ChosenNpmVersion,
    maxBytes = PACKAGE_ARCHIVE_MAX_BYTES,
  ): Promise<Buffer> {
    const { version, tarball, integrity } = choice;
    const url = new URL(tarball);
    if (url.protocol !== "https:" && url.origin !== this.origin)
      throw createDependencyError(
        registryRequest.dependency,
        `cannot be fetched: the registry's URL of the archive of ${name} does not use https (got ${url.origin})`,
      );
    const answer = await this.requestRegistry(registryRequest, name, url, maxBytes, "application/octet-stream, */*");
    checkStatus(registryRequest, name, answer);
    if (ssri.checkData(answer.body, integrity) === false)
      throw createDependencyError(
        registryRequest.dependency,
        `cannot be used: the archive of ${name}@${version} does not match the integrity in the registry`,
      );
    return answer.body;
  }
}
