/**
 * Writes an uploaded stream to a new file, and returns its size, SHA-256 and first bytes. The file of an interrupted stream is removed.
 * Concurrent streams take turns, so that other work of the process does not wait.
 */
import { createHash } from "node:crypto";
import { mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { collectYoungGarbage } from "../garbage-collection.js";

/** Number of first bytes of the file in the result, from which callers detect the media type. */
const HEAD_BYTES = 4_100;
/** Maximum reading speed of all streams together, in bytes per millisecond. Reading at this speed takes a tenth of a CPU core. */
const BYTES_PER_MS = 32 * 1024;
/** After this number of bytes from all streams, a garbage collection frees their buffers. */
const COLLECT_EVERY_BYTES = 4 * 1024 * 1024;
/** Written data is flushed after this number of bytes. One large flush at the end would delay other writers. */
const SYNC_EVERY_BYTES = 4 * 1024 * 1024;

/** Bytes that are read from one source in its turn. After shorter turns, only a full garbage collection would free the buffers. */
const SLOT_MAX_BYTES = 4 * 1024 * 1024;
const SLOT_MAX_WAIT_MS = 100;

export class UploadTooLargeError extends Error {
  override readonly name = "TooManyBytes";
}

export interface ReceivedUpload {
  path: string;
  bytes: number;
  checksum: string;
  head: Buffer;
}

/** Queue in which uploads wait for a reading slot. The keys of the queue take turns. */
interface UploadQueue {
  /** Waits for a slot. Returns a function that frees it. */
  enter(key: number | string): Promise<() => void>;
}

function settlesWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), limitMs);
    const reportSettled = () => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(reportSettled, reportSettled);
  });
}

export class UploadReceiver {
  private nextReadAt = 0;
  private uncollectedBytes = 0;
  private lastFlush: Promise<void> = Promise.resolve();

  /** @param folder absolute path for uploads @param readingQueue queue in which uploads wait for a reading slot */
  constructor(
    private readonly folder: string,
    private readonly readingQueue: UploadQueue,
  ) {}

  /** Flushes one file at a time. The database writes to the same disk, and would otherwise wait for hundreds of files. */
  private flushInOrder(flushFile: () => Promise<void>): Promise<void> {
    const flush = this.lastFlush.then(flushFile);
    // After an error, the next flush starts as usual. Only the caller of this flush gets the error.
    this.lastFlush = flush.catch(() => undefined);
    return flush;
  }

  private countReadBytes(bytes: number): void {
    this.uncollectedBytes += bytes;
    if (this.uncollectedBytes < COLLECT_EVERY_BYTES) return;
    this.uncollectedBytes = 0;
    collectYoungGarbage();
  }

  /** Waits until the service may read `bytes` more bytes without exceeding the maximum speed. */
  private async waitForSpeedLimit(bytes: number): Promise<void> {
    const now = performance.now();
    this.nextReadAt = Math.max(now, this.nextReadAt) + bytes / BYTES_PER_MS;
    const wait = this.nextReadAt - now;
    // Timers have a precision of whole milliseconds, so shorter waits are added up until they reach 2 ms.
    if (wait >= 2) await delay(wait);
  }

  /** Reads the source while it has a reading slot. A slow source frees its slot until more data arrives. */
  private async *readWithSlots(source: AsyncIterable<Buffer>, key: number | string): AsyncGenerator<Buffer> {
    const chunks = source[Symbol.asyncIterator]();
    let freeSlot = await this.readingQueue.enter(key);
    let [bytesLeft, waitMsLeft] = [SLOT_MAX_BYTES, SLOT_MAX_WAIT_MS];
    const reenterQueue = async (ready?: Promise<unknown>) => {
      freeSlot();
      await ready;
      freeSlot = await this.readingQueue.enter(key);
      [bytesLeft, waitMsLeft] = [SLOT_MAX_BYTES, SLOT_MAX_WAIT_MS];
    };
    try {
      for (;;) {
        if (bytesLeft <= 0) await reenterQueue();
        const requestedAt = performance.now();
        const nextChunk = chunks.next();
        if (!(await settlesWithin(nextChunk, waitMsLeft))) await reenterQueue(nextChunk);
        else waitMsLeft -= performance.now() - requestedAt;
        const { value, done } = await nextChunk;
        if (done) return;
        bytesLeft -= value.length;
        yield value;
      }
    } finally {
      freeSlot();
      await chunks.return?.();
    }
  }

  private async writeUpload(path: string, source: AsyncIterable<Buffer>, maxBytes: number): Promise<ReceivedUpload> {
    const hash = createHash("sha256");
    const headParts: Buffer[] = [];
    let bytes = 0;
    let unsyncedBytes = 0;
    const file = await open(path, "wx", 0o600);
    try {
      for await (const chunk of source) {
        if (bytes + chunk.length > maxBytes)
          throw new UploadTooLargeError(`the upload has more than ${maxBytes} bytes`);
        if (bytes < HEAD_BYTES) headParts.push(chunk.subarray(0, HEAD_BYTES - bytes));
        await this.waitForSpeedLimit(chunk.length);
        hash.update(chunk);
        await file.write(chunk);
        this.countReadBytes(chunk.length);
        bytes += chunk.length;
        unsyncedBytes += chunk.length;
        if (unsyncedBytes < SYNC_EVERY_BYTES) continue;
        unsyncedBytes = 0;
        await this.flushInOrder(() => file.datasync());
      }
      await this.flushInOrder(() => file.sync());
    } finally {
      await file.close();
    }
    return { path, bytes, checksum: hash.digest("hex"), head: Buffer.concat(headParts) };
  }

  start() {
    return mkdir(this.folder, { recursive: true, mode: 0o700 });
  }

  /**
   * Writes the source to a new file, which the caller then moves or removes.
   * @param name unique name of the file
   * @param key identifies the owner of the stream; owners take turns
   * @throws UploadTooLargeError, and errors of the source and the disk; in these cases the file is removed
   */
  async receive(
    name: string,
    source: AsyncIterable<Buffer>,
    maxBytes: number,
    key: number | string,
  ): Promise<ReceivedUpload> {
    const path = join(this.folder, name);
    return this.writeUpload(path, this.readWithSlots(source, key), maxBytes).catch(async (error: unknown) => {
      await rm(path, { force: true });
      throw error;
    });
  }

  discard(name: string) {
    return rm(join(this.folder, name), { force: true });
  }

  /** Removes files that were last written to more than `olderThanMs` ago. Returns the number of removed files. */
  async removeOldFiles(olderThanMs: number): Promise<number> {
    let removedCount = 0;
    for (const name of await readdir(this.folder).catch(() => [])) {
      // Skips a file that another process has removed since this process read the folder.
      const stats = await stat(join(this.folder, name)).catch(() => null);
      if (!stats || Date.now() - stats.mtimeMs < olderThanMs) continue;
      await rm(join(this.folder, name), { force: true });
      removedCount += 1;
    }
    return removedCount;
  }
}
