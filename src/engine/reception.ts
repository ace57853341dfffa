/**
 * Receives a stream into a file of its own: how many bytes, their SHA-256, how they begin. What breaks off leaves no file. Many at
 * once take turns, so that whoever else this process works for does not wait for them. Knows not what is received.
 */
import { createHash } from "node:crypto";
import { mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { collectYoungGarbage } from "../young-garbage.js";

/** As many first bytes as recognizers of types look at. */
const HEAD_BYTES = 4_100;
/** What all of them together are read at: a tenth of a core. */
const BYTES_PER_MS = 32 * 1024;
/** After so many bytes of all of them their buffers are collected. */
const COLLECT_EVERY_BYTES = 4 * 1024 * 1024;
/** Written so far apart that the disk has no large debt to pay at the end, while others wait for it. */
const SYNC_EVERY_BYTES = 4 * 1024 * 1024;

/**
 * What one source may be read before the next has its turn, and how long it may keep a turn waiting in all. Bytes that wait for long become
 * old garbage, which only a full collection finds: hundreds of sources that are all read a little cost one after the other.
 */
const TURN_BYTES = 4 * 1024 * 1024;
const TURN_WAIT_MS = 100;

export class TooManyBytes extends Error {
  override readonly name = "TooManyBytes";
}

export interface Received {
  path: string;
  bytes: number;
  /** SHA-256 in hexadecimal. */
  checksum: string;
  /** The first bytes, 4,100 at the most. */
  head: Buffer;
}

/** Few places, and who waits for them in turn. */
export interface Turns {
  /** @returns what leaves the place, once */
  enter(key: number | string): Promise<() => void>;
}

/** Whether it settles before that time. */
function settlesWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), limitMs);
    const settled = () => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(settled, settled);
  });
}

export type Reception = ReturnType<typeof createReception>;

/** @param folder absolute; made where it is missing @param turns in which sources are read */
export function createReception(folder: string, turns: Turns) {
  let freeAt = 0;
  let uncollected = 0;
  let flushed: Promise<void> = Promise.resolve();

  /** One file at a time: who else writes to the disk, a database say, waits for one and not for hundreds. */
  function flush(put: () => Promise<void>): Promise<void> {
    const done = flushed.then(put);
    flushed = done.catch(() => undefined);
    return done;
  }

  function passed(bytes: number): void {
    uncollected += bytes;
    if (uncollected < COLLECT_EVERY_BYTES) return;
    uncollected = 0;
    collectYoungGarbage();
  }

  /** Waits until it is these bytes' turn. */
  async function turn(bytes: number): Promise<void> {
    const now = performance.now();
    freeAt = Math.max(now, freeAt) + bytes / BYTES_PER_MS;
    const wait = freeAt - now;
    // Timers count whole milliseconds: what is less is waited for later, together.
    if (wait >= 2) await delay(wait);
  }

  /** The source, read while it has a place; one that is slow to send leaves its place until more has come. */
  async function* inTurns(source: AsyncIterable<Buffer>, key: number | string): AsyncGenerator<Buffer> {
    const chunks = source[Symbol.asyncIterator]();
    let leave = await turns.enter(key);
    let [left, patience] = [TURN_BYTES, TURN_WAIT_MS];
    const again = async (ready?: Promise<unknown>) => {
      leave();
      await ready;
      leave = await turns.enter(key);
      [left, patience] = [TURN_BYTES, TURN_WAIT_MS];
    };
    try {
      for (;;) {
        if (left <= 0) await again();
        const asked = performance.now();
        const coming = chunks.next();
        if (!(await settlesWithin(coming, patience))) await again(coming);
        else patience -= performance.now() - asked;
        const { value, done } = await coming;
        if (done) return;
        left -= value.length;
        yield value;
      }
    } finally {
      leave();
      await chunks.return?.();
    }
  }

  async function write(path: string, source: AsyncIterable<Buffer>, maxBytes: number): Promise<Received> {
    const hash = createHash("sha256");
    const heads: Buffer[] = [];
    let bytes = 0;
    let unsynced = 0;
    const file = await open(path, "wx", 0o600);
    try {
      for await (const chunk of source) {
        if (bytes + chunk.length > maxBytes) throw new TooManyBytes(`more than ${maxBytes} bytes`);
        if (bytes < HEAD_BYTES) heads.push(chunk.subarray(0, HEAD_BYTES - bytes));
        await turn(chunk.length);
        hash.update(chunk);
        await file.write(chunk);
        passed(chunk.length);
        bytes += chunk.length;
        unsynced += chunk.length;
        if (unsynced < SYNC_EVERY_BYTES) continue;
        unsynced = 0;
        await flush(() => file.datasync());
      }
      await flush(() => file.sync());
    } finally {
      await file.close();
    }
    return { path, bytes, checksum: hash.digest("hex"), head: Buffer.concat(heads) };
  }

  return {
    /** Makes the folder. */
    start: () => mkdir(folder, { recursive: true, mode: 0o700 }),

    /**
     * Writes the source to a new file that the caller takes away. `name` must be a name that nothing else has.
     * @param key whose it is: keys take turns
     * @throws TooManyBytes, and what the source or the disk throws; then there is no file
     */
    async receive(
      name: string,
      source: AsyncIterable<Buffer>,
      maxBytes: number,
      key: number | string,
    ): Promise<Received> {
      const path = join(folder, name);
      return write(path, inTurns(source, key), maxBytes).catch(async (error: unknown) => {
        await rm(path, { force: true });
        throw error;
      });
    },

    discard: (name: string) => rm(join(folder, name), { force: true }),

    /** Removes what was not written to for so long that nobody writes it any longer. */
    async sweep(olderThanMs: number): Promise<number> {
      let removed = 0;
      for (const name of await readdir(folder).catch(() => [])) {
        const found = await stat(join(folder, name)).catch(() => null);
        if (!found || Date.now() - found.mtimeMs < olderThanMs) continue;
        await rm(join(folder, name), { force: true });
        removed += 1;
      }
      return removed;
    },
  };
}
