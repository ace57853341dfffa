/**
 * Reserves memory for request bodies while they arrive: in total, for each network address and for each app. One app can use at most half
 * of the free memory, and addresses take turns. A body that gets no memory within a few seconds is rejected.
 */
import { ActionError } from "../errors.js";
import {
  BODIES_MAX_BYTES,
  BODIES_OF_ADDRESS_MAX_BYTES,
  BODY_MAX_BYTES,
  LARGE_BODIES_MAX_BYTES,
  LARGE_BODY_MAX_BYTES,
  SMALL_BODY_BYTES,
} from "../limits.js";

/** Time that a body waits for capacity, in milliseconds. Long enough for earlier bodies that arrive at the minimum speed. */
const WAIT_MS = 5_000;
/**
 * Maximum number of waiting requests for each address, because each waiting request occupies a connection and memory
 * for its headers.
 */
const WAITING_OF_ADDRESS_MAX = 256;
const RETRY_SECONDS = 5;

export interface BodyCapacityOptions {
  totalBytes: number;
  ofAddressBytes: number;
  waitMs: number;
}

export interface BodyCapacity {
  /**
   * Waits until there is capacity for the bytes.
   * @param app ID of the app that the request is for; null if it names none
   * @returns a function that frees the capacity; repeated calls have no effect
   * @throws OVERLOADED when there is none in time
   */
  enter(address: string, bytes: number, app: string | null): Promise<() => void>;
  /** Bytes that are reserved now. */
  reservedBytes(): number;
}

interface WaitingBody {
  bytes: number;
  app: string | null;
  enter(): void;
}

const overloadedError = (): ActionError =>
  new ActionError("OVERLOADED", `too many request bodies are being received; try again in ${RETRY_SECONDS} s`, {
    retryAfter: RETRY_SECONDS,
  });

export function createBodyCapacity({ totalBytes, ofAddressBytes, waitMs }: BodyCapacityOptions): BodyCapacity {
  const byAddress = new Map<string, number>();
  const byApp = new Map<string, number>();
  /** Requests that wait, by address in the order of turns. After its turn, an address moves to the end. */
  const lines = new Map<string, Set<WaitingBody>>();
  let total = 0;

  /** True if the app uses at most half of what other apps leave, so that the next app gets a share. */
  function leavesHalfFree(app: string | null, bytes: number): boolean {
    if (app === null) return true;
    const appBytes = byApp.get(app) ?? 0;
    return appBytes + bytes <= Math.ceil((totalBytes - (total - appBytes)) / 2);
  }

  const fitsCapacity = (address: string, bytes: number, app: string | null): boolean =>
    total + bytes <= totalBytes &&
    (byAddress.get(address) ?? 0) + bytes <= ofAddressBytes &&
    leavesHalfFree(app, bytes);

  function addBytes(counts: Map<string, number>, key: string, bytes: number): void {
    const sum = (counts.get(key) ?? 0) + bytes;
    if (sum > 0) counts.set(key, sum);
    else counts.delete(key);
  }

  function countBytes(address: string, bytes: number, app: string | null): void {
    total += bytes;
    addBytes(byAddress, address, bytes);
    if (app !== null) addBytes(byApp, app, bytes);
  }

  function takeCapacity(address: string, bytes: number, app: string | null): () => void {
    countBytes(address, bytes, app);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      countBytes(address, -bytes, app);
      callNext();
    };
  }

  function leaveQueue(address: string, body: WaitingBody): void {
    const line = lines.get(address)!;
    line.delete(body);
    lines.delete(address);
    if (line.size > 0) lines.set(address, line);
  }

  function callNext(): void {
    for (const [address, line] of [...lines]) {
      const [first] = line;
      if (!first || !fitsCapacity(address, first.bytes, first.app)) continue;
      leaveQueue(address, first);
      first.enter();
    }
  }

  return {
    async enter(address, bytes, app) {
      const line = lines.get(address);
      if (!line && fitsCapacity(address, bytes, app)) return takeCapacity(address, bytes, app);
      if (line && line.size >= WAITING_OF_ADDRESS_MAX) throw overloadedError();
      return new Promise((resolve, reject) => {
        const body: WaitingBody = {
          bytes,
          app,
          enter() {
            clearTimeout(timer);
            resolve(takeCapacity(address, bytes, app));
          },
        };
        const timer = setTimeout(() => {
          leaveQueue(address, body);
          reject(overloadedError());
        }, waitMs);
        lines.set(address, (lines.get(address) ?? new Set()).add(body));
      });
    },
    reservedBytes: () => total,
  };
}

/** Separate limits for small, usual and large bodies, so that a small body never waits behind a large one. */
export interface BodyCapacities {
  capacityFor(bytes: number): BodyCapacity;
}

const SMALL_SHARE = 1 / 4;

const DEFAULT_CAPACITY: BodyCapacityOptions = {
  totalBytes: BODIES_MAX_BYTES,
  ofAddressBytes: BODIES_OF_ADDRESS_MAX_BYTES,
  waitMs: WAIT_MS,
};

export function createBodyCapacities({ totalBytes, ofAddressBytes, waitMs } = DEFAULT_CAPACITY): BodyCapacities {
  const createShare = (share: number) =>
    createBodyCapacity({ totalBytes: totalBytes * share, ofAddressBytes: ofAddressBytes * share, waitMs });
  const smallBodies = createShare(SMALL_SHARE);
  const usualBodies = createShare(1);
  const largeBodies = createBodyCapacity({
    totalBytes: LARGE_BODIES_MAX_BYTES,
    ofAddressBytes: LARGE_BODY_MAX_BYTES,
    waitMs,
  });
  return {
    capacityFor(bytes) {
      if (bytes <= SMALL_BODY_BYTES) return smallBodies;
      return bytes <= BODY_MAX_BYTES ? usualBodies : largeBodies;
    },
  };
}
