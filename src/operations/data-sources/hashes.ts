/** Hashes of columns and their comparison, by argon2id. Bounds how much of it goes on at once; knows no column. */
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { ActionError } from "../../errors.js";

/* OWASP's first choice of parameters for argon2id with little memory. */
const MEMORY_KIB = 19_456;
const PASSES = 2;
const LANES = 1;
const TAG_BYTES = 32;
const SALT_BYTES = 16;

const TEXT_MAX_CHARACTERS = 4_096;
/** Each takes a thread for some 30 ms, and 19 MB. */
const AT_ONCE = 2;
const WAITING_MAX = 64;
const RETRY_SECONDS = 2;

/* No more memory and passes than could ever be chosen here: what somebody once stored in the column is no order to compute. */
const SHAPE = /^\$argon2id\$v=19\$m=([1-9]\d{2,4}),t=([1-9]),p=([1-9])\$([\w+/]{11,64})\$([\w+/]{22,128})$/;

const compute = promisify(argon2) as (algorithm: "argon2id", parameters: Argon2Parameters) => Promise<Buffer>;

const plain = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");

let working = 0;
const waiting: (() => void)[] = [];

/** One after the other, a few at once. @throws OVERLOADED */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (working >= AT_ONCE) {
    if (waiting.length >= WAITING_MAX) {
      throw new ActionError("OVERLOADED", "too many passwords are being compared", { retryAfter: RETRY_SECONDS });
    }
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else working += 1;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else working -= 1;
  }
}

async function tagOf(
  text: string,
  nonce: Buffer,
  memory: number,
  passes: number,
  parallelism: number,
  tagLength: number,
) {
  return inTurn(() => compute("argon2id", { message: text, nonce, memory, passes, parallelism, tagLength }));
}

/** @throws REQUEST_INVALID for what is too long to be anybody's password */
export function checkHashable(value: unknown, column: string): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= TEXT_MAX_CHARACTERS) return text;
  const message = `${JSON.stringify(column)} is hashed and may have ${TEXT_MAX_CHARACTERS} characters; ${text.length} came`;
  throw new ActionError("REQUEST_INVALID", message);
}

/** The hash as text in the form of the PHC, with a salt of its own. @throws OVERLOADED */
export async function hash(text: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const tag = await tagOf(text, salt, MEMORY_KIB, PASSES, LANES, TAG_BYTES);
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${plain(salt)}$${plain(tag)}`;
}

/** What nobody's text hashes to, and as costly to compare with as what somebody's does. */
const NOBODYS = `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${plain(randomBytes(SALT_BYTES))}$${plain(randomBytes(TAG_BYTES))}`;

/**
 * Whether the text is what was hashed. It takes as long for what is no hash: a value that was stored before the column was hashed is
 * compared as it is, and nothing with nobody's. @throws OVERLOADED
 */
export async function matches(text: string, stored: unknown): Promise<boolean> {
  const found = typeof stored === "string" ? SHAPE.exec(stored) : null;
  const [, memory, passes, lanes, salt, tag] = found ?? SHAPE.exec(NOBODYS)!;
  const expected = Buffer.from(tag!, "base64");
  const nonce = Buffer.from(salt!, "base64");
  const computed = await tagOf(text, nonce, Number(memory), Number(passes), Number(lanes), expected.length);
  const isSame = timingSafeEqual(computed, expected);
  if (found) return isSame;
  const [given, kept] = [Buffer.from(text), Buffer.from(typeof stored === "string" ? stored : "")];
  return kept.length > 0 && given.length === kept.length && timingSafeEqual(given, kept);
}
