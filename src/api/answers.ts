/**
 * Counts the bytes of the responses that the process builds or sends: for each request, each app, and in total. A resolver reserves the
 * bytes of a large read before it starts, so that an overloaded service rejects the read before any work.
 */
import { getHeapStatistics } from "node:v8";
import { ActionError } from "../errors.js";
import { ANSWER_MAX_BYTES } from "../limits.js";
import type { Caller } from "../rules/access.js";
import { JsonText } from "../rules/json-text.js";
import { createTurns, type Turns } from "./turns.js";

const RETRY_SECONDS = 2;
/** Share of the heap for responses. Each response exists several times: as sent by the database, as text, and as bytes for the socket. */
const SHARE_OF_HEAP = 1 / 10;
/**
 * Share of the free bytes that one app's callers can use. They leave half of the total to all others; the next app can use half of the
 * rest.
 */
const SHARE_OF_OWNER = 1 / 2;
/**
 * The JSON text of a response may be this many times the limit for read data, because it also contains names and
 * brackets.
 */
const WRITTEN_SIZE_FACTOR = 2;
/** Minimum for all responses. With fewer bytes, two of the largest responses would not fit. */
const TOTAL_MIN_BYTES = 4 * ANSWER_MAX_BYTES;
/**
 * The result of a change may use this many times the bytes that reads may use, because a completed change cannot be
 * rejected.
 */
const CHANGE_RESULT_FACTOR = 2;
/** Results below this size are returned at any load. */
const SMALL_BYTES = 64 * 1024;
/**
 * Reads above this many bytes wait for their owner's turn. The value was measured: it costs as much time as reading and sending one
 * megabyte.
 */
const LARGE_BYTES = 512 * 1024;
const MS_PER_MB = 10;

export interface AnswersOptions {
  /** Limit for all responses of the process. */
  totalBytes: number;
  ofOwnerBytes: number;
  ofAnswerBytes: number;
}

/** Counts the bytes of one request's response. */
export interface AnswerBudget {
  /**
   * Counts bytes before they are read. Resolves when they can be read.
   * @throws ActionError REQUEST_INVALID beyond the limit of one response and after the caller has disconnected; OVERLOADED beyond the limit
   * of all responses; RATE_LIMIT_EXCEEDED if too many responses of this owner wait
   */
  readonly reserve: (bytes: number) => Promise<void>;
  /**
   * Runs parts of a request's work one after the other and counts the bytes of their results. Parts that are requested at the same time
   * wait here, so that they hold no database connection. A part that has finished keeps its effect even if its result is too large; the
   * next part is then rejected. No part starts after the caller has disconnected.
   * @throws as `reserve`, before the part starts; OVERLOADED after the part if there is no capacity for its result
   */
  part<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Counts the bytes of the response as it will be written. A query can request one value under twenty names, so the written response can
   * be much larger than the read data.
   * @throws ActionError REQUEST_INVALID if the response is too large
   */
  whole(result: unknown): void;
  /**
   * Frees the bytes. Call it when the response has been sent or its caller has disconnected. The bytes of a running part count until that
   * part has ended.
   */
  readonly close: () => void;
  /** Calls `call` once, when the response is closed and the last part of its work has ended. */
  readonly whenEnded: (call: () => void) => void;
}

function defaultAnswersOptions(): AnswersOptions {
  const totalBytes = Math.max(TOTAL_MIN_BYTES, getHeapStatistics().heap_size_limit * SHARE_OF_HEAP);
  return { totalBytes, ofOwnerBytes: totalBytes * SHARE_OF_OWNER, ofAnswerBytes: ANSWER_MAX_BYTES };
}

/** Returns an estimate: the characters of all strings, and a constant for each value. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (value instanceof JsonText) return value.source.length;
  if (Array.isArray(value)) return value.reduce<number>((sum, element) => sum + sizeOf(element), 8);
  let sum = 8;
  for (const key of Object.keys(value)) sum += key.length + sizeOf((value as Record<string, unknown>)[key]);
  return sum;
}

/** Returns the key of the owner of a quota: the credentials of an app, or a person. */
const credentialOwner = (caller: Caller | null): string =>
  caller === null ? "nobody" : caller.appId === null ? `person ${caller.personId}` : ownerOfApp(caller.appId);
const ownerOfApp = (appId: number): string => `app ${appId}`;

export type Answers = ReturnType<typeof createAnswers>;

export function createAnswers(
  { totalBytes, ofOwnerBytes, ofAnswerBytes }: AnswersOptions = defaultAnswersOptions(),
  turns: Turns = createTurns(),
) {
  const byOwner = new Map<string, number>();
  const sizeMessage = `a response can have at most ${Math.floor(ofAnswerBytes / 2 ** 20)} MB`;
  const tooLarge = () => new ActionError("REQUEST_INVALID", `${sizeMessage}: request fewer fields or entries`);
  const tooLargeAfter = () =>
    new ActionError("REQUEST_INVALID", `${sizeMessage}: the change was made, but its result is omitted`);
  const overloadedError = (message: string) => new ActionError("OVERLOADED", message, { retryAfter: RETRY_SECONDS });
  const tooMany = () => overloadedError(`too many large responses are being sent; try again in ${RETRY_SECONDS} s`);
  let total = 0;

  function addHeldBytes(owner: string, bytes: number): void {
    total += bytes;
    const sum = (byOwner.get(owner) ?? 0) + bytes;
    if (sum > 0) byOwner.set(owner, sum);
    else byOwner.delete(owner);
  }

  /**
   * True if the owner may use this many more bytes. `times` is the multiple of the total for reads that may be used.
   */
  function hasCapacity(owner: string, bytes: number, times: number): boolean {
    const ownerBytes = byOwner.get(owner) ?? 0;
    const othersBytes = total - ownerBytes;
    // Share of each owner: half of the total for the first owner, half of the rest for the second, and so on.
    const share = (ofOwnerBytes / totalBytes) * (times * totalBytes - othersBytes);
    return ownerBytes + bytes <= share;
  }

  return {
    /** Returns the counted bytes of all responses that are in progress. */
    held: (): number => total,

    /**
     * Counts the bytes of one text that is sent to several sockets of an app. The returned function frees them.
     * @throws REQUEST_INVALID if the text is several times larger than a response may be; OVERLOADED if there is no capacity
     */
    share(appId: number, bytes: number): () => void {
      const owner = ownerOfApp(appId);
      if (bytes > WRITTEN_SIZE_FACTOR * ofAnswerBytes) throw tooLarge();
      if (!hasCapacity(owner, bytes, 1)) throw tooMany();
      addHeldBytes(owner, bytes);
      return () => addHeldBytes(owner, -bytes);
    },

    /** Starts counting for one request. */
    open(caller: Caller | null): AnswerBudget {
      const owner = credentialOwner(caller);
      let heldBytes = 0;
      let isOpen = true;
      let partCount = 0;
      const endings: (() => void)[] = [];
      let partOrder: Promise<unknown> | null = null;

      function admitBytes(bytes: number): void {
        if (!isOpen) throw new ActionError("REQUEST_INVALID", "the client disconnected before the response");
        if (heldBytes > 0 && heldBytes + bytes > ofAnswerBytes) throw tooLarge();
        if (!hasCapacity(owner, bytes, 1)) throw tooMany();
      }

      function countBytes(bytes: number): void {
        heldBytes += bytes;
        addHeldBytes(owner, bytes);
      }

      /** Releases the counted bytes. A part that is still running keeps the bytes that it has read. */
      function releaseBytes(): void {
        if (isOpen || partCount > 0) return;
        addHeldBytes(owner, -heldBytes);
        heldBytes = 0;
        for (const call of endings.splice(0)) call();
      }

      async function countResult<T>(work: () => Promise<T>): Promise<T> {
        try {
          admitBytes(0);
          const heldBefore = heldBytes;
          const result = await work();
          const bytes = Math.max(0, sizeOf(result) - (heldBytes - heldBefore));
          if (heldBefore > 0 && heldBytes + bytes > ofAnswerBytes) throw tooLargeAfter();
          if (bytes > SMALL_BYTES && !hasCapacity(owner, bytes, CHANGE_RESULT_FACTOR)) {
            throw overloadedError(
              "the change was made, but its result is too large while other responses are being sent",
            );
          }
          countBytes(bytes);
          return result;
        } finally {
          partCount -= 1;
          releaseBytes();
        }
      }

      return {
        async reserve(bytes) {
          admitBytes(bytes);
          countBytes(bytes);
          if (bytes <= LARGE_BYTES) return;
          await turns.takeTurn(owner, () => undefined);
          turns.owe(owner, (bytes / 2 ** 20) * MS_PER_MB);
          // The caller may have disconnected while the request waited.
          admitBytes(0);
        },
        part<T>(work: () => Promise<T>): Promise<T> {
          partCount += 1;
          const done = partOrder === null ? countResult(work) : partOrder.then(() => countResult(work));
          // The caller receives the failure from `done`.
          partOrder = done.catch(() => undefined);
          return done;
        },
        whole(result) {
          const bytes = sizeOf(result);
          if (bytes > ofAnswerBytes) throw tooLarge();
          countBytes(Math.max(0, bytes - heldBytes));
          releaseBytes();
        },
        close() {
          isOpen = false;
          releaseBytes();
        },
        whenEnded(call) {
          endings.push(call);
          releaseBytes();
        },
      };
    },
  };
}
