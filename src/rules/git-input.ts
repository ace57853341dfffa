/** Validates the settings of a Git connection, and determines which branches and tags the service pulls. */
import { ActionError } from "../errors.js";
import { isValidSourcePath } from "./action-source.js";
import { describeType, isObject } from "./describe-value.js";
import { refuseField } from "./fields.js";
import { normalizeOrigin } from "./integration-origins.js";
import { createFlatShape, refuseUnknownFields } from "./unknown-fields.js";

export const GIT_PROVIDERS = ["github", "gitlab", "gitea"] as const;
export type GitProvider = (typeof GIT_PROVIDERS)[number];

const URL_MAX_CHARACTERS = 500;
const REF_MAX_CHARACTERS = 200;
const CREDENTIAL_MAX_CHARACTERS = 1_000;
const BRANCH_REF_PREFIX = "refs/heads/";
const TAG_REF_PREFIX = "refs/tags/";
/** User name for the Git server if the connection has none. With an access token, Git servers accept any name. */
const DEFAULT_USERNAME = "git";

/** Fields of a Git connection in responses, which never contain the access token. */
export interface GitConnectionFields {
  provider: GitProvider;
  /** URL of the repository, without a slash at its end. */
  url: string;
  branch: string;
  /** Folder of the project in the repository; "" for the repository's root. */
  folder: string;
  /**
   * Pattern for names of tags, such as `v*`; null if the service pulls no tags. The service pulls a tag that matches, and publishes the
   * changed actions.
   */
  tagPattern: string | null;
  /**
   * True if a pull also removes definitions that the repository does not contain: actions, settings, alert rules, secret bindings and data
   * sources. The pull fails if it would remove a data source with entries.
   */
  prune: boolean;
  username: string;
}

export interface GitConnectionInput extends GitConnectionFields {
  /** Access token for the repository. null removes the stored token; undefined leaves it unchanged. */
  token: string | null | undefined;
  /** True if the service must replace the secret of the webhook. */
  newSecret: boolean;
}

const GIT_FIELD_NAMES = [
  "provider",
  "url",
  "branch",
  "folder",
  "tagPattern",
  "prune",
  "username",
  "token",
  "newSecret",
];
const READ_ONLY_FIELDS = ["lastPull", "hasToken", "webhookUrl", "userId", "updatedAt"];

/** True for the name of a branch or tag, without `refs/`, that Git accepts (git-check-ref-format) and that has no special characters. */
const isRefName = (name: string): boolean =>
  name.length <= REF_MAX_CHARACTERS &&
  /^[\w@+.-][\w@+./-]*$/.test(name) &&
  !name.startsWith("-") &&
  !name.startsWith("refs/") &&
  !/\.\.|\/\/|@\{|\/\.|\.\/|[./]$|\.lock$/.test(name) &&
  !name.startsWith(".");

/** Throws the error for an invalid field whose value may contain a token, so that the message must not quote the value. */
function throwErrorWithoutValue(field: string, expected: string, value: unknown): never {
  throw new ActionError("REQUEST_INVALID", `${field} must be ${expected} (got ${describeType(value)})`);
}

function readUrl(value: unknown, allowHttp: boolean): string {
  const expected = `the ${allowHttp ? "https or http" : "https"} URL of a repository without credentials, query and fragment`;
  if (typeof value !== "string" || value.length > URL_MAX_CHARACTERS)
    return throwErrorWithoutValue("url", expected, value);
  const url = /[\s\\@?#]/.test(value) ? null : URL.parse(value);
  const origin = url && normalizeOrigin(url);
  const isAllowed = url?.protocol === "https:" || (allowHttp && url?.protocol === "http:");
  const path = url?.pathname.replace(/\/$/, "") ?? "";
  if (!origin || !isAllowed || path === "" || path.endsWith("/")) return throwErrorWithoutValue("url", expected, value);
  return origin + path;
}

function readText(value: unknown, field: string, expected: string, isValid: (text: string) => boolean): string {
  if (typeof value === "string" && isValid(value)) return value;
  return refuseField(field, expected, value);
}

const isHeaderText = (text: string): boolean =>
  text.length >= 1 && text.length <= CREDENTIAL_MAX_CHARACTERS && /^[\x21-\x7e]+$/.test(text);

function readFlag(value: unknown, field: string): boolean {
  return typeof value === "boolean" ? value : refuseField(field, "true or false", value);
}

function readToken(token: unknown, expected: string): string | null | undefined {
  if (token === undefined || token === null) return token;
  if (typeof token === "string" && isHeaderText(token)) return token;
  return throwErrorWithoutValue("token", `${expected}, or null`, token);
}

/**
 * Validates the settings of a Git connection. Does not reject unknown fields (`refuseUnknownGitConnectionFields`).
 * @param allowHttp true if http URLs are valid (ALLOW_PRIVATE_NETWORK)
 * @throws REQUEST_INVALID with the name of the invalid field
 */
export function parseGitConnectionInput(body: unknown, allowHttp: boolean): GitConnectionInput {
  if (!isObject(body)) return refuseField("the Git connection", "an object", body);
  const { provider, branch = "main", tagPattern = null, prune = false, newSecret = false, token } = body;
  const { username = DEFAULT_USERNAME } = body;
  const folder = body["folder"] ?? "";
  if (!GIT_PROVIDERS.includes(provider as GitProvider))
    refuseField("provider", `one of ${GIT_PROVIDERS.join(", ")}`, provider);
  const expectedCredential = `1 to ${CREDENTIAL_MAX_CHARACTERS} visible ASCII characters`;
  const input: GitConnectionInput = {
    provider: provider as GitProvider,
    url: readUrl(body["url"], allowHttp),
    branch: readText(
      branch,
      "branch",
      "the name of a branch, without refs/heads/, of ASCII letters, digits and the characters _ @ + . / -",
      isRefName,
    ),
    folder: readText(
      folder,
      "folder",
      "a path of folders such as apps/shop, or empty",
      (text) => text === "" || isValidSourcePath(text),
    ),
    tagPattern:
      tagPattern === null
        ? null
        : readText(
            tagPattern,
            "tagPattern",
            "the name of a tag, without refs/tags/, of ASCII letters, digits and the characters _ @ + . / -, with * for any characters, or null",
            (text) => isRefName(text.replaceAll("*", "x")),
          ),
    prune: readFlag(prune, "prune"),
    username: readText(
      username,
      "username",
      `${expectedCredential} without a colon`,
      (text) => isHeaderText(text) && !text.includes(":"),
    ),
    token: readToken(token, expectedCredential),
    newSecret: readFlag(newSecret, "newSecret"),
  };
  return input;
}

/** Rejects unknown fields. Must be called after all other checks, so that other faults are reported first. @throws REQUEST_INVALID */
export function refuseUnknownGitConnectionFields(body: unknown): void {
  refuseUnknownFields(body, createFlatShape(GIT_FIELD_NAMES, READ_ONLY_FIELDS));
}

/** True if the name of a tag matches the pattern, in which `*` stands for any characters. */
export function matchesTagPattern(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of rest) {
    const index = name.indexOf(part, at);
    if (index < 0 || index + part.length > name.length - last.length) return false;
    at = index + part.length;
  }
  return true;
}

/** Branch or tag that the service pulls, as a ref such as `refs/heads/main`. */
export interface PulledRef {
  ref: string;
  /** True for a tag: the pull also publishes the actions that it changed. */
  publishesActions: boolean;
}

export const getConnectionBranchRef = ({ branch }: Pick<GitConnectionFields, "branch">): PulledRef => ({
  ref: BRANCH_REF_PREFIX + branch,
  publishesActions: false,
});

/** Returns the ref if it is the connection's branch, or a tag that matches its pattern; otherwise null. */
export function findPulledRefByName(
  ref: string,
  { branch, tagPattern }: Pick<GitConnectionFields, "branch" | "tagPattern">,
): PulledRef | null {
  if (ref === BRANCH_REF_PREFIX + branch) return { ref, publishesActions: false };
  const tag = ref.startsWith(TAG_REF_PREFIX) ? ref.slice(TAG_REF_PREFIX.length) : "";
  if (tag === "" || tagPattern === null || !isRefName(tag) || !matchesTagPattern(tag, tagPattern)) return null;
  return { ref, publishesActions: true };
}

export function checkGitRefIsText(ref: unknown): void {
  if (ref !== undefined && ref !== null && typeof ref !== "string") refuseField("ref", "a branch or tag", ref);
}

/**
 * Parses the hash of the commit that a person has reviewed, so that a pull gets only this commit. Returns null if any commit is allowed.
 * @throws REQUEST_INVALID
 */
export function parseReviewedCommitHash(commit: unknown): string | null {
  if (commit === undefined || commit === null) return null;
  if (typeof commit === "string" && /^[0-9a-f]{40}$/.test(commit)) return commit;
  return refuseField("commit", "the hash of a commit, 40 hexadecimal digits", commit);
}

/**
 * Parses `ref` in the body of `POST …/git/pull`: a branch or tag that the service pulls; if absent, the branch of the connection.
 * @throws ActionError REQUEST_INVALID
 */
export function parsePullRef(ref: unknown, fields: Pick<GitConnectionFields, "branch" | "tagPattern">): PulledRef {
  if (ref === undefined || ref === null) return getConnectionBranchRef(fields);
  const pulled = typeof ref === "string" ? findPulledRefByName(ref, fields) : null;
  if (pulled) return pulled;
  const tags = fields.tagPattern === null ? "" : `, or ${TAG_REF_PREFIX}${fields.tagPattern}`;
  return refuseField("ref", `${getConnectionBranchRef(fields).ref}${tags}`, ref);
}
