/** Reads of very many definitions, which one app at a time can do, so that they do not use up the memory of the process. */
import type { Db } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { MANIFEST_MAX_BYTES, OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import { readManifestSize } from "./current-manifest.js";

/** Maximum time in milliseconds that a read waits for those of other apps. */
const WAIT_MAX_MS = 30_000;

export class LargeReadQueue {
  private readonly slot = new FairSemaphore(1, 1);

  constructor(private readonly db: Db) {}

  /**
   * Calls `read`, which reads all definitions of an app. If they have more than MANIFEST_MAX_BYTES, waits until no other
   * such call runs.
   * @throws OVERLOADED if it waits for too long
   */
  async readInTurn<T>(appId: number, read: () => Promise<T>): Promise<T> {
    if ((await readManifestSize(this.db, appId)) <= MANIFEST_MAX_BYTES) return read();
    const freeSlot = await this.slot
      .enter(appId, () => AbortSignal.timeout(WAIT_MAX_MS))
      .catch(() => {
        const message = "other large apps are read or changed at the moment; try again later";
        throw new ActionError("OVERLOADED", message, { retryAfter: OVERLOADED_RETRY_SECONDS });
      });
    return read().finally(freeSlot);
  }
}
