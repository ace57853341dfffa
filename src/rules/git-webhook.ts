/** Verifies webhook requests of Git servers, and returns the branch or tag that was pushed to the repository. */
import { timingSafeEqual } from "node:crypto";
import { ActionError } from "../errors.js";
import { describeValue, isObject } from "./describe-value.js";
import type { GitProvider } from "./git-input.js";
import { hasValidSignature, type SignatureAuth, type SignedRequest } from "./http/signatures.js";

/** Matches a hash of zeros, which a push event contains if a branch or tag was deleted. */
const ZERO_HASH_PATTERN = /^0+$/;
const REF_MAX_CHARACTERS = 300;

const SIGNATURE_BY_PROVIDER: Record<Exclude<GitProvider, "gitlab">, Omit<SignatureAuth, "setting">> = {
  github: { type: "signature", scheme: "github" },
  gitea: { type: "signature", scheme: "hmac", header: "X-Gitea-Signature" },
};

/**
 * True if the header X-Gitlab-Token contains the webhook's secret, which GitLab sends instead of a signature. Compares in constant time.
 */
function hasSecretHeader({ header }: SignedRequest, secret: string): boolean {
  const [input, expected] = [Buffer.from(header("x-gitlab-token") ?? ""), Buffer.from(secret)];
  return input.length === expected.length && timingSafeEqual(input, expected);
}

/** True if the request contains the webhook's secret (GitLab), or a signature made with the secret (other Git servers). */
export function isAuthenticGitWebhook(provider: GitProvider, request: SignedRequest, secret: string): boolean {
  if (provider === "gitlab") return hasSecretHeader(request, secret);
  return hasValidSignature(request, [secret], { ...SIGNATURE_BY_PROVIDER[provider], setting: "" }, Date.now() / 1_000);
}

/**
 * Returns the pushed branch or tag as a ref such as `refs/heads/main`; null for other events, and if the branch or tag was deleted.
 * @throws REQUEST_INVALID for a body that is not JSON, such as a form
 */
export function parsePushedRef(body: Uint8Array, contentType: string | undefined): string | null {
  let event: unknown;
  try {
    event = JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    const advice = contentType?.includes("json") ? "" : "; set the content type of the webhook to application/json";
    throw new ActionError(
      "REQUEST_INVALID",
      `the body must be JSON (got the content type ${describeValue(contentType)})${advice}`,
    );
  }
  if (!isObject(event)) return null;
  const { ref, after } = event;
  if (typeof ref !== "string" || ref.length > REF_MAX_CHARACTERS || typeof after !== "string") return null;
  return ZERO_HASH_PATTERN.test(after) ? null : ref;
}
