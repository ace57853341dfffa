/**
 * Downloads the files of a branch or tag from a Git server. The requests follow the same network rules as requests of
 * actions. The downloaded files are parsed in the bundler's sandbox.
 */
import { BundlerBusyError, PackageFault, UncontainedError } from "../../engine/bundler/fault.js";
import { GitRemoteFault, openGitRemote, type SendGit } from "../../engine/git-remote.js";
import { OutgoingError, type OutgoingSender, RunBudget } from "../../engine/outgoing.js";
import { ActionError } from "../../errors.js";
import { ENTRY_FILES } from "../../rules/action-source.js";
import type { GitFields } from "../../rules/git-input.js";
import { normalizeOrigin } from "../../rules/integration-origins.js";
import type { Packages } from "../packages/packages.js";

/** Time limit of one request to the Git server. */
const REQUEST_LIMIT_MS = 30_000;
/** Time limit of all requests of one pull together. */
const PULL_LIMIT_MS = 60_000;
/** Seconds after which a client should repeat a pull that the busy bundler rejected. */
const RETRY_SECONDS = 5;
const REASON_MAX_CHARACTERS = 500;

/** The commit to which a branch or tag points. */
export interface FoundCommit {
  commit: string;
  /** Hash to which the branch or tag points: of the commit, or of the tag object for an annotated tag. */
  target: string;
  /** Downloads the Git pack that contains the files. @throws ActionError GIT_PULL_FAILED */
  fetch: () => Promise<Buffer>;
}

/**
 * Converts an error of the Git server or of the bundler to an ActionError for callers. Returns other errors unchanged.
 */
function failureOf(error: unknown): unknown {
  if (error instanceof BundlerBusyError || error instanceof UncontainedError) {
    const message = `the service cannot read the repository now: ${error.message}`;
    return new ActionError("OVERLOADED", message, { retryAfter: RETRY_SECONDS });
  }
  const isFault = error instanceof GitRemoteFault || error instanceof OutgoingError || error instanceof PackageFault;
  if (isFault) return new ActionError("GIT_PULL_FAILED", error.message.slice(0, REASON_MAX_CHARACTERS).toWellFormed());
  const isLate = error instanceof DOMException && error.name === "TimeoutError";
  if (isLate)
    return new ActionError(
      "GIT_PULL_FAILED",
      `the Git server took longer than ${PULL_LIMIT_MS / 1_000} s to send the repository`,
    );
  return error;
}

export type GitRepository = ReturnType<typeof createGitRepository>;

export function createGitRepository({
  outgoing,
  packages,
}: {
  outgoing: OutgoingSender;
  packages: Pick<Packages, "readRepository">;
}) {
  function senderTo(appId: number, { provider, url, username }: GitFields, token: string | null): SendGit {
    const origin = normalizeOrigin(new URL(url))!;
    // GitLab redirects the first request to the path with `.git`, and accepts the second request only there.
    const base = provider === "gitlab" && !url.endsWith(".git") ? `${url}.git` : url;
    const basic = token === null ? null : `Basic ${Buffer.from(`${username}:${token}`).toString("base64")}`;
    const scope = {
      pool: `${appId} git`,
      budget: new RunBudget(),
      // Redirects to other servers are rejected, so that the token and the commit are sent only to the server in the
      // URL.
      mayUse: (requested: string) => {
        if (requested === origin) return true;
        throw new GitRemoteFault(
          `the Git server redirects to ${requested}, but a pull sends requests only to ${origin}; connect the URL to which it redirects`,
        );
      },
      originOf: normalizeOrigin,
      hasCredential: false,
      signal: AbortSignal.timeout(PULL_LIMIT_MS),
    };
    return ({ method, path, headers, body }) =>
      outgoing.send(
        {
          ...{ url: new URL(base + path), method, body, timeoutMs: REQUEST_LIMIT_MS },
          headers: { ...headers, ...(basic !== null && { authorization: basic }), "user-agent": "git/svc-app-actions" },
        },
        scope,
      );
  }

  return {
    /** Finds the commit of a branch or tag. @throws GIT_PULL_FAILED */
    async find(appId: number, fields: GitFields, token: string | null, ref: string): Promise<FoundCommit> {
      try {
        const remote = await openGitRemote(senderTo(appId, fields, token));
        const remoteCommit = await remote.find(ref);
        const fetch = () =>
          remote.fetch(remoteCommit).catch((error: unknown) => {
            throw failureOf(error);
          });
        return { commit: remoteCommit.commit, target: remoteCommit.target, fetch };
      } catch (error) {
        throw failureOf(error);
      }
    },

    /**
     * Reads the manifest of a commit. @param folder folder in the repository that contains the app @param pack Git pack
     * from `FoundCommit.fetch` @throws GIT_PULL_FAILED, OVERLOADED
     */
    async read(commit: string, folder: string, pack: Buffer): Promise<unknown> {
      try {
        return await packages.readRepository({ commit, folder, entries: Object.values(ENTRY_FILES).flat() }, pack);
      } catch (error) {
        throw failureOf(error);
      }
    },
  };
}
