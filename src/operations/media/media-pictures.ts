/**
 * Processes the pictures of all apps in turn, only a few at a time, and caches converted pictures. Read this file if pictures wait or are
 * rejected with OVERLOADED.
 */
import { availableParallelism } from "node:os";
import type { Readable } from "node:stream";
import { LRUCache } from "lru-cache";
import { FairSemaphore, mayKeyGetSlot } from "../../engine/fair-semaphore.js";
import {
  InvalidPictureError,
  type PictureInspection,
  PictureProcessBusyError,
  type PictureProcessor,
  type PictureResizeOptions,
} from "../../engine/pictures.js";
import { ActionError } from "../../errors.js";
import {
  OVERLOADED_RETRY_SECONDS,
  PICTURE_CONVERSIONS_WAITING_MAX,
  RESIZED_PICTURE_MAX_BYTES,
  RESIZED_PICTURES_CACHE_MAX_BYTES,
  THUMBNAIL_LIMITS,
} from "../../limits.js";

/** Maximum pictures that this process handles at the same time. The other processor cores stay free for runs. */
const CONCURRENT_PICTURES_MAX = Math.max(1, Math.floor(availableParallelism() / 2));

/** Throws OVERLOADED if a picture process could not start now, and otherwise the error itself. */
function throwIfBusy(error: unknown): never {
  if (!(error instanceof PictureProcessBusyError)) throw error;
  throw createOverloadedError(error.message);
}

const createOverloadedError = (reason: string) =>
  new ActionError("OVERLOADED", `${reason}; try again in ${OVERLOADED_RETRY_SECONDS} s`, {
    retryAfter: OVERLOADED_RETRY_SECONDS,
  });

export class MediaPictures {
  private readonly processingSlots = new FairSemaphore(CONCURRENT_PICTURES_MAX, CONCURRENT_PICTURES_MAX);
  private readonly cachedPictures = new LRUCache<string, Buffer>({
    maxSize: RESIZED_PICTURES_CACHE_MAX_BYTES,
    sizeCalculation: (bytes) => bytes.length || 1,
  });
  private readonly pendingPictures = new Map<string, Promise<Buffer>>();
  private readonly waitingByApp = new Map<number, number>();
  private waitingCountOfAllApps = 0;

  constructor(private readonly options: { pictureProcessor: PictureProcessor }) {}

  private countWaiting(appId: number, count: 1 | -1): void {
    const waitingCount = (this.waitingByApp.get(appId) ?? 0) + count;
    this.waitingCountOfAllApps += count;
    if (waitingCount > 0) this.waitingByApp.set(appId, waitingCount);
    else this.waitingByApp.delete(appId);
  }

  /** Calls `work`, which processes a picture, as soon as a slot is free. @throws OVERLOADED if too many pictures wait */
  private async processInSlot<T>(appId: number, work: () => Promise<T>): Promise<T> {
    const waitingCount = this.waitingByApp.get(appId) ?? 0;
    if (!mayKeyGetSlot(PICTURE_CONVERSIONS_WAITING_MAX, this.waitingCountOfAllApps, waitingCount)) {
      throw createOverloadedError("too many pictures wait to be processed");
    }
    this.countWaiting(appId, 1);
    try {
      const releaseSlot = await this.processingSlots.enter(appId);
      return await work().catch(throwIfBusy).finally(releaseSlot);
    } finally {
      this.countWaiting(appId, -1);
    }
  }

  /**
   * Checks an uploaded picture, removes its metadata, and passes the cleaned bytes to `storeCleanBytes`.
   * @throws ActionError REQUEST_INVALID for a damaged picture, OVERLOADED
   */
  async inspect<T>(
    appId: number,
    open: () => Readable,
    contentType: string,
    storeCleanBytes: (clean: AsyncIterable<Buffer>) => Promise<T>,
  ): Promise<PictureInspection & { storedCopy: T }> {
    return this.processInSlot(appId, () =>
      this.options.pictureProcessor.inspect(open(), contentType, THUMBNAIL_LIMITS, storeCleanBytes),
    ).catch((error: unknown) => {
      if (!(error instanceof InvalidPictureError)) throw error;
      throw new ActionError(
        "REQUEST_INVALID",
        `the file begins like a picture of type ${contentType}, but cannot be read: ${error.message}`,
      );
    });
  }

  /**
   * Converts a picture to another size or format. `key` identifies the converted picture in the cache.
   * @throws ActionError REQUEST_INVALID, OVERLOADED
   */
  async resize(
    appId: number,
    key: string,
    open: () => Promise<Readable>,
    contentType: string,
    resizing: PictureResizeOptions,
  ): Promise<Buffer> {
    const cachedPicture = this.cachedPictures.get(key);
    if (cachedPicture) return cachedPicture;
    // Concurrent requests for the same picture share one conversion.
    const conversion =
      this.pendingPictures.get(key) ??
      this.processInSlot(appId, async () =>
        this.options.pictureProcessor.resize(await open(), contentType, resizing, RESIZED_PICTURE_MAX_BYTES),
      )
        .then((bytes) => {
          this.cachedPictures.set(key, bytes);
          return bytes;
        })
        .finally(() => this.pendingPictures.delete(key));
    this.pendingPictures.set(key, conversion);
    return conversion.catch((error: unknown) => {
      if (!(error instanceof InvalidPictureError)) throw error;
      throw new ActionError("REQUEST_INVALID", `the picture cannot be converted: ${error.message}`);
    });
  }

  stop() {
    return this.options.pictureProcessor.stop();
  }
}
