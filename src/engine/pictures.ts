/**
 * Looks at strangers' pictures in a process of its own for each, which is thrown away: a decoder's fault ends that process and is a
 * refusal here. Bounded in time, memory, pixels and bytes; nothing of the service is in its reach. Knows no app and no store.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";

const CHILD = fileURLToPath(new URL("./pictures/child.js", import.meta.url));

/** What a picture may take: pixels when decoded, time, and what its process may hold. */
export const PICTURE_MAX_PIXELS = 50_000_000;
const TIME_LIMIT_MS = 15_000;
const CPU_LIMIT_SECONDS = 12;
const DATA_LIMIT_KB = 1_048_576;
const ANSWER_MAX_BYTES = 64 * 1024;
/** Runs come first. */
const PRIORITY = 10;
/** An account of nobody, for a service that is root; other numbers than its browsers have. */
const NOBODY = 64_050;
/** A shell sets the limits, for Node cannot: no core, no written file, so much processor time, memory and descriptors. */
const LIMITED = `ulimit -c 0; ulimit -f 0; ulimit -t ${CPU_LIMIT_SECONDS}; ulimit -d ${DATA_LIMIT_KB} 2>/dev/null; ulimit -n 64; exec "$0" "$@"`;
const NODE_FLAGS = ["--max-old-space-size=64", "--no-warnings"];

export const PICTURE_FORMATS = ["jpeg", "png", "webp", "avif"] as const;
export type PictureFormat = (typeof PICTURE_FORMATS)[number];

export interface Resizing {
  /** null: as wide as it is. */
  width: number | null;
  format: PictureFormat;
  /** 1 to 100. */
  quality: number;
}

/** What the process is asked. */
export interface Job {
  contentType: string;
  maxPixels: number;
  /** The longer edge of a thumbnail. */
  thumbnail?: { edge: number; quality: number };
  resize?: Resizing;
}

/** What the process answers; so many bytes of each part follow. */
export interface PictureAnswer {
  size: [width: number, height: number] | null;
  cleanBytes: number;
  otherBytes: number;
  /** Why the file is no picture at all. */
  damaged?: string;
  /** Why it cannot be shown; it may be kept. */
  undecodable?: string;
}

/** The file cannot be read as the picture that it says it is. */
export class PictureFault extends Error {
  override readonly name = "PictureFault";
}

export interface Inspection {
  /** As it is shown, upright; null where it cannot be decoded within the bounds. */
  size: [width: number, height: number] | null;
  /** WebP; null with `size`. */
  thumbnail: Buffer | null;
}

export type Pictures = ReturnType<typeof createPictures>;

/** All of a stream that is to be small. @throws PictureFault */
async function collected(stream: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new PictureFault("the picture came to more than it may");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The first bytes of a stream as a stream of their own; what follows stays in it. */
async function* firstOf(chunks: AsyncIterator<Buffer>, bytes: number, rest: { buffer: Buffer }): AsyncGenerator<Buffer> {
  let missing = bytes;
  while (missing > 0) {
    const chunk = rest.buffer.length > 0 ? rest.buffer : (await chunks.next()).value;
    if (!chunk) throw new PictureFault("the picture's process ended too early");
    rest.buffer = chunk.subarray(missing);
    missing -= Math.min(missing, chunk.length);
    yield chunk.subarray(0, chunk.length - rest.buffer.length);
  }
}

export function createPictures({ log }: { log: Logger }) {
  const running = new Set<ChildProcess>();
  let account: { uid: number; gid: number } | null = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : null;
  let probed: Promise<void> | null = null;

  function start(job: Job): ChildProcess {
    const args = ["-c", LIMITED, process.execPath, ...NODE_FLAGS, CHILD, JSON.stringify(job)];
    const stdio = ["pipe", "pipe", "ignore", "pipe"] as const;
    const child = spawn("/bin/sh", args, { cwd: "/", env: {}, stdio: [...stdio], ...account });
    running.add(child);
    child.once("close", () => running.delete(child));
    child.on("error", () => undefined);
    try {
      if (child.pid !== undefined) setPriority(child.pid, PRIORITY);
    } catch {
      // It has ended already, or this process may not: it works at the same weight.
    }
    return child;
  }

  /** Sends the picture in, and hands `take` what comes out. @throws PictureFault */
  async function ask<T>(
    source: Readable,
    job: Job,
    take: (answer: PictureAnswer, made: Readable) => Promise<T>,
  ): Promise<T> {
    const child = start(job);
    const kill = () => child.kill("SIGKILL");
    const timer = setTimeout(kill, TIME_LIMIT_MS);
    const closed = once(child, "close");
    try {
      // A process that ends before it has read all says why in its answer, or in its lack of one.
      const sent = pipeline(source, child.stdin!).catch(() => undefined);
      const text = await collected(child.stdout!, ANSWER_MAX_BYTES);
      if (text.length === 0) throw new PictureFault("the picture asks for more than it may: time, memory or pixels");
      const answer = JSON.parse(text.toString()) as PictureAnswer;
      if (answer.damaged !== undefined) throw new PictureFault("the picture is damaged");
      const taken = await take(answer, child.stdio[3] as Readable);
      await sent;
      return taken;
    } finally {
      clearTimeout(timer);
      kill();
      source.destroy();
      await closed.catch(() => undefined);
    }
  }

  /** Once: whether an account of nobody can read what the process is made of. */
  async function probe(): Promise<void> {
    if (account === null) return;
    const job = { contentType: "image/gif", maxPixels: 1, resize: { width: 1, format: "png", quality: 1 } } as const;
    const answer = await ask(Readable.from([Buffer.from("GIF")]), job, async () => true).catch((error: Error) => error);
    if (answer instanceof PictureFault && answer.message === "the picture is damaged") return;
    account = null;
    log.warn("pictures are decoded under the service's own account: another may not read this installation's folder");
  }

  async function ready(): Promise<void> {
    probed ??= probe();
    await probed;
  }

  return {
    /**
     * Measures the picture and makes its thumbnail; `keep` is given the file without what is private in it, and takes all of it.
     * @throws PictureFault for what cannot be read as `contentType` at all
     */
    async inspect<T>(
      source: Readable,
      contentType: string,
      thumbnail: { edge: number; quality: number; maxBytes: number },
      keep: (clean: AsyncIterable<Buffer>) => Promise<T>,
    ): Promise<Inspection & { kept: T }> {
      await ready();
      const job = { contentType, maxPixels: PICTURE_MAX_PIXELS, thumbnail };
      return ask(source, job, async ({ size, cleanBytes, otherBytes }, made) => {
        const chunks = made[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
        const rest = { buffer: Buffer.alloc(0) };
        const kept = await keep(firstOf(chunks, cleanBytes, rest));
        if (size === null) return { size: null, thumbnail: null, kept };
        const small = await collected(firstOf(chunks, otherBytes, rest), thumbnail.maxBytes);
        return { size, thumbnail: small, kept };
      });
    },

    /** The picture in another width, format or quality; never wider than it is. @throws PictureFault */
    async resize(source: Readable, contentType: string, resizing: Resizing, maxBytes: number): Promise<Buffer> {
      await ready();
      const job = { contentType, maxPixels: PICTURE_MAX_PIXELS, resize: resizing };
      return ask(source, job, (_answer, made) => collected(made, maxBytes));
    },

    /** Ends what runs. */
    stop(): void {
      for (const child of running) child.kill("SIGKILL");
    },
  };
}
