/** Schedules the processing of pictures in this process: few at a time, apps in turn. Caches recent results. */
import { availableParallelism } from "node:os";
import type { Readable } from "node:stream";
import { LRUCache } from "lru-cache";
import { FairSemaphore, leavesHalfFree } from "../../engine/fair-semaphore.js";
import { type Inspection, PictureFault, type Pictures, type Resizing } from "../../engine/pictures.js";
import { ActionError } from "../../errors.js";
import {
  OVERLOADED_RETRY_SECONDS,
  PICTURES_WAITING_MAX,
  RESIZED_KEPT_BYTES,
  RESIZED_MAX_BYTES,
  THUMBNAIL_LIMITS,
} from "../../limits.js";

/** Maximum number of conversions at a time, so that some processor cores stay free for runs. */
const RESIZE_SLOTS = Math.max(1, Math.floor(availableParallelism() / 2));

export type MediaPictures = ReturnType<typeof createMediaPictures>;

export function createMediaPictures({ pictures }: { pictures: Pictures }) {
  const line = new FairSemaphore(RESIZE_SLOTS, RESIZE_SLOTS);
  const cachedPictures = new LRUCache<string, Buffer>({
    maxSize: RESIZED_KEPT_BYTES,
    sizeCalculation: (bytes) => bytes.length || 1,
  });
  const pendingPictures = new Map<string, Promise<Buffer>>();
  const waitingByApp = new Map<number, number>();
  let allWaiting = 0;

  function countWaiting(appId: number, count: 1 | -1): void {
    const waitingCount = (waitingByApp.get(appId) ?? 0) + count;
    allWaiting += count;
    if (waitingCount > 0) waitingByApp.set(appId, waitingCount);
    else waitingByApp.delete(appId);
  }

  /** @throws OVERLOADED if too many wait */
  async function resizeInTurn<T>(appId: number, work: () => Promise<T>): Promise<T> {
    const waitingCount = waitingByApp.get(appId) ?? 0;
    if (!leavesHalfFree(PICTURES_WAITING_MAX, allWaiting, waitingCount, 1)) {
      const details = { retryAfter: OVERLOADED_RETRY_SECONDS };
      throw new ActionError("OVERLOADED", "too many pictures are waiting to be checked; try again shortly", details);
    }
    countWaiting(appId, 1);
    try {
      const leaveQueue = await line.enter(appId);
      return await work().finally(leaveQueue);
    } finally {
      countWaiting(appId, -1);
    }
  }

  return {
    /** @throws REQUEST_INVALID for a file that is damaged, OVERLOADED */
    async inspect<T>(
      appId: number,
      open: () => Readable,
      contentType: string,
      keep: (clean: AsyncIterable<Buffer>) => Promise<T>,
    ): Promise<Inspection & { storedCopy: T }> {
      return resizeInTurn(appId, () => pictures.inspect(open(), contentType, THUMBNAIL_LIMITS, keep)).catch(
        (error: unknown) => {
          if (!(error instanceof PictureFault)) throw error;
          throw new ActionError(
            "REQUEST_INVALID",
            `the file starts as ${contentType} but cannot be read: ${error.message}`,
          );
        },
      );
    },

    /**
     * Converts a picture.
     * @param key cache key of the result: calls with the same key must have the same result
     * @throws ActionError REQUEST_INVALID, OVERLOADED
     */
    async resize(
      appId: number,
      key: string,
      open: () => Promise<Readable>,
      contentType: string,
      resizing: Resizing,
    ): Promise<Buffer> {
      const cachedPicture = cachedPictures.get(key);
      if (cachedPicture) return cachedPicture;
      // Visitors of a page often request the same picture at the same moment.
      const started =
        pendingPictures.get(key) ??
        resizeInTurn(appId, async () => pictures.resize(await open(), contentType, resizing, RESIZED_MAX_BYTES))
          .then((bytes) => {
            cachedPictures.set(key, bytes);
            return bytes;
          })
          .finally(() => pendingPictures.delete(key));
      pendingPictures.set(key, started);
      return started.catch((error: unknown) => {
        if (!(error instanceof PictureFault)) throw error;
        throw new ActionError("REQUEST_INVALID", `the picture cannot be converted: ${error.message}`);
      });
    },

    stop: pictures.stop,
  };
}
