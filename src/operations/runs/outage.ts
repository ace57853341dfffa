/** Repeats a read or write of a run while the database is away, so that an outage delays the run and does not fail it. */
import { setTimeout as delay } from "node:timers/promises";
import { isDatabaseAway } from "../../data/database.js";

const RETRY_MS = 500;

/** Resolves with `work`'s result once the database answers. @throws other errors of `work`, and any error once `signal` has aborted */
export async function throughOutage<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isDatabaseAway(error)) throw error;
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
