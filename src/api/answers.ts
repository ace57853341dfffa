/**
 * How many bytes the answers hold that are being made or sent: of one request, of one app's callers, of the whole process. Whoever
 * is about to read much says so first, and is refused while it can still be refused. Knows no operation.
 */
import { getHeapStatistics } from "node:v8";
import { ActionError } from "../errors.js";
import { ANSWER_MAX_BYTES } from "../limits.js";
import type { Caller } from "../rules/access.js";
import { JsonText } from "../rules/json-text.js";

const RETRY_SECONDS = 2;
/** An answer exists several times on its way: as the database sent it, as text, as bytes for the socket. */
const SHARE_OF_HEAP = 1 / 10;
/** One app's callers leave half of it to all others. */
const SHARE_OF_OWNER = 1 / 2;
/** One page may come on top of what was counted, and names and brackets with it. */
const WRITTEN_ANSWERS = 2;
/** Below that, two of the largest answers would not fit. */
const LEAST_BYTES = 4 * ANSWER_MAX_BYTES;

export interface AnswersOptions {
  /** Of all answers in the process. */
  totalBytes: number;
  ofOwnerBytes: number;
  ofAnswerBytes: number;
}

/** What one request may still make. */
export interface Answer {
  /** Counts bytes before they are read. @throws REQUEST_INVALID beyond one answer's bytes, OVERLOADED beyond those of all */
  readonly reserve: (bytes: number) => void;
  /**
   * Does one part after the other, and counts what it gave; parts that are asked for at once wait here and not in the database. What
   * a part has done stands, whatever it gave: the next one is refused. @throws as `reserve`, before the part is begun
   */
  part<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Counts the answer as it will be written: what was read once may be asked for under twenty names.
   * @throws REQUEST_INVALID where it would be several times what an answer holds
   */
  whole(result: unknown): void;
  /** The answer has left, or nobody waits for it any more. */
  readonly close: () => void;
}

function defaults(): AnswersOptions {
  const totalBytes = Math.max(LEAST_BYTES, getHeapStatistics().heap_size_limit * SHARE_OF_HEAP);
  return { totalBytes, ofOwnerBytes: totalBytes * SHARE_OF_OWNER, ofAnswerBytes: ANSWER_MAX_BYTES };
}

/** An estimate: the characters of all texts in it, and a little for every value. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (value instanceof JsonText) return value.text.length;
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + sizeOf(one), 8);
  let sum = 8;
  for (const key in value) sum += key.length + sizeOf((value as Record<string, unknown>)[key]);
  return sum;
}

/** Those who share one bucket: an app's credentials, or a person. */
const ownerOf = (caller: Caller | null): string =>
  caller === null ? "nobody" : caller.appId === null ? `person ${caller.personId}` : `app ${caller.appId}`;

export type Answers = ReturnType<typeof createAnswers>;

export function createAnswers({ totalBytes, ofOwnerBytes, ofAnswerBytes }: AnswersOptions = defaults()) {
  const byOwner = new Map<string, number>();
  const most = `an answer holds at most ${Math.floor(ofAnswerBytes / 2 ** 20)} MB`;
  const tooLarge = () => new ActionError("REQUEST_INVALID", `${most}: ask for fewer fields or entries at once`);
  let total = 0;

  function add(owner: string, bytes: number): void {
    total += bytes;
    const sum = (byOwner.get(owner) ?? 0) + bytes;
    if (sum > 0) byOwner.set(owner, sum);
    else byOwner.delete(owner);
  }

  return {
    /** Bytes of all answers that are open. */
    held: (): number => total,

    /** Opens the account of one request. */
    open(caller: Caller | null): Answer {
      const owner = ownerOf(caller);
      let held = 0;
      let open = true;
      let order: Promise<unknown> = Promise.resolve();

      function admit(bytes: number): void {
        if (held > 0 && held + bytes > ofAnswerBytes) throw tooLarge();
        if (total + bytes > totalBytes || (byOwner.get(owner) ?? 0) + bytes > ofOwnerBytes) {
          const message = `too many large answers are on their way; try again in ${RETRY_SECONDS} s`;
          throw new ActionError("OVERLOADED", message, { retryAfter: RETRY_SECONDS });
        }
      }

      function count(bytes: number): void {
        // Nobody will close it again.
        if (!open) return;
        held += bytes;
        add(owner, bytes);
      }

      async function counted<T>(work: () => Promise<T>): Promise<T> {
        admit(0);
        const before = held;
        const result = await work();
        count(Math.max(0, sizeOf(result) - (held - before)));
        return result;
      }

      return {
        reserve(bytes) {
          admit(bytes);
          count(bytes);
        },
        part<T>(work: () => Promise<T>): Promise<T> {
          const done = order.then(() => counted(work));
          order = done.catch(() => undefined);
          return done;
        },
        whole(result) {
          const bytes = sizeOf(result);
          if (bytes > WRITTEN_ANSWERS * ofAnswerBytes) throw tooLarge();
          count(Math.max(0, bytes - held));
        },
        close() {
          if (!open) return;
          open = false;
          add(owner, -held);
        },
      };
    },
  };
}
