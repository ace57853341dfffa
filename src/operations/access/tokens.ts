/** Creates, recognizes and hashes all tokens of the service. Read this file before you add a kind of credential. */
import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { CredentialKind } from "../../data/credential.js";

const SECRET_BYTES = 32;
/** Prefix of run tokens. The client library authenticates a run's requests to the service with the run's token. */
export const RUN_TOKEN_PREFIX = "svc_task_";
const CHECKSUM_CHARACTERS = 6;
const BASE62_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Format of a token: prefix, secret, and a checksum of six characters. Tokens from older releases have no checksum. */
const TOKEN_PATTERN = /^(svc_(?:editor|admin|api|task|viewer|live)_[\w-]{43})([0-9A-Za-z]{6})?$/;

/** Returns the CRC32 checksum of `text`, a token without its checksum, as six base62 digits, the most significant digit first. */
function computeTokenChecksum(text: string): string {
  let remainder = crc32(text);
  let digits = "";
  while (digits.length < CHECKSUM_CHARACTERS) {
    digits = BASE62_DIGITS.charAt(remainder % BASE62_DIGITS.length) + digits;
    remainder = Math.floor(remainder / BASE62_DIGITS.length);
  }
  return digits;
}

export const generateSecret = (prefix: string): string =>
  `${prefix}_${randomBytes(SECRET_BYTES).toString("base64url")}`;

/**
 * Generates a token with a prefix for secret scanners. It has a checksum, so that the service can reject most invented tokens without a
 * database query.
 */
export function generateToken(kind: CredentialKind): string {
  const text = generateSecret(`svc_${kind}`);
  return text + computeTokenChecksum(text);
}

/** True if `token` has the format of a token of this service, and its checksum (if it has one) is correct. */
export function isWellFormedToken(token: string): boolean {
  const tokenMatch = TOKEN_PATTERN.exec(token);
  if (!tokenMatch) return false;
  const [, text, digits] = tokenMatch;
  return digits === undefined || digits === computeTokenChecksum(text!);
}

/** Returns the SHA-256 hash of a token. The database stores this hash instead of the token. */
export function hashToken(token: string): Buffer {
  return hash("sha256", token, "buffer");
}
