/**
 * Fetches the files of a branch or tag from a git server, under the rules for requests of actions. The bundler's
 * sandbox reads the files.
 */
import { BundlerBusyError, PackageFault, UncontainedError } from "../../engine/bundler/fault.js";
import { GitRemoteFault, openGitRemote, type SendGit } from "../../engine/git-remote.js";
import { OutgoingError, type OutgoingSender, RunBudget } from "../../engine/outgoing.js";
import { ActionError } from "../../errors.js";
import { ENTRY_FILES } from "../../rules/action-source.js";
import type { GitFields } from "../../rules/git-input.js";
import { normalOrigin } from "../../rules/integration-origins.js";
import type { Packages } from "../packages/packages.js";

const REQUEST_LIMIT_MS = 30_000;
/** Time limit of all requests of one pull. */
const PULL_LIMIT_MS = 60_000;
const RETRY_SECONDS = 5;
const REASON_MAX_CHARACTERS = 500;

/** Commit of a branch or tag. */
export interface FoundCommit {
  commit: string;
  /** Hash that the branch or tag stands for: the commit, or for a tag with a message the tag. */
  target: string;
  /** Downloads the pack with the files. @throws ActionError GIT_PULL_FAILED */
  fetch: () => Promise<Buffer>;
}

/** Converts an error of the git server to an ActionError for callers. Returns other errors unchanged. */
function failureOf(error: unknown): unknown {
  if (error instanceof BundlerBusyError || error instanceof UncontainedError) {
    const message = `the repository cannot be read now: ${error.message}`;
    return new ActionError("OVERLOADED", message, { retryAfter: RETRY_SECONDS });
  }
  const isFault = error instanceof GitRemoteFault || error instanceof OutgoingError || error instanceof PackageFault;
  if (isFault) return new ActionError("GIT_PULL_FAILED", error.message.slice(0, REASON_MAX_CHARACTERS).toWellFormed());
  const isLate = error instanceof DOMException && error.name === "TimeoutError";
  if (isLate) return new ActionError("GIT_PULL_FAILED", `the server took longer than ${PULL_LIMIT_MS / 1_000} s`);
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
    const origin = normalOrigin(new URL(url))!;
    // GitLab redirects the first request to this path, and has the second one only there.
    const base = provider === "gitlab" && !url.endsWith(".git") ? `${url}.git` : url;
    const basic = token === null ? null : `Basic ${Buffer.from(`${username}:${token}`).toString("base64")}`;
    const scope = {
      pool: `${appId} git`,
      budget: new RunBudget(),
      // The commit is requested from the server that named it.
      mayUse: (requested: string) => {
        if (requested === origin) return true;
        throw new GitRemoteFault(`the server redirects to ${requested}, but a pull sends requests to ${origin} only`);
      },
      originOf: normalOrigin,
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
    /** Finds a branch or tag. @throws GIT_PULL_FAILED */
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

    /** Reads the definitions of a commit. @throws GIT_PULL_FAILED, OVERLOADED */
    async read(commit: string, folder: string, pack: Buffer): Promise<unknown> {
      try {
        return await packages.readRepository({ commit, folder, entries: Object.values(ENTRY_FILES).flat() }, pack);
      } catch (error) {
        throw failureOf(error);
      }
    },
  };
}
