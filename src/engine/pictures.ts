/**
 * Decodes untrusted pictures. Each picture has its own process with limits for time, memory, pixels and bytes. A crash of a decoder ends
 * only this process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";

const CHILD_PROGRAM = fileURLToPath(new URL("./pictures/child.js", import.meta.url));

const PICTURE_MAX_PIXELS = 50_000_000;
/** Time after which the service kills a picture process. */
const TIME_LIMIT_MS = 60_000;
/** CPU time after which the kernel sends SIGXCPU, which ends the picture process. */
const CPU_LIMIT_SECONDS = 12;
const DATA_SEGMENT_LIMIT_KB = 1_048_576;
const PART_HEADER_MAX_BYTES = 4_096;
const LIMIT_REASON = "decoding the picture takes more time, memory or pixels than allowed";
/** Error text after SIGKILL. The service sends SIGKILL at the time limit and when it stops; the kernel sends it if no memory is free. */
const KILLED_REASON = "the process that decodes pictures was ended before it finished";
/** Errors of the kernel while it has too few resources (EAGAIN, ENOMEM, ENFILE). */
const MISSING_RESOURCE_MESSAGES = [
  "Resource temporarily unavailable",
  "Cannot allocate memory",
  "Too many open files in system",
];
const ERROR_TEXT_MAX_CHARACTERS = 4_096;
/** Lower CPU priority (nice value) of a picture process, so that runs of actions come first. */
const CHILD_NICENESS = 10;
/** Account of a picture process if the service is root. Browsers have other user IDs. */
const UNPRIVILEGED_UID = 64_050;
/** Limits that Node cannot set: no core dump, no written file, limited CPU time, memory and file descriptors. */
const LIMITED_SHELL_COMMAND = `ulimit -c 0; ulimit -f 0; ulimit -S -t ${CPU_LIMIT_SECONDS}; ulimit -H -t ${CPU_LIMIT_SECONDS + 1}; ulimit -d ${DATA_SEGMENT_LIMIT_KB} 2>/dev/null; ulimit -n 64; exec "$0" "$@"`;
const NODE_FLAGS = ["--max-old-space-size=64", "--no-warnings"];

export const PICTURE_FORMATS = ["jpeg", "png", "webp", "avif"] as const;
export type PictureFormat = (typeof PICTURE_FORMATS)[number];

export interface PictureResizeOptions {
  width: number | null;
  format: PictureFormat;
  /** Quality of the encoder, 1 to 100. */
  quality: number;
}

/** Job of a picture process, which gets the job as a JSON argument. */
export interface PictureJob {
  contentType: string;
  maxPixels: number;
  /** Settings of the thumbnail; absent if no thumbnail is needed. `edge` is the maximum length of its longer edge in pixels. */
  thumbnail?: { edge: number; quality: number };
  resize?: PictureResizeOptions;
}

/** Header of one part of a picture process's response. `bytes` bytes of content follow the header. */
export interface PictureResponsePartHeader {
  bytes?: number;
  /** Width and height of the decoded picture in pixels, in its displayed orientation. */
  size?: [width: number, height: number];
  fault?: string;
}

/** Error if the file is not a valid picture of its type, or if a limit was exceeded. */
export class InvalidPictureError extends Error {
  override readonly name = "InvalidPictureError";
}

/** Error if a picture process cannot start now, or was killed while it decoded a picture. A retry may succeed. */
export class PictureProcessBusyError extends Error {
  override readonly name = "PictureProcessBusyError";
}

export interface PictureInspection {
  /**
   * Width and height in pixels in the displayed orientation; null if the picture cannot be decoded within the limits, or if its thumbnail
   * is too large.
   */
  size: [width: number, height: number] | null;
  thumbnail: Buffer | null;
}

class PartReader {
  private unreadBytes: Buffer = Buffer.alloc(0);
  private readonly chunks: AsyncIterator<Buffer>;

  /** @param createUnexpectedEndError returns the error for a process that has ended before the end of its response */
  constructor(
    stream: AsyncIterable<Buffer>,
    private readonly createUnexpectedEndError: () => Promise<Error>,
  ) {
    this.chunks = stream[Symbol.asyncIterator]();
  }

  /** Yields the next `bytes` bytes as they arrive. @throws InvalidPictureError or PictureProcessBusyError at an early end */
  async *streamBytes(bytes: number): AsyncGenerator<Buffer> {
    for (let missingBytes = bytes; missingBytes > 0; ) {
      const chunk =
        this.unreadBytes.length > 0 ? this.unreadBytes : ((await this.chunks.next()).value as Buffer | undefined);
      if (!chunk) throw await this.createUnexpectedEndError();
      const part = chunk.subarray(0, missingBytes);
      this.unreadBytes = chunk.subarray(part.length);
      missingBytes -= part.length;
      yield part;
    }
  }

  /** Reads the next `bytes` bytes. @throws InvalidPictureError if `bytes` exceeds `maxBytes`; errors of `streamBytes` */
  async readBytes(bytes: number, maxBytes: number): Promise<Buffer> {
    if (bytes > maxBytes) throw new InvalidPictureError(`the converted picture has more than ${maxBytes} bytes`);
    const chunks: Buffer[] = [];
    for await (const chunk of this.streamBytes(bytes)) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  async readHeader(): Promise<PictureResponsePartHeader & { bytes: number }> {
    const length = (await this.readBytes(4, 4)).readUInt32BE();
    return JSON.parse(String(await this.readBytes(length, PART_HEADER_MAX_BYTES)));
  }
}

/** Returns null for a picture that could not be decoded. Throws other errors again. */
const toNullIfUndecodable = (error: unknown): null => {
  if (error instanceof InvalidPictureError) return null;
  throw error;
};

interface PictureProcessorOptions {
  log: Logger;
  /** Path of another program for the picture process. Only tests set this option. */
  program?: string;
}

export class PictureProcessor {
  private readonly runningChildren = new Set<ChildProcess>();
  private account: { uid: number; gid: number } | null =
    process.getuid?.() === 0 ? { uid: UNPRIVILEGED_UID, gid: UNPRIVILEGED_UID } : null;
  private accountProbe: Promise<void> | null = null;
  private isStopped = false;

  constructor(private readonly options: PictureProcessorOptions) {}

  /** Starts a picture process. @throws PictureProcessBusyError */
  private async startChild(job: PictureJob): Promise<ChildProcess> {
    if (this.isStopped) throw new PictureProcessBusyError("the service is stopping");
    const program = this.options.program ?? CHILD_PROGRAM;
    const args = ["-c", LIMITED_SHELL_COMMAND, process.execPath, ...NODE_FLAGS, program, JSON.stringify(job)];
    const stdio = ["pipe", "ignore", "pipe", "pipe"] as const;
    const child = spawn("/bin/sh", args, { cwd: "/", env: {}, stdio: [...stdio], ...this.account });
    child.on("error", () => undefined);
    if (child.pid === undefined) {
      const [cause] = await once(child, "error");
      throw new PictureProcessBusyError("the process that decodes pictures cannot start at the moment", { cause });
    }
    this.runningChildren.add(child);
    child.once("close", () => this.runningChildren.delete(child));
    try {
      setPriority(child.pid, CHILD_NICENESS);
    } catch {
      // Ignores the error: the process has ended, or the service may not change its priority, which then stays normal.
    }
    return child;
  }

  /** Starts a picture process for `source`. Destroys `source` if the process does not start. @throws PictureProcessBusyError */
  private async startChildForPicture(source: Readable, job: PictureJob): Promise<ChildProcess> {
    try {
      await this.prepareAccount();
      return await this.startChild(job);
    } catch (error) {
      source.destroy();
      throw error;
    }
  }

  /** Sends the picture to the process, and reads the response with `readParts`. @throws InvalidPictureError, PictureProcessBusyError */
  private async runJob<T>(
    child: ChildProcess,
    source: Readable,
    readParts: (parts: PartReader) => Promise<T>,
  ): Promise<T> {
    const kill = () => child.kill("SIGKILL");
    const timer = setTimeout(kill, TIME_LIMIT_MS);
    // Also resolves if the process cannot be killed (event "error"), so that no request waits without end.
    const closed = once(child, "close").catch(() => undefined);
    // Reads the response from now on, because output that is unread when the process ends is lost.
    const answer = (child.stdio[3] as Readable).pipe(new PassThrough());
    let errorText = "";
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      errorText = (errorText + text).slice(0, ERROR_TEXT_MAX_CHARACTERS);
    });
    const createUnexpectedEndError = async () => {
      await closed;
      if (child.signalCode === "SIGKILL") return new PictureProcessBusyError(KILLED_REASON);
      const missingResource = MISSING_RESOURCE_MESSAGES.find((message) => errorText.includes(message));
      return child.signalCode === null && missingResource !== undefined
        ? new PictureProcessBusyError(
            `the process that decodes pictures cannot start at the moment (${missingResource})`,
          )
        : new InvalidPictureError(LIMIT_REASON);
    };
    try {
      // Ignores errors of writing. A process that ends before it has read everything sends the reason in its response.
      const sent = pipeline(source, child.stdin!).catch(() => undefined);
      const result = await readParts(new PartReader(answer, createUnexpectedEndError));
      await sent;
      return result;
    } finally {
      clearTimeout(timer);
      kill();
      source.destroy();
      await closed;
    }
  }

  /** Returns false if a picture process cannot run under `account`. @throws PictureProcessBusyError if it was killed or did not start */
  private async isAccountUsable(): Promise<boolean> {
    const job = { contentType: "image/gif", maxPixels: 1, resize: { width: 1, format: "png", quality: 1 } } as const;
    let child: ChildProcess;
    try {
      child = await this.startChild(job);
    } catch (error) {
      // EPERM: the service is root, but may not switch to another account. EINVAL: this container has no ID for that account. Node throws
      // both. EACCES: the account may not run the shell. Node emits this error as an event, so it is the cause.
      const { code, cause } = error as NodeJS.ErrnoException;
      if (["EPERM", "EINVAL"].includes(code ?? "") || (cause as NodeJS.ErrnoException)?.code === "EACCES") return false;
      throw error;
    }
    const picture = Readable.from([Buffer.from("GIF")]);
    const answer = await this.runJob(child, picture, (parts) => parts.readHeader()).catch(toNullIfUndecodable);
    if (answer === null && child.signalCode !== null) throw new PictureProcessBusyError(KILLED_REASON);
    return answer !== null;
  }

  private async probeAccount(): Promise<void> {
    if (this.account === null || (await this.isAccountUsable())) return;
    this.account = null;
    this.options.log.warn(
      "pictures are decoded under the service's own account: another account is not allowed to run this installation's programs",
    );
  }

  private async prepareAccount(): Promise<void> {
    this.accountProbe ??= this.probeAccount().catch((error: unknown) => {
      this.accountProbe = null;
      throw error;
    });
    await this.accountProbe;
  }

  /**
   * Measures the picture and creates its thumbnail.
   * @param storeFile gets the file without private metadata as a stream, and must read all of it
   * @throws InvalidPictureError if the file is not of the type `contentType`; PictureProcessBusyError
   */
  async inspect<T>(
    source: Readable,
    contentType: string,
    thumbnail: { edge: number; quality: number; maxBytes: number },
    storeFile: (cleanFile: AsyncIterable<Buffer>) => Promise<T>,
  ): Promise<PictureInspection & { storedCopy: T }> {
    const child = await this.startChildForPicture(source, { contentType, maxPixels: PICTURE_MAX_PIXELS, thumbnail });
    return this.runJob(child, source, async (parts) => {
      const cleanFileHeader = await parts.readHeader();
      if (cleanFileHeader.fault !== undefined) throw new InvalidPictureError(cleanFileHeader.fault);
      const storedCopy = await storeFile(parts.streamBytes(cleanFileHeader.bytes));
      const thumbnailHeader = await parts.readHeader().catch(toNullIfUndecodable);
      const bytes = thumbnailHeader?.size
        ? await parts.readBytes(thumbnailHeader.bytes, thumbnail.maxBytes).catch(toNullIfUndecodable)
        : null;
      return { size: bytes && thumbnailHeader!.size!, thumbnail: bytes, storedCopy };
    });
  }

  /**
   * Converts a picture to a width and format. The result is never wider than the original.
   * @throws InvalidPictureError if the picture cannot be decoded, or if the result has more than `maxBytes`; PictureProcessBusyError
   */
  async resize(
    source: Readable,
    contentType: string,
    resizeOptions: PictureResizeOptions,
    maxBytes: number,
  ): Promise<Buffer> {
    const child = await this.startChildForPicture(source, {
      contentType,
      maxPixels: PICTURE_MAX_PIXELS,
      resize: resizeOptions,
    });
    return this.runJob(child, source, async (parts) => {
      const { fault, bytes } = await parts.readHeader();
      if (fault !== undefined) throw new InvalidPictureError(fault);
      return parts.readBytes(bytes, maxBytes);
    });
  }

  stop(): void {
    this.isStopped = true;
    for (const child of this.runningChildren) child.kill("SIGKILL");
  }
}
