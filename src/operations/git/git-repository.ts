/**
 * Downloads the files of a branch or tag from a Git server. The requests follow the same network rules as the HTTP
 * requests that actions send. A sandboxed process of the bundler parses the downloaded files.
 */
import { BundlerBusyError, PackageError, SandboxUnavailableError } from "../../engine/bundler/fault.js";
import { GitRemoteError, openGitRemote, type SendGitRequest } from "../../engine/git-remote.js";
import { OutgoingError, type OutgoingRequestSender, RunRequestBudget } from "../../engine/outgoing.js";
import { ActionError } from "../../errors.js";
import { ENTRY_POINT_FILE_NAMES } from "../../rules/action-source.js";
import type { GitConnectionFields } from "../../rules/git-input.js";
import { normalizeOrigin } from "../../rules/integration-origins.js";
import type { DependencyResolver } from "../packages/packages.js";

const REQUEST_TIMEOUT_MS = 30_000;
/** Time limit for all requests to the Git server of one pull together. */
const PULL_TIMEOUT_MS = 60_000;
/** Value of `Retry-After` in seconds for a pull that fails temporarily. */
const RETRY_AFTER_SECONDS = 5;
const ERROR_REASON_MAX_CHARACTERS = 500;

/** The commit to which a branch or tag points on the Git server. */
export interface RemoteGitCommit {
  commit: string;
  /** Hash of the object to which the branch or tag points: the commit, or for an annotated tag the tag object. */
  target: string;
  downloadPack: () => Promise<Buffer>;
}

/** True if the Git server was not reachable or could not answer, so that a retry of the pull may succeed. */
const isTemporaryFault = (error: GitRemoteError | OutgoingError | PackageError): boolean =>
  error instanceof GitRemoteError
    ? error.isTemporary
    : error instanceof OutgoingError && ["TRANSPORT", "TIMEOUT"].includes(error.code);

const createPullError = (reason: string, isTemporary: boolean): ActionError =>
  new ActionError(
    "GIT_PULL_FAILED",
    reason.slice(0, ERROR_REASON_MAX_CHARACTERS).toWellFormed(),
    isTemporary ? { retryAfter: RETRY_AFTER_SECONDS } : {},
  );

/**
 * Converts errors of the Git server or the bundler to ActionErrors. Sets `retryAfter` after a temporary error of the Git server, and if the
 * bundler is busy or not available. Returns other errors unchanged.
 */
function toActionError(error: unknown): unknown {
  if (error instanceof BundlerBusyError || error instanceof SandboxUnavailableError) {
    const message = `the service cannot read the repository: ${error.message}`;
    return new ActionError("OVERLOADED", message, { retryAfter: RETRY_AFTER_SECONDS });
  }
  const isFault = error instanceof GitRemoteError || error instanceof OutgoingError || error instanceof PackageError;
  if (isFault) return createPullError(error.message, isTemporaryFault(error));
  const isTimeout = error instanceof DOMException && error.name === "TimeoutError";
  if (isTimeout)
    return createPullError(`the Git server took longer than ${PULL_TIMEOUT_MS / 1_000} s to send the repository`, true);
  return error;
}

interface GitRepositoryOptions {
  requestSender: OutgoingRequestSender;
  packages: Pick<DependencyResolver, "readRepository">;
}

export class GitRepository {
  constructor(private readonly options: GitRepositoryOptions) {}

  private createRequestSender(
    appId: number,
    { provider, url, username }: GitConnectionFields,
    token: string | null,
  ): SendGitRequest {
    const origin = normalizeOrigin(new URL(url))!;
    // GitLab redirects the first request to the URL with `.git`, and accepts the second request only at that URL.
    const base = provider === "gitlab" && !url.endsWith(".git") ? `${url}.git` : url;
    const authorization = token === null ? null : `Basic ${Buffer.from(`${username}:${token}`).toString("base64")}`;
    const scope = {
      pool: `${appId} git`,
      budget: new RunRequestBudget(),
      // Rejects redirects to other servers, so that the service sends the token only to the server in the configured URL.
      mayUseOrigin: (requested: string) => {
        if (requested === origin) return true;
        throw new GitRemoteError(
          `the Git server redirects to ${requested}, but a pull sends requests only to ${origin}; connect the app with the URL to which the server redirects`,
        );
      },
      originOf: normalizeOrigin,
      hasCredential: false,
      signal: AbortSignal.timeout(PULL_TIMEOUT_MS),
    };
    return ({ method, path, headers, body }) =>
      this.options.requestSender.send(
        {
          ...{ url: new URL(base + path), method, body, timeoutMs: REQUEST_TIMEOUT_MS },
          headers: {
            ...headers,
            ...(authorization !== null && { authorization }),
            "user-agent": "git/svc-app-actions",
          },
        },
        scope,
      );
  }

  /** Requests from the Git server the commit to which a branch or tag points. @throws ActionError GIT_PULL_FAILED */
  async find(appId: number, fields: GitConnectionFields, token: string | null, ref: string): Promise<RemoteGitCommit> {
    try {
      const remote = await openGitRemote(this.createRequestSender(appId, fields, token));
      const remoteCommit = await remote.findRef(ref);
      const fetch = () =>
        remote.fetchPack(remoteCommit).catch((error: unknown) => {
          throw toActionError(error);
        });
      return { commit: remoteCommit.commit, target: remoteCommit.target, downloadPack: fetch };
    } catch (error) {
      throw toActionError(error);
    }
  }

  /**
   * Reads the app's manifest from the files of a commit.
   * @param folder folder of the repository that contains the app's files
   * @param pack Git pack from `RemoteGitCommit.downloadPack`
   * @throws GIT_PULL_FAILED, OVERLOADED
   */
  async read(commit: string, folder: string, pack: Buffer): Promise<unknown> {
    try {
      return await this.options.packages.readRepository(
        { commit, folder, entryFileNames: Object.values(ENTRY_POINT_FILE_NAMES).flat() },
        pack,
      );
    } catch (error) {
      throw toActionError(error);
    }
  }
}
