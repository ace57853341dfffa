/**
 * Verifies the signatures of webhook requests, as Stripe, GitHub and other senders document them. Most signatures cover the raw bytes of
 * the body; Twilio's covers the URL, with the fields of a form or a digest of the body. Read this file if the service rejects the requests
 * of a sender.
 */
import { createHash, createHmac, createPublicKey, timingSafeEqual, verify as verifyWith } from "node:crypto";
import type { HttpAuth, SignatureScheme } from "../../data/action-types.js";
import { getMediaType } from "./body.js";
import { DEFAULT_SIGNATURE_TOLERANCE_SECONDS } from "./where.js";

export type SignatureAuth = Extract<HttpAuth, { type: "signature" }>;

/** Parts of a request that a sender may sign. */
export interface SignedRequest {
  /** Returns a header by its lower-case name; undefined if the request does not have it, or has it more than once. */
  header(name: string): string | undefined;
  body: Uint8Array;
  /** Possible public URLs of the request. Some senders sign the URL, and a proxy may have changed it. */
  urls: readonly string[];
}

/** True if the request has a valid signature with the key. `now` is the Unix time in seconds. */
type VerifySignature = (request: SignedRequest, key: string, auth: SignatureAuth, now: number) => boolean;

/** True if the bytes are equal. For inputs of the same length, the comparison takes constant time. */
function equalsInConstantTime(input: Uint8Array, expected: Uint8Array): boolean {
  return input.length === expected.length && timingSafeEqual(input, expected);
}

const textsEqualInConstantTime = (input: string, expected: string): boolean =>
  equalsInConstantTime(Buffer.from(input), Buffer.from(expected));

const computeHmac = (algorithm: string, key: string | Buffer, ...parts: (string | Uint8Array)[]): Buffer =>
  parts.reduce((mac, part) => mac.update(part), createHmac(algorithm, key)).digest();

const parseUnixSeconds = (text: string | undefined): number =>
  /^\d{1,12}$/.test(text ?? "") ? Number(text) : Number.NaN;

const isWithinTolerance = (
  time: number,
  { toleranceSeconds = DEFAULT_SIGNATURE_TOLERANCE_SECONDS }: SignatureAuth,
  now: number,
): boolean => Math.abs(now - time) <= toleranceSeconds;

/** Maximum number of signatures in one header that are checked. A sender that changes its key sends one for each key. */
const SIGNATURES_MAX = 20;

const verifyStandardWebhooks: VerifySignature = ({ header, body }, key, auth, now) => {
  const [id, time, signatures] = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
  if (!id || !time || !signatures || !isWithinTolerance(parseUnixSeconds(time), auth, now)) return false;
  const secret = Buffer.from(key.replace(/^whsec_/, ""), "base64");
  if (secret.length === 0) return false;
  const expectedSignature = computeHmac("sha256", secret, `${id}.${time}.`, body).toString("base64");
  const listedSignatures = signatures.split(" ", SIGNATURES_MAX).filter((part) => part.startsWith("v1,"));
  return listedSignatures.some((signature) =>
    textsEqualInConstantTime(signature.slice("v1,".length), expectedSignature),
  );
};

const verifyStripe: VerifySignature = ({ header, body }, key, auth, now) => {
  const parts = (header("stripe-signature") ?? "").split(",", SIGNATURES_MAX).map((part) => part.trim().split("=", 2));
  const time = parts.find(([name]) => name === "t")?.[1];
  if (!isWithinTolerance(parseUnixSeconds(time), auth, now)) return false;
  const expectedSignature = computeHmac("sha256", key, `${time}.`, body).toString("hex");
  return parts.some(([name, value = ""]) => name === "v1" && textsEqualInConstantTime(value, expectedSignature));
};

const verifyGithub: VerifySignature = ({ header, body }, key) =>
  textsEqualInConstantTime(
    header("x-hub-signature-256") ?? "",
    `sha256=${computeHmac("sha256", key, body).toString("hex")}`,
  );

const verifySlack: VerifySignature = ({ header, body }, key, auth, now) => {
  const time = header("x-slack-request-timestamp");
  if (!isWithinTolerance(parseUnixSeconds(time), auth, now)) return false;
  const expectedSignature = `v0=${computeHmac("sha256", key, `v0:${time}:`, body).toString("hex")}`;
  return textsEqualInConstantTime(header("x-slack-signature") ?? "", expectedSignature);
};

const verifyShopify: VerifySignature = ({ header, body }, key) =>
  textsEqualInConstantTime(header("x-shopify-hmac-sha256") ?? "", computeHmac("sha256", key, body).toString("base64"));

/**
 * Returns the form as Twilio signs it: sorted fields, each value after its name. Returns null for unusual names and for fields without "=".
 * Different forms can still have the same text, because Twilio signs no separators.
 */
function createTwilioSignedText(body: Uint8Array): string | null {
  const text = Buffer.from(body).toString();
  const form = new URLSearchParams(text);
  const names = [...new Set(form.keys())].sort();
  const hasUsualFields =
    names.every((name) => /^\w+$/.test(name)) && text.split("&").every((pair) => pair.includes("="));
  if (!hasUsualFields && text !== "") return null;
  const joinValues = (name: string) => [...new Set(form.getAll(name))].sort().map((value) => name + value);
  return names.flatMap(joinValues).join("");
}

/** Returns the URL with and without its port, because Twilio signs one of these two. */
function listTwilioUrlVariants(url: string): string[] {
  const [, scheme, authority = "", rest] = /^(https?:\/\/)([^/?#]*)(.*)$/s.exec(url) ?? [];
  if (scheme === undefined || !URL.canParse(url)) return [];
  const host = authority.replace(/:\d*$/, "");
  const port = /:(\d+)$/.exec(authority)?.[1] ?? (scheme === "https://" ? "443" : "80");
  return [`${scheme}${host}${rest}`, `${scheme}${host}:${port}${rest}`];
}

const verifyTwilio: VerifySignature = ({ header, body, urls }, key) => {
  const signature = header("x-twilio-signature") ?? "";
  const isForm = getMediaType(header("content-type") ?? null) === "application/x-www-form-urlencoded";
  const candidates = urls.flatMap(listTwilioUrlVariants).filter((url) => {
    // If the body is not a form, Twilio adds its SHA-256 digest to the URL's query, and signs only the URL.
    const digest = new URL(url).searchParams.get("bodySHA256");
    if (digest === null) return isForm || body.length === 0;
    return textsEqualInConstantTime(digest.toLowerCase(), createHash("sha256").update(body).digest("hex"));
  });
  return candidates.some((url) => {
    const hasDigest = new URL(url).searchParams.has("bodySHA256");
    const params = isForm && !hasDigest ? createTwilioSignedText(body) : "";
    if (params === null) return false;
    const signedText = url + params;
    return textsEqualInConstantTime(signature, computeHmac("sha1", key, signedText).toString("base64"));
  });
};

const verifySendgrid: VerifySignature = ({ header, body }, key, auth, now) => {
  const signature = header("x-twilio-email-event-webhook-signature");
  const time = header("x-twilio-email-event-webhook-timestamp");
  if (!signature || !isWithinTolerance(parseUnixSeconds(time), auth, now)) return false;
  try {
    const text = key.includes("-----BEGIN") ? key : `-----BEGIN PUBLIC KEY-----\n${key}\n-----END PUBLIC KEY-----`;
    const signedText = Buffer.concat([Buffer.from(time!), body]);
    const bytes = Buffer.from(signature, "base64");
    // Node accepts invalid base64. So the signature must be the same text after it is decoded and encoded again.
    if (bytes.toString("base64") !== signature) return false;
    return verifyWith("sha256", signedText, createPublicKey(text), bytes);
  } catch {
    return false;
  }
};

const verifyHmac: VerifySignature = ({ header, body }, key, auth, now) => {
  const { algorithm = "sha256", encoding = "hex", prefix = "", timestampHeader } = auth;
  const value = header((auth.header ?? "").toLowerCase()) ?? "";
  if (!value.startsWith(prefix)) return false;
  const time = timestampHeader === undefined ? undefined : header(timestampHeader.toLowerCase());
  if (timestampHeader !== undefined && !isWithinTolerance(parseUnixSeconds(time), auth, now)) return false;
  const expectedSignature = computeHmac(algorithm, key, ...(timestampHeader === undefined ? [] : [`${time}.`]), body);
  const signature = value.slice(prefix.length);
  if (encoding === "base64") return textsEqualInConstantTime(signature, expectedSignature.toString("base64"));
  const hex = expectedSignature.toString("hex");
  return textsEqualInConstantTime(signature, hex) || textsEqualInConstantTime(signature, hex.toUpperCase());
};

const SIGNATURE_VERIFIERS: Record<SignatureScheme, VerifySignature> = {
  "standard-webhooks": verifyStandardWebhooks,
  stripe: verifyStripe,
  github: verifyGithub,
  slack: verifySlack,
  shopify: verifyShopify,
  twilio: verifyTwilio,
  sendgrid: verifySendgrid,
  hmac: verifyHmac,
};

/** Returns the signing keys in the value of a setting: a string or, while the key is being changed, an array of two. Ignores empty keys. */
export function parseSigningKeys(setting: unknown): string[] {
  const values = Array.isArray(setting) ? setting.slice(0, 2) : [setting];
  return values.filter((value) => typeof value === "string" && value.trim() !== "") as string[];
}

export const hasValidSignature = (
  request: SignedRequest,
  keys: readonly string[],
  auth: SignatureAuth,
  now: number,
): boolean => keys.some((key) => SIGNATURE_VERIFIERS[auth.scheme](request, key, auth, now));

function readIdField(body: unknown, field: string): string | null {
  const value = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[field] : null;
  return typeof value === "string" && value !== "" ? value : null;
}

/** Functions that read the event ID from a request. Schemes whose senders send none are absent. */
const EVENT_ID_READERS: Partial<Record<SignatureScheme, (request: SignedRequest, body: unknown) => string | null>> = {
  "standard-webhooks": ({ header }) => header("webhook-id") ?? null,
  stripe: (_request, body) => readIdField(body, "id"),
  slack: (_request, body) => readIdField(body, "event_id"),
  github: ({ header }) => header("x-github-delivery") ?? null,
  shopify: ({ header }) => header("x-shopify-event-id") ?? null,
  twilio: ({ header }) => header("i-twilio-idempotency-token") ?? null,
};

/**
 * Returns the event ID that the sender put into the request; null if there is none.
 * @param body parsed body of the request
 */
export function readWebhookEventId(
  request: SignedRequest,
  { auth, idempotencyHeader }: { auth: HttpAuth; idempotencyHeader?: string },
  body: unknown,
): string | null {
  if (idempotencyHeader !== undefined) return request.header(idempotencyHeader.toLowerCase()) || null;
  const findEventId = auth.type === "signature" ? EVENT_ID_READERS[auth.scheme] : undefined;
  return findEventId?.(request, body) || null;
}
