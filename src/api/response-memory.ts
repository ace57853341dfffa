/**
 * Counts the bytes of the responses that the process builds or sends: for each request, for each owner (an app or a person), and in total.
 * A resolver reserves the bytes of a large read before it starts the read.
 */
import { getHeapStatistics } from "node:v8";
import { ActionError } from "../errors.js";
import { GRAPHQL_RESPONSE_MAX_BYTES } from "../limits.js";
import type { Caller } from "../rules/access.js";
import { JsonText } from "../rules/json-text.js";
import { createFairTaskQueue, type FairTaskQueue } from "./fair-task-queue.js";

const RETRY_AFTER_SECONDS = 2;
/** Share of the heap that all responses together may use. Each response exists three times: as database rows, as text, and as bytes. */
const HEAP_SHARE_FOR_RESPONSES = 1 / 10;
/** Share of the free response memory that one owner (an app or a person) may use. */
const OWNER_SHARE_OF_FREE_BYTES = 1 / 2;
/**
 * Maximum size of a JSON text for several sockets, as a multiple of GRAPHQL_RESPONSE_MAX_BYTES. The text also has field names and brackets.
 */
const SHARED_TEXT_SIZE_FACTOR = 2;
/** Minimum memory for all responses together. With less, the service could not send two of the largest responses at the same time. */
const TOTAL_MIN_BYTES = 4 * GRAPHQL_RESPONSE_MAX_BYTES;
/** Factor by which results of changes may exceed the limit for reads. A rejection would only hide the result of a completed change. */
const CHANGE_RESULT_FACTOR = 2;
/** Maximum bytes of a result that the service returns even when it is overloaded. */
const SMALL_RESULT_BYTES = 64 * 1024;
/** Reads of more bytes than this take turns by owner (an app or a person), so that no owner delays all others. */
const LARGE_READ_BYTES = 512 * 1024;
/** Time to read and send one megabyte (measured). After a large read, the owner must pause in proportion to its size. */
const READ_DURATION_MS_PER_MB = 10;

export interface ResponseMemoryOptions {
  totalBytes: number;
  maxBytesPerOwner: number;
  maxBytesPerResponse: number;
}

export interface ResponseBudget {
  /**
   * Reserves memory for data that a resolver is about to read. Resolves when the resolver may read the data. The first read of a request
   * may be larger than the limit of a response.
   * @throws ActionError
   * - REQUEST_INVALID if the response exceeds its limit, or the caller has disconnected
   * - OVERLOADED if the owner has used up its share of the memory
   * - RATE_LIMIT_EXCEEDED if too many large reads of this owner wait
   */
  readonly reserveBytes: (bytes: number) => Promise<void>;
  /**
   * Runs one part of a request, such as a GraphQL root field, after all earlier parts, and counts the bytes of its result. The part's
   * changes stay even if this function throws an error about the result.
   * @throws the errors of `reserveBytes` before the part starts. After the part: REQUEST_INVALID if the results of all parts together are
   * too large, OVERLOADED if there is no memory for the result
   */
  runPart<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Checks the size of the complete response and reserves memory for it. A query can select one value under many names, so the response can
   * be larger than the data that was read.
   * @throws ActionError REQUEST_INVALID if the response is too large
   */
  checkResponseSize(result: unknown): void;
  /**
   * Frees the memory that the request has reserved, as soon as none of the request's parts is running. Call it when the response has been
   * sent or the caller has disconnected.
   */
  readonly close: () => void;
  /** Calls the function `callback` once: when the budget has been closed and its last running part has ended. */
  readonly callWhenEnded: (callback: () => void) => void;
}

function getDefaultResponseMemoryOptions(): ResponseMemoryOptions {
  const totalBytes = Math.max(TOTAL_MIN_BYTES, getHeapStatistics().heap_size_limit * HEAP_SHARE_FOR_RESPONSES);
  return {
    totalBytes,
    maxBytesPerOwner: totalBytes * OWNER_SHARE_OF_FREE_BYTES,
    maxBytesPerResponse: GRAPHQL_RESPONSE_MAX_BYTES,
  };
}

/** Estimates the size of a value in bytes: the characters of its strings and keys, and a constant for each value in it. */
export function estimateResponseBytes(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (value instanceof JsonText) return value.source.length;
  if (Array.isArray(value)) return value.reduce<number>((sum, element) => sum + estimateResponseBytes(element), 8);
  let sum = 8;
  for (const key of Object.keys(value))
    sum += key.length + estimateResponseBytes((value as Record<string, unknown>)[key]);
  return sum;
}

/** Returns the key under which a caller's response memory is counted: the app of the credential, the person, or all anonymous callers. */
const getQuotaOwner = (caller: Caller | null): string =>
  caller === null ? "anonymous" : caller.appId === null ? `person ${caller.personId}` : createAppOwnerKey(caller.appId);
const createAppOwnerKey = (appId: number): string => `app ${appId}`;

const createOverloadedError = (message: string) =>
  new ActionError("OVERLOADED", message, { retryAfter: RETRY_AFTER_SECONDS });

const createTooManyResponsesError = () =>
  createOverloadedError(`too many large responses are being sent; try again in ${RETRY_AFTER_SECONDS} s`);

export class ResponseMemoryLimiter {
  private readonly bytesByOwner = new Map<string, number>();
  private readonly sizeLimitMessage =
    `a response can have at most ${Math.floor(this.options.maxBytesPerResponse / 2 ** 20)} MB`;
  private totalHeldBytes = 0;

  constructor(
    private readonly options: ResponseMemoryOptions = getDefaultResponseMemoryOptions(),
    private readonly taskQueue: FairTaskQueue = createFairTaskQueue(),
  ) {}

  private createTooLargeError() {
    return new ActionError("REQUEST_INVALID", `${this.sizeLimitMessage}; request fewer fields or entries`);
  }

  private createOmittedResultError() {
    return new ActionError(
      "REQUEST_INVALID",
      `${this.sizeLimitMessage}; the service executed the request, but the response omits the result`,
    );
  }

  private addHeldBytes(owner: string, bytes: number): void {
    this.totalHeldBytes += bytes;
    const sum = (this.bytesByOwner.get(owner) ?? 0) + bytes;
    if (sum > 0) this.bytesByOwner.set(owner, sum);
    else this.bytesByOwner.delete(owner);
  }

  /**
   * True if the owner may use `bytes` more.
   * @param limitFactor multiplies the total limit: 1 for reads, CHANGE_RESULT_FACTOR for results of changes
   */
  private hasCapacity(owner: string, bytes: number, limitFactor: number): boolean {
    const { totalBytes, maxBytesPerOwner } = this.options;
    const ownerBytes = this.bytesByOwner.get(owner) ?? 0;
    const othersBytes = this.totalHeldBytes - ownerBytes;
    // With a share of one half, the first owner may use half of the total, the second owner half of the rest, and so on.
    const share = (maxBytesPerOwner / totalBytes) * (limitFactor * totalBytes - othersBytes);
    return ownerBytes + bytes <= share;
  }

  countHeldBytes(): number {
    return this.totalHeldBytes;
  }

  /**
   * Counts the bytes of one text that the service sends to several sockets of an app. Returns a function that removes these bytes from
   * the count.
   * @throws REQUEST_INVALID if the text exceeds its limit (SHARED_TEXT_SIZE_FACTOR); OVERLOADED if there is no memory for it
   */
  countSharedText(appId: number, bytes: number): () => void {
    const owner = createAppOwnerKey(appId);
    if (bytes > SHARED_TEXT_SIZE_FACTOR * this.options.maxBytesPerResponse) throw this.createTooLargeError();
    if (!this.hasCapacity(owner, bytes, 1)) throw createTooManyResponsesError();
    this.addHeldBytes(owner, bytes);
    return () => this.addHeldBytes(owner, -bytes);
  }

  openBudget(caller: Caller | null): ResponseBudget {
    const { maxBytesPerResponse: responseMaxBytes } = this.options;
    const owner = getQuotaOwner(caller);
    let heldBytes = 0;
    let isOpen = true;
    let partCount = 0;
    const endCallbacks: (() => void)[] = [];
    let previousPart: Promise<unknown> | null = null;

    const admitBytes = (bytes: number): void => {
      if (!isOpen)
        throw new ActionError("REQUEST_INVALID", "the client disconnected before the service sent the response");
      if (heldBytes > 0 && heldBytes + bytes > responseMaxBytes) throw this.createTooLargeError();
      if (!this.hasCapacity(owner, bytes, 1)) throw createTooManyResponsesError();
    };

    const countBytes = (bytes: number): void => {
      heldBytes += bytes;
      this.addHeldBytes(owner, bytes);
    };

    /** Frees the bytes of a closed budget, unless one of its parts is still running. */
    const releaseBytes = (): void => {
      if (isOpen || partCount > 0) return;
      this.addHeldBytes(owner, -heldBytes);
      heldBytes = 0;
      for (const callback of endCallbacks.splice(0)) callback();
    };

    const countResult = async <T>(work: () => Promise<T>): Promise<T> => {
      try {
        admitBytes(0);
        const heldBytesBefore = heldBytes;
        const result = await work();
        const bytes = Math.max(0, estimateResponseBytes(result) - (heldBytes - heldBytesBefore));
        if (heldBytesBefore > 0 && heldBytes + bytes > responseMaxBytes) throw this.createOmittedResultError();
        if (bytes > SMALL_RESULT_BYTES && !this.hasCapacity(owner, bytes, CHANGE_RESULT_FACTOR)) {
          throw createOverloadedError(
            "the request was executed, but the service has too little memory for its result at present; if the request changed data, do not repeat it, and read the data instead",
          );
        }
        countBytes(bytes);
        return result;
      } finally {
        partCount -= 1;
        releaseBytes();
      }
    };

    return {
      reserveBytes: async (bytes) => {
        admitBytes(bytes);
        countBytes(bytes);
        if (bytes <= LARGE_READ_BYTES) return;
        await this.taskQueue.runInTurn(owner, () => undefined);
        this.taskQueue.extendPause(owner, (bytes / 2 ** 20) * READ_DURATION_MS_PER_MB);
        // Checks again, because the caller may have disconnected while the request waited.
        admitBytes(0);
      },
      runPart<T>(work: () => Promise<T>): Promise<T> {
        partCount += 1;
        const partResult = previousPart === null ? countResult(work) : previousPart.then(() => countResult(work));
        // The caller of `runPart` handles a failure of this part, so the next part starts even after a failure.
        previousPart = partResult.catch(() => undefined);
        return partResult;
      },
      checkResponseSize: (result) => {
        const bytes = estimateResponseBytes(result);
        if (bytes > responseMaxBytes) throw this.createTooLargeError();
        countBytes(Math.max(0, bytes - heldBytes));
        releaseBytes();
      },
      close() {
        isOpen = false;
        releaseBytes();
      },
      callWhenEnded(callback) {
        endCallbacks.push(callback);
        releaseBytes();
      },
    };
  }
}
