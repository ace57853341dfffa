/**
 * Decodes untrusted pictures. Each picture is decoded in its own process, so that a crash of a decoder ends only that
 * process. The process has limits for time, memory, pixels and bytes, and no access to the service.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";

const CHILD_PROGRAM = fileURLToPath(new URL("./pictures/child.js", import.meta.url));

export const PICTURE_MAX_PIXELS = 50_000_000;
/** Limits of the process that decodes a picture: duration, CPU time and memory (data segment). */
const TIME_LIMIT_MS = 60_000;
const CPU_LIMIT_SECONDS = 12;
const DATA_LIMIT_KB = 1_048_576;
const HEADER_MAX_BYTES = 4_096;
const LIMIT_REASON = "decoding the picture takes more time, memory or pixels than allowed";
/** Niceness (lower CPU priority) of a picture process, so that runs of actions come first. */
const CHILD_NICENESS = 10;
/** Unprivileged user ID of a picture process if the service is root. Browsers have other user IDs. */
const UNPRIVILEGED_UID = 64_050;
/**
 * Shell command that sets limits for the process, which Node cannot do: no core dump, no written file, limited CPU
 * time, memory and file descriptors.
 */
const LIMITED_SHELL_COMMAND = `ulimit -c 0; ulimit -f 0; ulimit -t ${CPU_LIMIT_SECONDS}; ulimit -d ${DATA_LIMIT_KB} 2>/dev/null; ulimit -n 64; exec "$0" "$@"`;
const NODE_FLAGS = ["--max-old-space-size=64", "--no-warnings"];

export const PICTURE_FORMATS = ["jpeg", "png", "webp", "avif"] as const;
export type PictureFormat = (typeof PICTURE_FORMATS)[number];

export interface ResizeOptions {
  /** Width in pixels; null for the original width. */
  width: number | null;
  format: PictureFormat;
  /** Quality of the encoder, 1 to 100. */
  quality: number;
}

/** Job for a picture process, which gets the job as a JSON argument. */
export interface PictureJob {
  contentType: string;
  maxPixels: number;
  /** Settings of the thumbnail; absent if no thumbnail is needed. `edge` is the length of its longer edge in pixels. */
  thumbnail?: { edge: number; quality: number };
  resize?: ResizeOptions;
}

/** Header of one part of a picture process's response. `bytes` bytes of content follow the header. */
export interface PartHeader {
  bytes?: number;
  /** Width and height of the decoded picture in pixels, in its displayed orientation. */
  size?: [width: number, height: number];
  /** Error message if the process could not decode the picture. */
  fault?: string;
}

/** Error if the file is not a valid picture of its type. */
export class InvalidPictureError extends Error {
  override readonly name = "InvalidPictureError";
}

export interface PictureInspection {
  /** Width and height in pixels in the displayed orientation; null if the picture cannot be decoded within the limits. */
  size: [width: number, height: number] | null;
  /** Thumbnail as WebP; null if `size` is null. */
  thumbnail: Buffer | null;
}

/** Reads the response of a picture process from a stream, part by part. */
class PartReader {
  private unreadBytes: Buffer = Buffer.alloc(0);
  private readonly chunks: AsyncIterator<Buffer>;

  constructor(stream: AsyncIterable<Buffer>) {
    this.chunks = stream[Symbol.asyncIterator]();
  }

  /**
   * Yields the next `bytes` bytes of the response as they arrive.
   * @throws InvalidPictureError if the process ends too early
   */
  async *streamBytes(bytes: number): AsyncGenerator<Buffer> {
    for (let missing = bytes; missing > 0; ) {
      const chunk =
        this.unreadBytes.length > 0 ? this.unreadBytes : ((await this.chunks.next()).value as Buffer | undefined);
      if (!chunk) throw new InvalidPictureError(LIMIT_REASON);
      const part = chunk.subarray(0, missing);
      this.unreadBytes = chunk.subarray(part.length);
      missing -= part.length;
      yield part;
    }
  }

  /**
   * Returns the next `bytes` bytes of the response as one buffer.
   * @throws InvalidPictureError if `bytes` exceeds `maxBytes`
   */
  async readBytes(bytes: number, maxBytes: number): Promise<Buffer> {
    if (bytes > maxBytes) throw new InvalidPictureError(`the converted picture has more than ${maxBytes} bytes`);
    const chunks: Buffer[] = [];
    for await (const chunk of this.streamBytes(bytes)) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  async readHeader(): Promise<PartHeader & { bytes: number }> {
    const length = (await this.readBytes(4, 4)).readUInt32BE();
    return JSON.parse(String(await this.readBytes(length, HEADER_MAX_BYTES)));
  }
}

/** Returns null for the error of a picture that could not be decoded. Throws other errors again. */
const toNullIfUndecodable = (error: unknown): null => {
  if (error instanceof InvalidPictureError) return null;
  throw error;
};

export class PictureProcessor {
  private readonly running = new Set<ChildProcess>();
  private account: { uid: number; gid: number } | null =
    process.getuid?.() === 0 ? { uid: UNPRIVILEGED_UID, gid: UNPRIVILEGED_UID } : null;
  private probed: Promise<void> | null = null;

  constructor(private readonly options: { log: Logger }) {}

  private startChild(job: PictureJob): ChildProcess {
    const args = ["-c", LIMITED_SHELL_COMMAND, process.execPath, ...NODE_FLAGS, CHILD_PROGRAM, JSON.stringify(job)];
    const stdio = ["pipe", "ignore", "ignore", "pipe"] as const;
    const child = spawn("/bin/sh", args, { cwd: "/", env: {}, stdio: [...stdio], ...this.account });
    this.running.add(child);
    child.once("close", () => this.running.delete(child));
    child.on("error", () => undefined);
    try {
      if (child.pid !== undefined) setPriority(child.pid, CHILD_NICENESS);
    } catch {
      // Ignores the error: the process has ended, or this process may not change priorities. In the second case, the
      // picture process has the same priority as the service.
    }
    return child;
  }

  /** Sends the picture to a new process, and passes the response of the process to `readFrames`. @throws InvalidPictureError */
  private async runJob<T>(
    source: Readable,
    job: PictureJob,
    readFrames: (frames: PartReader) => Promise<T>,
  ): Promise<T> {
    const child = this.startChild(job);
    const kill = () => child.kill("SIGKILL");
    const timer = setTimeout(kill, TIME_LIMIT_MS);
    // Ignores the error: if the process could not start, there is no response, which is reported below.
    const closed = once(child, "close").catch(() => undefined);
    // Starts to read the response now, because output that is unread when the process ends is lost.
    const answer = (child.stdio[3] as Readable).pipe(new PassThrough());
    try {
      // Ignores the error: if the process ends before it has read everything, its response contains the reason.
      const sent = pipeline(source, child.stdin!).catch(() => undefined);
      const result = await readFrames(new PartReader(answer));
      await sent;
      return result;
    } finally {
      clearTimeout(timer);
      kill();
      source.destroy();
      await closed;
    }
  }

  /** Checks, only once, if the unprivileged account can read the program of the picture process. */
  private async probeSandbox(): Promise<void> {
    if (this.account === null) return;
    const job = { contentType: "image/gif", maxPixels: 1, resize: { width: 1, format: "png", quality: 1 } } as const;
    const answers = await this.runJob(Readable.from([Buffer.from("GIF")]), job, (frames) => frames.readHeader()).catch(
      toNullIfUndecodable,
    );
    if (answers !== null) return;
    this.account = null;
    this.options.log.warn(
      "pictures are decoded under the service's own account: another account is not allowed to read this installation's folder",
    );
  }

  private async prepareSandbox(): Promise<void> {
    this.probed ??= this.probeSandbox();
    await this.probed;
  }

  /**
   * Measures the picture and creates its thumbnail.
   * @param keep gets the file without private metadata as a stream, and must read all of it
   * @throws InvalidPictureError if the file is not of the type `contentType`
   */
  async inspect<T>(
    source: Readable,
    contentType: string,
    thumbnail: { edge: number; quality: number; maxBytes: number },
    keep: (clean: AsyncIterable<Buffer>) => Promise<T>,
  ): Promise<PictureInspection & { storedCopy: T }> {
    await this.prepareSandbox();
    const job = { contentType, maxPixels: PICTURE_MAX_PIXELS, thumbnail };
    return this.runJob(source, job, async (frames) => {
      const clean = await frames.readHeader();
      if (clean.fault !== undefined) throw new InvalidPictureError(clean.fault);
      const stored = await keep(frames.streamBytes(clean.bytes));
      const small = await frames.readHeader().catch(toNullIfUndecodable);
      const bytes = small?.size
        ? await frames.readBytes(small.bytes, thumbnail.maxBytes).catch(toNullIfUndecodable)
        : null;
      return { size: bytes && small!.size!, thumbnail: bytes, storedCopy: stored };
    });
  }

  /**
   * Returns the picture with another width, format or quality. The result is never wider than the original.
   * @throws InvalidPictureError
   */
  async resize(source: Readable, contentType: string, resizing: ResizeOptions, maxBytes: number): Promise<Buffer> {
    await this.prepareSandbox();
    const job = { contentType, maxPixels: PICTURE_MAX_PIXELS, resize: resizing };
    return this.runJob(source, job, async (frames) => {
      const { fault, bytes } = await frames.readHeader();
      if (fault !== undefined) throw new InvalidPictureError(fault);
      return frames.readBytes(bytes, maxBytes);
    });
  }

  stop(): void {
    for (const child of this.running) child.kill("SIGKILL");
  }
}
