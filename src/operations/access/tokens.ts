/** Creates, recognizes and hashes all tokens of the service. Read this file before you add a kind of credential. */
import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { CredentialKind } from "../../data/credential.js";

const SECRET_BYTES = 32;
/** Prefix of every token of a run. */
export const TASK_TOKEN_PREFIX = "svc_task_";
const CHECKSUM_CHARACTERS = 6;
const BASE62_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Shape of a token. Tokens that were created before checksums existed have none. */
const TOKEN_SHAPE = /^(svc_(?:editor|admin|api|task|viewer|live)_[\w-]{43})([0-9A-Za-z]{6})?$/;

/** Returns the CRC32 of the text before the checksum, as six digits of base62, the most significant first. */
function tokenChecksum(text: string): string {
  let remainder = crc32(text);
  let digits = "";
  while (digits.length < CHECKSUM_CHARACTERS) {
    digits = BASE62_DIGITS.charAt(remainder % BASE62_DIGITS.length) + digits;
    remainder = Math.floor(remainder / BASE62_DIGITS.length);
  }
  return digits;
}

/** Returns a new 256-bit secret with a prefix, for tokens, and for codes that can be exchanged once. */
export const newSecret = (prefix: string): string => `${prefix}_${randomBytes(SECRET_BYTES).toString("base64url")}`;

/**
 * Returns a new token. The prefix lets secret scanners find the token. The checksum lets the service reject a made-up
 * token without a query.
 */
export function newToken(kind: CredentialKind): string {
  const text = newSecret(`svc_${kind}`);
  return text + tokenChecksum(text);
}

/** True if the text has the form of a token of this service, and the right checksum if it has one. */
export function isWellFormedToken(token: string): boolean {
  const tokenMatch = TOKEN_SHAPE.exec(token);
  if (!tokenMatch) return false;
  const [, text, digits] = tokenMatch;
  return digits === undefined || digits === tokenChecksum(text!);
}

/** Returns the SHA-256 by which a token is stored and looked up. */
export function hashToken(token: string): Buffer {
  return hash("sha256", token, "buffer");
}
