/**
 * Limits concurrent reads of large manifests, so that they do not use up the memory of the process. Definitions with more
 * than MANIFEST_MAX_BYTES are read for one app at a time.
 */
import type { Db } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { MANIFEST_MAX_BYTES, OVERLOADED_RETRY_SECONDS } from "../../limits.js";
import { readManifestSize } from "./current-manifest.js";

/** Maximum time in milliseconds that a large read waits for the large reads of other apps. */
const LARGE_READ_WAIT_MAX_MS = 30_000;

export class LargeManifestReadQueue {
  private readonly slot = new FairSemaphore(1, 1);

  constructor(private readonly db: Db) {}

  /**
   * Calls `read`, which reads all definitions of the app. If the definitions have more than MANIFEST_MAX_BYTES, first
   * waits until no other large read is in progress.
   * @throws OVERLOADED after a wait of LARGE_READ_WAIT_MAX_MS
   */
  async readInSlot<T>(appId: number, read: () => Promise<T>): Promise<T> {
    if ((await readManifestSize(this.db, appId)) <= MANIFEST_MAX_BYTES) return read();
    const releaseSlot = await this.slot
      .enter(appId, () => AbortSignal.timeout(LARGE_READ_WAIT_MAX_MS))
      .catch(() => {
        const message = "other large apps are read or changed at the moment; try again later";
        throw new ActionError("OVERLOADED", message, { retryAfter: OVERLOADED_RETRY_SECONDS });
      });
    return read().finally(releaseSlot);
  }
}
