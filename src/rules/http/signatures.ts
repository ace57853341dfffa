/**
 * Verifies signatures of webhooks over the raw bytes of the body. Each scheme is as its sender documents it. Read this
 * file if the requests of a sender are rejected.
 */
import { createHash, createHmac, createPublicKey, timingSafeEqual, verify as verifyWith } from "node:crypto";
import type { HttpAuth, SignatureScheme } from "../../data/action-types.js";
import { mediaTypeOf } from "./body.js";
import { TOLERANCE_SECONDS } from "./where.js";

export type SignatureAuth = Extract<HttpAuth, { type: "signature" }>;

/** Parts of a request that a sender may sign. */
export interface SignedRequest {
  /** Returns the value of a header by its lower-case name; undefined if it is absent or repeated. */
  header(name: string): string | undefined;
  body: Uint8Array;
  /** Public URLs with query under which the sender may have called the service; some schemes sign the URL. */
  urls: readonly string[];
}

/** Returns true if the request has a valid signature with the key. `now` is in seconds since 1970. */
type VerifySignature = (request: SignedRequest, key: string, auth: SignatureAuth, now: number) => boolean;

/** True if the bytes are equal. The comparison takes constant time for inputs of the same length. */
function equalsSafely(input: Uint8Array, expected: Uint8Array): boolean {
  return input.length === expected.length && timingSafeEqual(input, expected);
}

const equalTexts = (input: string, expected: string): boolean =>
  equalsSafely(Buffer.from(input), Buffer.from(expected));

const hmacOf = (algorithm: string, key: string | Buffer, ...parts: (string | Uint8Array)[]): Buffer =>
  parts.reduce((mac, part) => mac.update(part), createHmac(algorithm, key)).digest();

/** Parses seconds since 1970 in decimal digits; NaN for anything else. */
const timeIn = (text: string | undefined): number => (/^\d{1,12}$/.test(text ?? "") ? Number(text) : Number.NaN);

const isWithinTolerance = (
  time: number,
  { toleranceSeconds = TOLERANCE_SECONDS }: SignatureAuth,
  now: number,
): boolean => Math.abs(now - time) <= toleranceSeconds;

/** Maximum number of signatures in a header that are checked. A sender lists two or more while it rotates its key. */
const SIGNATURES_MAX = 20;

const standardWebhooks: VerifySignature = ({ header, body }, key, auth, now) => {
  const [id, time, signatures] = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
  if (!id || !time || !signatures || !isWithinTolerance(timeIn(time), auth, now)) return false;
  const secret = Buffer.from(key.replace(/^whsec_/, ""), "base64");
  if (secret.length === 0) return false;
  const expectedSignature = hmacOf("sha256", secret, `${id}.${time}.`, body).toString("base64");
  const listedSignatures = signatures.split(" ", SIGNATURES_MAX).filter((part) => part.startsWith("v1,"));
  return listedSignatures.some((signature) => equalTexts(signature.slice("v1,".length), expectedSignature));
};

const verifyStripe: VerifySignature = ({ header, body }, key, auth, now) => {
  const parts = (header("stripe-signature") ?? "").split(",", SIGNATURES_MAX).map((part) => part.trim().split("=", 2));
  const time = parts.find(([name]) => name === "t")?.[1];
  if (!isWithinTolerance(timeIn(time), auth, now)) return false;
  const expectedSignature = hmacOf("sha256", key, `${time}.`, body).toString("hex");
  return parts.some(([name, value = ""]) => name === "v1" && equalTexts(value, expectedSignature));
};

const verifyGithub: VerifySignature = ({ header, body }, key) =>
  equalTexts(header("x-hub-signature-256") ?? "", `sha256=${hmacOf("sha256", key, body).toString("hex")}`);

const verifySlack: VerifySignature = ({ header, body }, key, auth, now) => {
  const time = header("x-slack-request-timestamp");
  if (!isWithinTolerance(timeIn(time), auth, now)) return false;
  const expectedSignature = `v0=${hmacOf("sha256", key, `v0:${time}:`, body).toString("hex")}`;
  return equalTexts(header("x-slack-signature") ?? "", expectedSignature);
};

const verifyShopify: VerifySignature = ({ header, body }, key) =>
  equalTexts(header("x-shopify-hmac-sha256") ?? "", hmacOf("sha256", key, body).toString("base64"));

/**
 * Returns the text of a form that Twilio signs: the fields sorted by name, each name followed by its different values.
 * Returns null for unusual names: the text has no separators, so a name could otherwise contain the value of another.
 */
function twilioParams(body: Uint8Array): string | null {
  const text = Buffer.from(body).toString();
  const form = new URLSearchParams(text);
  const names = [...new Set(form.keys())].sort();
  const isUsual = names.every((name) => /^\w+$/.test(name)) && text.split("&").every((pair) => pair.includes("="));
  if (!isUsual && text !== "") return null;
  const joinedValues = (name: string) => [...new Set(form.getAll(name))].sort().map((value) => name + value);
  return names.flatMap(joinedValues).join("");
}

/** Returns the URL without and with its port, because Twilio signs one of the two forms. */
function twilioUrls(url: string): string[] {
  const [, scheme, authority = "", rest] = /^(https?:\/\/)([^/?#]*)(.*)$/s.exec(url) ?? [];
  if (scheme === undefined || !URL.canParse(url)) return [];
  const host = authority.replace(/:\d*$/, "");
  const port = /:(\d+)$/.exec(authority)?.[1] ?? (scheme === "https://" ? "443" : "80");
  return [`${scheme}${host}${rest}`, `${scheme}${host}:${port}${rest}`];
}

const verifyTwilio: VerifySignature = ({ header, body, urls }, key) => {
  const signature = header("x-twilio-signature") ?? "";
  const isForm = mediaTypeOf(header("content-type") ?? null) === "application/x-www-form-urlencoded";
  const candidates = urls.flatMap(twilioUrls).filter((url) => {
    // For a body that is not a form, Twilio adds its digest to the URL and signs only the URL.
    const digest = new URL(url).searchParams.get("bodySHA256");
    if (digest === null) return isForm || body.length === 0;
    return equalTexts(digest.toLowerCase(), createHash("sha256").update(body).digest("hex"));
  });
  return candidates.some((url) => {
    const hasDigest = new URL(url).searchParams.has("bodySHA256");
    const params = isForm && !hasDigest ? twilioParams(body) : "";
    if (params === null) return false;
    const signedText = url + params;
    return equalTexts(signature, hmacOf("sha1", key, signedText).toString("base64"));
  });
};

const verifySendgrid: VerifySignature = ({ header, body }, key, auth, now) => {
  const signature = header("x-twilio-email-event-webhook-signature");
  const time = header("x-twilio-email-event-webhook-timestamp");
  if (!signature || !isWithinTolerance(timeIn(time), auth, now)) return false;
  try {
    const text = key.includes("-----BEGIN") ? key : `-----BEGIN PUBLIC KEY-----\n${key}\n-----END PUBLIC KEY-----`;
    const signedText = Buffer.concat([Buffer.from(time!), body]);
    const bytes = Buffer.from(signature, "base64");
    // Node decodes invalid base64 without an error. Only the canonical text of the bytes is accepted.
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
  if (timestampHeader !== undefined && !isWithinTolerance(timeIn(time), auth, now)) return false;
  const expectedSignature = hmacOf(algorithm, key, ...(timestampHeader === undefined ? [] : [`${time}.`]), body);
  const signature = value.slice(prefix.length);
  if (encoding === "base64") return equalTexts(signature, expectedSignature.toString("base64"));
  const hex = expectedSignature.toString("hex");
  return equalTexts(signature, hex) || equalTexts(signature, hex.toUpperCase());
};

const SIGNATURE_VERIFIERS: Record<SignatureScheme, VerifySignature> = {
  "standard-webhooks": standardWebhooks,
  stripe: verifyStripe,
  github: verifyGithub,
  slack: verifySlack,
  shopify: verifyShopify,
  twilio: verifyTwilio,
  sendgrid: verifySendgrid,
  hmac: verifyHmac,
};

/** Returns the keys in the value of a setting: a string, or an array of two during a rotation. Ignores empty keys. */
export function keysOf(setting: unknown): string[] {
  const values = Array.isArray(setting) ? setting.slice(0, 2) : [setting];
  return values.filter((value) => typeof value === "string" && value.trim() !== "") as string[];
}

/** True if the request has a valid signature with at least one of the keys. */
export const isSigned = (request: SignedRequest, keys: readonly string[], auth: SignatureAuth, now: number): boolean =>
  keys.some((key) => SIGNATURE_VERIFIERS[auth.scheme](request, key, auth, now));

function idIn(body: unknown, field: string): string | null {
  const value = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[field] : null;
  return typeof value === "string" && value !== "" ? value : null;
}

/** Functions that read the ID of an event, for the schemes that send one. */
const EVENT_IDS: Partial<Record<SignatureScheme, (request: SignedRequest, body: unknown) => string | null>> = {
  "standard-webhooks": ({ header }) => header("webhook-id") ?? null,
  stripe: (_request, body) => idIn(body, "id"),
  slack: (_request, body) => idIn(body, "event_id"),
  github: ({ header }) => header("x-github-delivery") ?? null,
  shopify: ({ header }) => header("x-shopify-event-id") ?? null,
  twilio: ({ header }) => header("i-twilio-idempotency-token") ?? null,
};

/** Returns the ID of the request's event; null if there is none. `body` is the parsed body. */
export function eventIdOf(
  request: SignedRequest,
  { auth, idempotencyHeader }: { auth: HttpAuth; idempotencyHeader?: string },
  body: unknown,
): string | null {
  if (idempotencyHeader !== undefined) return request.header(idempotencyHeader.toLowerCase()) || null;
  const findEventId = auth.type === "signature" ? EVENT_IDS[auth.scheme] : undefined;
  return findEventId?.(request, body) || null;
}
