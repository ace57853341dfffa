/**
 * Callers of runWithResult who wait in this process until there is a place for their run, the apps in turn. What they wait for is no run
 * yet: it has no row, and who goes takes it along. The line is for what moves; who would wait long is sent to the ledger's queue, where
 * every runner looks. Knows apps by their number, and no run.
 */
import { ActionError, nobodyWaits } from "../../errors.js";
import {
  CALLERS_WAITING_BYTES,
  CALLERS_WAITING_BYTES_PER_APP,
  CALLERS_WAITING_MAX,
  CALLERS_WAITING_PER_APP,
  OVERLOADED_RETRY_SECONDS,
} from "../../limits.js";
import type { Place } from "./places.js";

/** An app whose callers got no place for so long: its runs sleep, and its callers' runs are better seen, and taken by whoever can. */
const STALLED_MS = 1_000;
/** Nobody waits here for longer, however well the line moves. */
const PATIENCE_MS = 10_000;

interface Waiting {
  bytes: number;
  since: number;
  /** null: to the queue. */
  leave(place: Place | null): void;
  refuse(error: ActionError): void;
}

interface OfApp {
  line: Waiting[];
  bytes: number;
  stalled: NodeJS.Timeout;
}

export type WaitingCallers = ReturnType<typeof createWaitingCallers>;

/** For callers whose action is not run because the process stops. */
export const stoppingError = (): ActionError =>
  new ActionError("OVERLOADED", "the service is stopping; the action was not run", {
    retryAfter: OVERLOADED_RETRY_SECONDS,
  });

export function createWaitingCallers() {
  /** In the order of turns: an app that has had its turn goes to the end. */
  const apps = new Map<number, OfApp>();
  let count = 0;
  let bytes = 0;

  function hasRoom(appId: number, more: number): boolean {
    const own = apps.get(appId);
    if (count >= CALLERS_WAITING_MAX || (own?.line.length ?? 0) >= CALLERS_WAITING_PER_APP) return false;
    return bytes + more <= CALLERS_WAITING_BYTES && (own?.bytes ?? 0) + more <= CALLERS_WAITING_BYTES_PER_APP;
  }

  function remove(appId: number, one: Waiting): void {
    const own = apps.get(appId)!;
    own.line.splice(own.line.indexOf(one), 1);
    own.bytes -= one.bytes;
    count -= 1;
    bytes -= one.bytes;
    if (own.line.length > 0) return;
    clearTimeout(own.stalled);
    apps.delete(appId);
  }

  /** Sends an app's callers to the queue, in their order, as long as `long` says so of the first. */
  function sendOn(appId: number, long: (one: Waiting) => boolean): void {
    for (let one = apps.get(appId)?.line[0]; one && long(one); one = apps.get(appId)?.line[0]) {
      remove(appId, one);
      one.leave(null);
    }
  }

  function appOf(appId: number): OfApp {
    const known = apps.get(appId);
    if (known) return known;
    const own = { line: [], bytes: 0, stalled: setTimeout(() => sendOn(appId, () => true), STALLED_MS) };
    apps.set(appId, own);
    return own;
  }

  /** Of the apps that `mayTake` a place the one that has the fewest, whose turn it is among these. */
  function next(places: ReadonlyMap<number, number>, share: number): number | null {
    let found: number | null = null;
    let fewest = share;
    for (const appId of apps.keys()) {
      const taken = places.get(appId) ?? 0;
      if (taken < fewest) [found, fewest] = [appId, taken];
    }
    return found;
  }

  return {
    /** How many wait. */
    count: (): number => count,

    /** Whether callers of the app wait: who comes now comes after them. */
    has: (appId: number): boolean => apps.has(appId),

    /** How many places that app has whose turn it is, of those below `share`; null when none of them waits. */
    fewest(places: ReadonlyMap<number, number>, share: number): number | null {
      const appId = next(places, share);
      return appId === null ? null : (places.get(appId) ?? 0);
    },

    /**
     * Waits for a place. @returns null for whom the queue is the better place: there is no room here, or it would take long
     * @param size bytes that the caller's request holds meanwhile
     * @throws REQUEST_INVALID when the caller has gone, OVERLOADED when this process stops
     */
    async wait(appId: number, size: number, gone?: AbortSignal): Promise<Place | null> {
      if (gone?.aborted) throw nobodyWaits();
      if (!hasRoom(appId, size)) return null;
      return new Promise((resolve, reject) => {
        const leaves = () => {
          remove(appId, one);
          reject(nobodyWaits());
        };
        const end = <T>(settle: (value: T) => void) => {
          return (value: T) => {
            gone?.removeEventListener("abort", leaves);
            settle(value);
          };
        };
        const one = { bytes: size, since: performance.now(), leave: end(resolve), refuse: end(reject) };
        const own = appOf(appId);
        own.line.push(one);
        own.bytes += size;
        count += 1;
        bytes += size;
        gone?.addEventListener("abort", leaves, { once: true });
      });
    },

    /**
     * Gives a place to the caller whose turn it is. @returns false when nobody who waits may have one
     * @param take takes a place for the app, or answers null
     */
    serve(places: ReadonlyMap<number, number>, share: number, take: (appId: number) => Place | null): boolean {
      const appId = next(places, share);
      const place = appId === null ? null : take(appId);
      if (appId === null || place === null) return false;
      const own = apps.get(appId)!;
      const one = own.line[0]!;
      remove(appId, one);
      if (apps.delete(appId)) {
        apps.set(appId, own);
        own.stalled.refresh();
      }
      one.leave(place);
      sendOn(appId, ({ since }) => performance.now() - since > PATIENCE_MS);
      return true;
    },

    /** Refuses all who wait: what they asked for was not run, and will not be. */
    refuseAll(): void {
      const error = stoppingError();
      for (const [appId, { line }] of [...apps]) {
        for (const one of [...line]) {
          remove(appId, one);
          one.refuse(error);
        }
      }
    },
  };
}
