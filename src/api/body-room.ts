/**
 * Room for the bodies of requests while they arrive: so many bytes in all, so many of one network address, addresses by turns. Who
 * finds none waits a little, and is refused then. Knows lengths, not bodies.
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

/** Long enough for bodies before it that come at an honest speed. */
const WAIT_MS = 5_000;
/** Waiting costs a connection and its headers: of one address no more than that. */
const WAITING_OF_ADDRESS_MAX = 256;
const RETRY_SECONDS = 5;

export interface BodyRoomOptions {
  totalBytes: number;
  ofAddressBytes: number;
  waitMs: number;
}

export interface BodyRoom {
  /**
   * Waits until there is room for so many bytes more of that address. @returns what gives it back, once
   * @throws OVERLOADED when there is none in time
   */
  enter(address: string, bytes: number): Promise<() => void>;
  /** Bytes for which there is room made now. */
  held(): number;
}

interface Waiting {
  bytes: number;
  enter(): void;
}

const refusal = (): ActionError =>
  new ActionError("OVERLOADED", `too many request bodies are on their way; try again in ${RETRY_SECONDS} s`, {
    retryAfter: RETRY_SECONDS,
  });

export function createBodyRoom({ totalBytes, ofAddressBytes, waitMs }: BodyRoomOptions): BodyRoom {
  const byAddress = new Map<string, number>();
  /** In the order of turns: an address that has had its turn goes to the end. */
  const lines = new Map<string, Set<Waiting>>();
  let total = 0;

  const fits = (address: string, bytes: number): boolean =>
    total + bytes <= totalBytes && (byAddress.get(address) ?? 0) + bytes <= ofAddressBytes;

  function take(address: string, bytes: number): () => void {
    total += bytes;
    byAddress.set(address, (byAddress.get(address) ?? 0) + bytes);
    let taken = true;
    return () => {
      if (!taken) return;
      taken = false;
      total -= bytes;
      const left = byAddress.get(address)! - bytes;
      if (left > 0) byAddress.set(address, left);
      else byAddress.delete(address);
      callNext();
    };
  }

  function leaveLine(address: string, one: Waiting): void {
    const line = lines.get(address)!;
    line.delete(one);
    lines.delete(address);
    if (line.size > 0) lines.set(address, line);
  }

  function callNext(): void {
    for (const [address, line] of [...lines]) {
      const [first] = line;
      if (!first || !fits(address, first.bytes)) continue;
      leaveLine(address, first);
      first.enter();
    }
  }

  return {
    async enter(address, bytes) {
      const line = lines.get(address);
      if (!line && fits(address, bytes)) return take(address, bytes);
      if (line && line.size >= WAITING_OF_ADDRESS_MAX) throw refusal();
      return new Promise((resolve, reject) => {
        const one: Waiting = {
          bytes,
          enter() {
            clearTimeout(timer);
            resolve(take(address, bytes));
          },
        };
        const timer = setTimeout(() => {
          leaveLine(address, one);
          reject(refusal());
        }, waitMs);
        lines.set(address, (lines.get(address) ?? new Set()).add(one));
      });
    },
    held: () => total,
  };
}

/** Small, usual and large bodies have bounds of their own, so that none of them waits behind larger ones. */
export interface BodyRooms {
  roomFor(bytes: number): BodyRoom;
}

const SMALL_SHARE = 1 / 4;

const DEFAULTS: BodyRoomOptions = {
  totalBytes: BODIES_MAX_BYTES,
  ofAddressBytes: BODIES_OF_ADDRESS_MAX_BYTES,
  waitMs: WAIT_MS,
};

export function createBodyRooms({ totalBytes, ofAddressBytes, waitMs } = DEFAULTS): BodyRooms {
  const room = (share: number) =>
    createBodyRoom({ totalBytes: totalBytes * share, ofAddressBytes: ofAddressBytes * share, waitMs });
  const small = room(SMALL_SHARE);
  const usual = room(1);
  const large = createBodyRoom({
    totalBytes: LARGE_BODIES_MAX_BYTES,
    ofAddressBytes: LARGE_BODY_MAX_BYTES,
    waitMs,
  });
  return {
    roomFor(bytes) {
      if (bytes <= SMALL_BODY_BYTES) return small;
      return bytes <= BODY_MAX_BYTES ? usual : large;
    },
  };
}
