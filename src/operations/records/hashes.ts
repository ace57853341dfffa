/**
 * Computes argon2id hashes, and compares passwords with stored hashes. A process computes only two at the same time: apps take turns, and
 * so do the clients of an app.
 */
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { getAddressBlock } from "../../rules/address-block.js";
import type { DataSender } from "./received-data-limiter.js";

/** Memory of argon2id. OWASP recommends this memory with two passes and one lane for computers with little memory. */
const ARGON2_MEMORY_KIB = 19_456;
const ARGON2_PASSES = 2;
const ARGON2_LANES = 1;
const HASH_BYTES = 32;
const SALT_BYTES = 16;

const HASHED_TEXT_MAX_CHARACTERS = 4_096;
/** Maximum concurrent hashes in this process. Each one occupies a thread for about 30 ms, and 19 MB of memory. */
const CONCURRENT_HASHES_MAX = 2;
/** Maximum number of unfinished hashes of one client of an app. Further requests of this client fail with OVERLOADED. */
const WAITING_PER_CLIENT_MAX = 64;
/** Maximum number of unfinished hashes of one app. Further requests for this app fail with OVERLOADED. */
const WAITING_PER_APP_MAX = 512;
const RETRY_AFTER_SECONDS = 2;

/** Matches an argon2id hash in PHC format. Limits memory and passes, because larger numbers in a stored value could cause too much work. */
const HASH_PATTERN = /^\$argon2id\$v=19\$m=([1-9]\d{2,4}),t=([1-9]),p=([1-9])\$([\w+/]{11,64})\$([\w+/]{22,128})$/;

const computeArgon2 = promisify(argon2) as (algorithm: "argon2id", parameters: Argon2Parameters) => Promise<Buffer>;

const toPlainBase64 = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");

/** Key by which waiting hashes take turns: first by app, and then by the app's clients (`sender`). */
export interface HashQueueKey {
  appId: number;
  sender: string;
}

/** Returns the queue key of a client. A client is a network address, or a credential if the address is unknown. */
export const createHashQueueKey = (appId: number, { address, credentialId }: DataSender): HashQueueKey => ({
  appId,
  sender: address === undefined ? `credential ${credentialId}` : getAddressBlock(address),
});

const appHashQueue = new FairSemaphore(CONCURRENT_HASHES_MAX, CONCURRENT_HASHES_MAX);
/** Each client can have only one hash in the queue of its app. So the clients of an app take turns. */
const senderQueue = new FairSemaphore(Number.POSITIVE_INFINITY, 1);
const waitingByKey = new Map<number | string, number>();

/** Counts an unfinished hash. Returns a function that removes it from the count. @throws OVERLOADED if `max` are unfinished */
function countWaiting(key: number | string, max: number): () => void {
  const waitingBefore = waitingByKey.get(key) ?? 0;
  if (waitingBefore >= max) {
    throw new ActionError("OVERLOADED", `too many values wait to be hashed; try again in ${RETRY_AFTER_SECONDS} s`, {
      retryAfter: RETRY_AFTER_SECONDS,
    });
  }
  waitingByKey.set(key, waitingBefore + 1);
  return () => {
    const remainingCount = waitingByKey.get(key)! - 1;
    if (remainingCount > 0) waitingByKey.set(key, remainingCount);
    else waitingByKey.delete(key);
  };
}

/** Runs `work` when it is the turn of this app and client. @throws OVERLOADED if too many of their hashes wait */
async function hashInSlot<T>({ appId, sender }: HashQueueKey, work: () => Promise<T>): Promise<T> {
  const key = `${appId} ${sender}`;
  const uncountApp = countWaiting(appId, WAITING_PER_APP_MAX);
  try {
    const uncountSender = countWaiting(key, WAITING_PER_CLIENT_MAX);
    try {
      const releaseSender = await senderQueue.enter(key);
      const releaseApp = await appHashQueue.enter(appId);
      return await work().finally(() => {
        releaseSender();
        releaseApp();
      });
    } finally {
      uncountSender();
    }
  } finally {
    uncountApp();
  }
}

async function computeHash(
  text: string,
  nonce: Buffer,
  parameters: HashParameters,
  queueKey: HashQueueKey,
): Promise<Buffer> {
  return hashInSlot(queueKey, () => computeArgon2("argon2id", { message: text, nonce, ...parameters }));
}

type HashParameters = Pick<Argon2Parameters, "memory" | "passes" | "parallelism" | "tagLength">;

/** Returns the text to hash. `column` is the name for the error message. @throws REQUEST_INVALID if the text is too long */
export function requireHashableText(value: unknown, column: string): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= HASHED_TEXT_MAX_CHARACTERS) return text;
  const message =
    `the column ${JSON.stringify(column)} is hashed, ` +
    `so its value can have at most ${HASHED_TEXT_MAX_CHARACTERS} characters (got ${text.length})`;
  throw new ActionError("REQUEST_INVALID", message);
}

/** Returns the argon2id hash of a text in PHC format, with a random salt. @throws OVERLOADED if too many hashes wait */
export async function hashText(text: string, queueKey: HashQueueKey): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const parameters = {
    memory: ARGON2_MEMORY_KIB,
    passes: ARGON2_PASSES,
    parallelism: ARGON2_LANES,
    tagLength: HASH_BYTES,
  };
  const tag = await computeHash(text, salt, parameters, queueKey);
  return `$argon2id$v=19$m=${ARGON2_MEMORY_KIB},t=${ARGON2_PASSES},p=${ARGON2_LANES}$${toPlainBase64(salt)}$${toPlainBase64(tag)}`;
}

/** Matches no password. If no hash is stored, passwords are compared with this one, so that the response time is the same. */
const UNMATCHABLE_HASH = `$argon2id$v=19$m=${ARGON2_MEMORY_KIB},t=${ARGON2_PASSES},p=${ARGON2_LANES}$${toPlainBase64(randomBytes(SALT_BYTES))}$${toPlainBase64(randomBytes(HASH_BYTES))}`;

/**
 * True if the password matches the stored value: a hash, or plain text from the time before its column was hashed. Takes about the same
 * time if no value is stored.
 * @throws ActionError OVERLOADED if too many hashes wait
 */
export async function matchesHash(text: string, stored: unknown, queueKey: HashQueueKey): Promise<boolean> {
  const hashMatch = typeof stored === "string" ? HASH_PATTERN.exec(stored) : null;
  const [, memory, passes, lanes, salt, tag] = hashMatch ?? HASH_PATTERN.exec(UNMATCHABLE_HASH)!;
  const expected = Buffer.from(tag!, "base64");
  const nonce = Buffer.from(salt!, "base64");
  const [tagLength, parallelism] = [expected.length, Number(lanes)];
  const computedTag = await computeHash(
    text,
    nonce,
    { memory: Number(memory), passes: Number(passes), parallelism, tagLength },
    queueKey,
  );
  const isSame = timingSafeEqual(computedTag, expected);
  if (hashMatch) return isSame;
  const [input, storedBytes] = [Buffer.from(text), Buffer.from(typeof stored === "string" ? stored : "")];
  return storedBytes.length > 0 && input.length === storedBytes.length && timingSafeEqual(input, storedBytes);
}
