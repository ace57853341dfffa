/**
 * Reserves memory for request bodies while the service receives them: in total, for each network address and for each app. One app can use
 * at most half of the free memory, and addresses take turns. Rejects a body for which no memory is free within a few seconds.
 */
import { ActionError } from "../errors.js";
import {
  BODY_MAX_BYTES,
  CONCURRENT_BODIES_MAX_BYTES,
  CONCURRENT_BODIES_PER_ADDRESS_MAX_BYTES,
  CONCURRENT_LARGE_BODIES_MAX_BYTES,
  IMMEDIATELY_PARSED_BODY_MAX_BYTES,
  LARGE_BODY_MAX_BYTES,
} from "../limits.js";

/** Maximum time in milliseconds that a body waits for memory. */
const CAPACITY_WAIT_MAX_MS = 5_000;
/** Maximum number of waiting requests of one address. Each of them uses a connection, and memory for its headers. */
const WAITING_BODIES_PER_ADDRESS_MAX = 256;
const RETRY_AFTER_SECONDS = 5;

export interface RequestBodyBudgetOptions {
  totalBytes: number;
  maxBytesPerAddress: number;
  maxWaitMs: number;
}

export interface RequestBodyBudget {
  /**
   * Waits until `bytes` of memory are free, and reserves them.
   * @param app ID of the app that the request is for; null if it is for no app
   * @returns a function that frees the memory; repeated calls have no effect
   * @throws OVERLOADED if no memory is free in time, or if too many bodies from this address already wait
   */
  reserveBytes(address: string, bytes: number, app: string | null): Promise<() => void>;
  reservedBytes(): number;
}

interface WaitingBody {
  bytes: number;
  app: string | null;
  startReceiving(): void;
}

const createOverloadedError = (): ActionError =>
  new ActionError(
    "OVERLOADED",
    `the service receives too many request bodies at present; try again in ${RETRY_AFTER_SECONDS} s`,
    {
      retryAfter: RETRY_AFTER_SECONDS,
    },
  );

export function createRequestBodyBudget({
  totalBytes,
  maxBytesPerAddress,
  maxWaitMs,
}: RequestBodyBudgetOptions): RequestBodyBudget {
  const bytesByAddress = new Map<string, number>();
  const bytesByApp = new Map<string, number>();
  /** Waiting requests by network address. The first address whose request fits gets memory next, and then moves to the end. */
  const waitingByAddress = new Map<string, Set<WaitingBody>>();
  let reservedTotal = 0;

  /** True if the app may use `bytes` more: an app may use at most half of the memory that other apps leave free. */
  function mayReserveBytes(app: string | null, bytes: number): boolean {
    if (app === null) return true;
    const appBytes = bytesByApp.get(app) ?? 0;
    return appBytes + bytes <= Math.ceil((totalBytes - (reservedTotal - appBytes)) / 2);
  }

  const fitsCapacity = (address: string, bytes: number, app: string | null): boolean =>
    reservedTotal + bytes <= totalBytes &&
    (bytesByAddress.get(address) ?? 0) + bytes <= maxBytesPerAddress &&
    mayReserveBytes(app, bytes);

  function addBytes(counts: Map<string, number>, key: string, bytes: number): void {
    const sum = (counts.get(key) ?? 0) + bytes;
    if (sum > 0) counts.set(key, sum);
    else counts.delete(key);
  }

  function countBytes(address: string, bytes: number, app: string | null): void {
    reservedTotal += bytes;
    addBytes(bytesByAddress, address, bytes);
    if (app !== null) addBytes(bytesByApp, app, bytes);
  }

  function reserveCapacity(address: string, bytes: number, app: string | null): () => void {
    countBytes(address, bytes, app);
    let isReserved = true;
    return () => {
      if (!isReserved) return;
      isReserved = false;
      countBytes(address, -bytes, app);
      admitNextBody();
    };
  }

  function removeFromQueue(address: string, body: WaitingBody): void {
    const waitingBodies = waitingByAddress.get(address)!;
    waitingBodies.delete(body);
    waitingByAddress.delete(address);
    if (waitingBodies.size > 0) waitingByAddress.set(address, waitingBodies);
  }

  function admitNextBody(): void {
    for (const [address, waitingBodies] of [...waitingByAddress]) {
      const [nextBody] = waitingBodies;
      if (!nextBody || !fitsCapacity(address, nextBody.bytes, nextBody.app)) continue;
      removeFromQueue(address, nextBody);
      nextBody.startReceiving();
    }
  }

  return {
    async reserveBytes(address, bytes, app) {
      const waitingBodies = waitingByAddress.get(address);
      if (!waitingBodies && fitsCapacity(address, bytes, app)) return reserveCapacity(address, bytes, app);
      if (waitingBodies && waitingBodies.size >= WAITING_BODIES_PER_ADDRESS_MAX) throw createOverloadedError();
      return new Promise((resolve, reject) => {
        const body: WaitingBody = {
          bytes,
          app,
          startReceiving() {
            clearTimeout(timer);
            resolve(reserveCapacity(address, bytes, app));
          },
        };
        const timer = setTimeout(() => {
          removeFromQueue(address, body);
          reject(createOverloadedError());
        }, maxWaitMs);
        waitingByAddress.set(address, (waitingByAddress.get(address) ?? new Set()).add(body));
      });
    },
    reservedBytes: () => reservedTotal,
  };
}

/** Separate memory limits for small, medium and large bodies, so that a small body never waits for memory that a large body uses. */
export interface RequestBodyBudgetsBySize {
  selectBudget(bytes: number): RequestBodyBudget;
}

const SMALL_BODIES_SHARE = 1 / 4;

const DEFAULT_CAPACITY: RequestBodyBudgetOptions = {
  totalBytes: CONCURRENT_BODIES_MAX_BYTES,
  maxBytesPerAddress: CONCURRENT_BODIES_PER_ADDRESS_MAX_BYTES,
  maxWaitMs: CAPACITY_WAIT_MAX_MS,
};

export function createRequestBodyBudgetsBySize({
  totalBytes,
  maxBytesPerAddress,
  maxWaitMs,
} = DEFAULT_CAPACITY): RequestBodyBudgetsBySize {
  const createShare = (share: number) =>
    createRequestBodyBudget({
      totalBytes: totalBytes * share,
      maxBytesPerAddress: maxBytesPerAddress * share,
      maxWaitMs,
    });
  const smallBodies = createShare(SMALL_BODIES_SHARE);
  const usualBodies = createShare(1);
  const largeBodies = createRequestBodyBudget({
    totalBytes: CONCURRENT_LARGE_BODIES_MAX_BYTES,
    maxBytesPerAddress: LARGE_BODY_MAX_BYTES,
    maxWaitMs,
  });
  return {
    selectBudget(bytes) {
      if (bytes <= IMMEDIATELY_PARSED_BODY_MAX_BYTES) return smallBodies;
      return bytes <= BODY_MAX_BYTES ? usualBodies : largeBodies;
    },
  };
}
