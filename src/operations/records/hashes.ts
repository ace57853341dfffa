/**
 * Computes argon2id hashes for hashed columns, and compares values with them. Only a few hashes are computed at the
 * same time. Apps take turns, and within an app the clients take turns.
 */
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { addressBlock } from "../../rules/address-block.js";
import type { Sender } from "./intake.js";

/** Parameters of argon2id, as OWASP recommends them for little memory: memory, passes and lanes. */
const MEMORY_KIB = 19_456;
const ARGON2_PASSES = 2;
const ARGON2_LANES = 1;
const TAG_BYTES = 32;
const SALT_BYTES = 16;

const TEXT_MAX_CHARACTERS = 4_096;
/**
 * Maximum number of hashes that are computed at the same time. Each needs a thread for some 30 ms, and 19 MB of memory.
 */
const HASHES_AT_ONCE = 2;
/** Maximum number of waiting hashes of one client of an app. Further requests are rejected. */
const WAITING_PER_SENDER = 64;
/** Maximum number of waiting hashes of one app. Further requests are rejected, without effect on other apps. */
const WAITING_PER_APP = 512;
const RETRY_SECONDS = 2;

/**
 * Matches an argon2id hash in PHC format whose memory and passes are limited. Other values in the column could cause
 * unlimited work.
 */
const HASH_SHAPE = /^\$argon2id\$v=19\$m=([1-9]\d{2,4}),t=([1-9]),p=([1-9])\$([\w+/]{11,64})\$([\w+/]{22,128})$/;

const computeArgon2 = promisify(argon2) as (algorithm: "argon2id", parameters: Argon2Parameters) => Promise<Buffer>;

const toPlainBase64 = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");

/**
 * Determines when a hash is computed: `appId` takes turns with other apps, and `sender` with other clients of the app.
 */
export interface HashTurn {
  appId: number;
  sender: string;
}

/** Returns the turn of a caller, who is identified by the network address or, without one, by the credential. */
export const hashTurn = (appId: number, { address, credentialId }: Sender): HashTurn => ({
  appId,
  sender: address === undefined ? `credential ${credentialId}` : addressBlock(address),
});

const appHashQueue = new FairSemaphore(HASHES_AT_ONCE, HASHES_AT_ONCE);
/** Lets only one hash of each client into the queue of its app, so that the clients of an app take turns. */
const senderQueue = new FairSemaphore(Number.POSITIVE_INFINITY, 1);
const waitingByKey = new Map<number | string, number>();

/** Counts a waiting hash. @returns a function that removes it from the count @throws ActionError OVERLOADED */
function countWaiting(key: number | string, max: number): () => void {
  const waitingBefore = waitingByKey.get(key) ?? 0;
  if (waitingBefore >= max) {
    throw new ActionError("OVERLOADED", `too many passwords wait to be hashed; try again in ${RETRY_SECONDS} s`, {
      retryAfter: RETRY_SECONDS,
    });
  }
  waitingByKey.set(key, waitingBefore + 1);
  return () => {
    const waitingLeft = waitingByKey.get(key)! - 1;
    if (waitingLeft > 0) waitingByKey.set(key, waitingLeft);
    else waitingByKey.delete(key);
  };
}

/** Runs `work` when it is its turn. @throws OVERLOADED if too many hashes of the same client or app wait */
async function hashInTurn<T>({ appId, sender }: HashTurn, work: () => Promise<T>): Promise<T> {
  const key = `${appId} ${sender}`;
  const uncountApp = countWaiting(appId, WAITING_PER_APP);
  try {
    const uncountSender = countWaiting(key, WAITING_PER_SENDER);
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

async function tagOf(text: string, nonce: Buffer, parameters: HashParameters, turn: HashTurn): Promise<Buffer> {
  return hashInTurn(turn, () => computeArgon2("argon2id", { message: text, nonce, ...parameters }));
}

type HashParameters = Pick<Argon2Parameters, "memory" | "passes" | "parallelism" | "tagLength">;

/** Returns the text of a value that will be hashed. @throws REQUEST_INVALID if the text is too long */
export function checkHashable(value: unknown, column: string): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= TEXT_MAX_CHARACTERS) return text;
  const message =
    `the column ${JSON.stringify(column)} is hashed, ` +
    `so its value can have at most ${TEXT_MAX_CHARACTERS} characters (got ${text.length})`;
  throw new ActionError("REQUEST_INVALID", message);
}

/** Returns the hash in PHC format, with a random salt. @throws OVERLOADED */
export async function hashText(text: string, turn: HashTurn): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const parameters = { memory: MEMORY_KIB, passes: ARGON2_PASSES, parallelism: ARGON2_LANES, tagLength: TAG_BYTES };
  const tag = await tagOf(text, salt, parameters, turn);
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${ARGON2_PASSES},p=${ARGON2_LANES}$${toPlainBase64(salt)}$${toPlainBase64(tag)}`;
}

/** Hash that matches no password. It is compared if there is no hash, so that the duration does not reveal this. */
const UNKNOWN_HASH = `$argon2id$v=19$m=${MEMORY_KIB},t=${ARGON2_PASSES},p=${ARGON2_LANES}$${toPlainBase64(randomBytes(SALT_BYTES))}$${toPlainBase64(randomBytes(TAG_BYTES))}`;

/**
 * True if the password matches the stored hash. A stored value from before the column was hashed is compared directly.
 * Every call takes equally long, also if there is no stored value.
 * @throws ActionError OVERLOADED
 */
export async function matchesHash(text: string, stored: unknown, turn: HashTurn): Promise<boolean> {
  const hashMatch = typeof stored === "string" ? HASH_SHAPE.exec(stored) : null;
  const [, memory, passes, lanes, salt, tag] = hashMatch ?? HASH_SHAPE.exec(UNKNOWN_HASH)!;
  const expected = Buffer.from(tag!, "base64");
  const nonce = Buffer.from(salt!, "base64");
  const [tagLength, parallelism] = [expected.length, Number(lanes)];
  const computedTag = await tagOf(
    text,
    nonce,
    { memory: Number(memory), passes: Number(passes), parallelism, tagLength },
    turn,
  );
  const isSame = timingSafeEqual(computedTag, expected);
  if (hashMatch) return isSame;
  const [input, storedBytes] = [Buffer.from(text), Buffer.from(typeof stored === "string" ? stored : "")];
  return storedBytes.length > 0 && input.length === storedBytes.length && timingSafeEqual(input, storedBytes);
}
