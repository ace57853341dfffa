/** Format of every token of the service: creation, recognition and storage. Read it before you add a kind of credential. */
import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { CredentialKind } from "../../data/credential.js";

const SECRET_BYTES = 32;
/** Prefix of every token of a run. */
export const TASK_TOKEN_PREFIX = "svc_task_";
const CHECKSUM_CHARACTERS = 6;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Tokens that were created before checksums existed have none. */
const TOKEN_SHAPE = /^(svc_(?:editor|admin|api|task|viewer|live)_[\w-]{43})([0-9A-Za-z]{6})?$/;

/** CRC32 of the text before it, as six digits of base62, the most significant first. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  while (digits.length < CHECKSUM_CHARACTERS) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}

/** Returns a new 256-bit secret with a prefix, for codes that are exchanged once. */
export const newSecret = (prefix: string): string => `${prefix}_${randomBytes(SECRET_BYTES).toString("base64url")}`;

/** Returns a new token: the prefix lets secret scanners find it, the checksum lets the service reject a made-up one without a query. */
export function newToken(kind: CredentialKind): string {
  const text = newSecret(`svc_${kind}`);
  return text + checksum(text);
}

/** True if the service can have issued this token: its shape is right, and its checksum too if it has one. */
export function isWellFormedToken(token: string): boolean {
  const found = TOKEN_SHAPE.exec(token);
  if (!found) return false;
  const [, text, digits] = found;
  return digits === undefined || digits === checksum(text!);
}

/** SHA-256 by which a token is stored and looked up. */
export function hashToken(token: string): Buffer {
  return hash("sha256", token, "buffer");
}
