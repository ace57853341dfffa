/** Verifies webhooks of Git servers, and returns the branch or tag that was pushed. */
import { timingSafeEqual } from "node:crypto";
import { ActionError } from "../errors.js";
import { describeValue, isObject } from "./described.js";
import type { GitProvider } from "./git-input.js";
import { isSigned, type SignatureAuth, type SignedRequest } from "./http/signatures.js";

/** Matches the hash that an event has if the branch or tag was removed. */
const ZERO_HASH = /^0+$/;
const REF_MAX_CHARACTERS = 300;

const SIGNED_BY: Record<Exclude<GitProvider, "gitlab">, Omit<SignatureAuth, "setting">> = {
  github: { type: "signature", scheme: "github" },
  gitea: { type: "signature", scheme: "hmac", header: "X-Gitea-Signature" },
};

/** True if the header contains the secret, which GitLab sends instead of a signature. Compares in constant time. */
function hasToken({ header }: SignedRequest, secret: string): boolean {
  const [input, expected] = [Buffer.from(header("x-gitlab-token") ?? ""), Buffer.from(secret)];
  return input.length === expected.length && timingSafeEqual(input, expected);
}

/** True if the request has the secret of the webhook, or a signature with it. */
export function isFromGitServer(provider: GitProvider, request: SignedRequest, secret: string): boolean {
  if (provider === "gitlab") return hasToken(request, secret);
  return isSigned(request, [secret], { ...SIGNED_BY[provider], setting: "" }, Date.now() / 1_000);
}

/**
 * Returns the branch or tag that was pushed; null for other events, and if the branch or tag was removed.
 * @throws REQUEST_INVALID for a body that is not JSON, such as a form
 */
export function pushedRef(body: Uint8Array, contentType: string | undefined): string | null {
  let event: unknown;
  try {
    event = JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    const advice = "set the content type of the webhook to application/json";
    throw new ActionError(
      "REQUEST_INVALID",
      `the body must be JSON (got the content type ${describeValue(contentType)}); ${advice}`,
    );
  }
  if (!isObject(event)) return null;
  const { ref, after } = event;
  if (typeof ref !== "string" || ref.length > REF_MAX_CHARACTERS || typeof after !== "string") return null;
  return ZERO_HASH.test(after) ? null : ref;
}
