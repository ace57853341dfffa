/**
 * Counts the bytes of answers that are being made or sent: of one request, of one app's callers, of the whole process. A reader reserves a
 * large read first, and is refused while a refusal is still possible. Knows no operation.
 */
import { getHeapStatistics } from "node:v8";
import { ActionError } from "../errors.js";
import { ANSWER_MAX_BYTES } from "../limits.js";
import type { Caller } from "../rules/access.js";
import { JsonText } from "../rules/json-text.js";
import { createTurns, type Turns } from "./turns.js";

const RETRY_SECONDS = 2;
/** An answer exists several times on its way: as the database sent it, as text, as bytes for the socket. */
const SHARE_OF_HEAP = 1 / 10;
/** The callers of one app leave half of it to all others; of the next app, half of what is left. */
const SHARE_OF_OWNER = 1 / 2;
/** One page may come on top of what was counted, and names and brackets with it. */
const WRITTEN_ANSWERS = 2;
/** Below that, two of the largest answers would not fit. */
const LEAST_BYTES = 4 * ANSWER_MAX_BYTES;
/** What was done cannot be refused any more: up to so many times what may be read its result is handed on all the same. */
const DONE_TIMES = 2;
/** Smaller results are handed on whatever there is. */
const SMALL_BYTES = 64 * 1024;
/** What is larger is read in its owner's turn. Measured: what a megabyte takes to be read and sent. */
const LARGE_BYTES = 512 * 1024;
const MS_PER_MB = 10;

export interface AnswersOptions {
  /** Of all answers in the process. */
  totalBytes: number;
  ofOwnerBytes: number;
  ofAnswerBytes: number;
}

/** What one request may still make. */
export interface Answer {
  /**
   * Counts bytes before they are read; resolves when they may be read.
   * @throws REQUEST_INVALID beyond one answer's bytes and after its caller has disconnected, OVERLOADED beyond those of all,
   *   RATE_LIMIT_EXCEEDED if too many answers of the same owner wait
   */
  readonly reserve: (bytes: number) => Promise<void>;
  /**
   * Does one part after the other, and counts what it gave; parts that are asked for at once wait here and not in the database. What
   * a part has done stands, whatever it gave: the next one is refused. None is begun once the caller is gone.
   * @throws as `reserve`, before the part is begun; OVERLOADED after it where its result has no room
   */
  part<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Counts the answer as it will be written: what was read once may be asked for under twenty names.
   * @throws REQUEST_INVALID for more than an answer holds
   */
  whole(result: unknown): void;
  /** To be called when the answer has left, or its caller is gone. What a part holds is counted until that part has ended. */
  readonly close: () => void;
  /** Calls `call` once, when the answer is closed and the last part of its work has ended. */
  readonly whenEnded: (call: () => void) => void;
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
  for (const key of Object.keys(value)) sum += key.length + sizeOf((value as Record<string, unknown>)[key]);
  return sum;
}

/** Those who share one bucket: an app's credentials, or a person. */
const ownerOf = (caller: Caller | null): string =>
  caller === null ? "nobody" : caller.appId === null ? `person ${caller.personId}` : ownerOfApp(caller.appId);
const ownerOfApp = (appId: number): string => `app ${appId}`;

export type Answers = ReturnType<typeof createAnswers>;

export function createAnswers(
  { totalBytes, ofOwnerBytes, ofAnswerBytes }: AnswersOptions = defaults(),
  turns: Turns = createTurns(),
) {
  const byOwner = new Map<string, number>();
  const most = `an answer holds at most ${Math.floor(ofAnswerBytes / 2 ** 20)} MB`;
  const tooLarge = () => new ActionError("REQUEST_INVALID", `${most}: ask for fewer fields or entries at once`);
  const tooLargeAfter = () => new ActionError("REQUEST_INVALID", `${most}: it was done, and its result is left out`);
  const overloaded = (message: string) => new ActionError("OVERLOADED", message, { retryAfter: RETRY_SECONDS });
  const tooMany = () => overloaded(`too many large answers are on their way; try again in ${RETRY_SECONDS} s`);
  let total = 0;

  function add(owner: string, bytes: number): void {
    total += bytes;
    const sum = (byOwner.get(owner) ?? 0) + bytes;
    if (sum > 0) byOwner.set(owner, sum);
    else byOwner.delete(owner);
  }

  /** Whether there is room for so many bytes more, within `times` what may be read. */
  function hasRoom(owner: string, bytes: number, times: number): boolean {
    const own = byOwner.get(owner) ?? 0;
    const others = total - own;
    // The share of all: half of the total for the first owner, half of the rest for the second, and so on.
    const share = (ofOwnerBytes / totalBytes) * (times * totalBytes - others);
    return own + bytes <= share;
  }

  return {
    /** Bytes of all answers that are open. */
    held: (): number => total,

    /**
     * Counts a text that goes to any number of one app's sockets, until what it answers is called.
     * @throws REQUEST_INVALID where it would be several times what an answer holds, OVERLOADED where there is no room
     */
    share(appId: number, bytes: number): () => void {
      const owner = ownerOfApp(appId);
      if (bytes > WRITTEN_ANSWERS * ofAnswerBytes) throw tooLarge();
      if (!hasRoom(owner, bytes, 1)) throw tooMany();
      add(owner, bytes);
      return () => add(owner, -bytes);
    },

    /** Opens the account of one request. */
    open(caller: Caller | null): Answer {
      const owner = ownerOf(caller);
      let held = 0;
      let open = true;
      let parts = 0;
      const endings: (() => void)[] = [];
      let order: Promise<unknown> | null = null;

      function admit(bytes: number): void {
        if (!open) throw new ActionError("REQUEST_INVALID", "nobody waits for this answer any more");
        if (held > 0 && held + bytes > ofAnswerBytes) throw tooLarge();
        if (!hasRoom(owner, bytes, 1)) throw tooMany();
      }

      function count(bytes: number): void {
        held += bytes;
        add(owner, bytes);
      }

      /** A part that is under way goes on holding what it has read. */
      function giveBack(): void {
        if (open || parts > 0) return;
        add(owner, -held);
        held = 0;
        for (const call of endings.splice(0)) call();
      }

      async function counted<T>(work: () => Promise<T>): Promise<T> {
        try {
          admit(0);
          const before = held;
          const result = await work();
          const bytes = Math.max(0, sizeOf(result) - (held - before));
          if (before > 0 && held + bytes > ofAnswerBytes) throw tooLargeAfter();
          if (bytes > SMALL_BYTES && !hasRoom(owner, bytes, DONE_TIMES)) {
            throw overloaded("it was done; its result is too large while so many answers are on their way");
          }
          count(bytes);
          return result;
        } finally {
          parts -= 1;
          giveBack();
        }
      }

      return {
        async reserve(bytes) {
          admit(bytes);
          count(bytes);
          if (bytes <= LARGE_BYTES) return;
          await turns.take(owner, () => undefined);
          turns.owe(owner, (bytes / 2 ** 20) * MS_PER_MB);
          // It may have gone while it waited.
          admit(0);
        },
        part<T>(work: () => Promise<T>): Promise<T> {
          parts += 1;
          const done = order === null ? counted(work) : order.then(() => counted(work));
          // The caller receives the failure from `done`.
          order = done.catch(() => undefined);
          return done;
        },
        whole(result) {
          const bytes = sizeOf(result);
          if (bytes > ofAnswerBytes) throw tooLarge();
          count(Math.max(0, bytes - held));
          giveBack();
        },
        close() {
          open = false;
          giveBack();
        },
        whenEnded(call) {
          endings.push(call);
          giveBack();
        },
      };
    },
  };
}
