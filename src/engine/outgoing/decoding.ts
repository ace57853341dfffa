/** Decodes the body of a response (gzip, deflate, br, zstd). The size of the body is limited at every step. */
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import { ZSTD_FRAMES_MAX } from "../../limits.js";
import { getTransportErrorCode, OutgoingError } from "./failure.js";

export const ACCEPT_ENCODING = "gzip, deflate, br, zstd";

/** Maximum number of encodings of a body. A second one is legal but rare, and a long chain would only keep the process busy. */
const ENCODINGS_MAX = 2;
/** Maximum window as a power of two: 8 MB, as RFC 9659 requires for HTTP. The default would allow 128 MB per response. */
const ZSTD_WINDOW_LOG = 23;
const ZLIB_METHOD_DEFLATE = 8;

/**
 * Returns a decoder for `deflate`. By specification, this is a zlib stream, but some servers send a raw deflate stream. The first byte
 * shows the format.
 */
const createInflater = (firstByte: number) =>
  (firstByte & 0x0f) === ZLIB_METHOD_DEFLATE ? createInflate() : createInflateRaw();

async function readFirstPart(parts: AsyncIterator<Buffer>): Promise<Buffer | null> {
  for (;;) {
    const { value, done } = await parts.next();
    if (done) return null;
    if (value.length > 0) return value;
  }
}

const createZstdDecoder = () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });

/**
 * Decodes a zstd body. Node's decoder ignores bytes after a frame, so each frame gets a new decoder.
 * @throws OutgoingError TRANSPORT for too many frames
 */
async function* decodeZstdFrames(body: AsyncIterable<Buffer>, origin: string): AsyncGenerator<Buffer> {
  const parts = body[Symbol.asyncIterator]();
  let unreadBytes = await readFirstPart(parts);
  for (let frameCount = 1; unreadBytes !== null; frameCount += 1) {
    if (frameCount > ZSTD_FRAMES_MAX) {
      const message = `the response of ${origin} could not be decoded (more than ${ZSTD_FRAMES_MAX} frames of zstd)`;
      throw new OutgoingError("TRANSPORT", message, origin);
    }
    const decoder = createZstdDecoder();
    const writeParts = async () => {
      for (; unreadBytes !== null; unreadBytes = await readFirstPart(parts)) {
        const bytesBefore = decoder.bytesWritten;
        await new Promise<void>((resolve, reject) => {
          decoder.write(unreadBytes, (error) => (error ? reject(error) : resolve()));
        });
        unreadBytes = unreadBytes.subarray(decoder.bytesWritten - bytesBefore);
        // Unread bytes mean that the frame, and so the output of this decoder, has ended. The next frame gets a new decoder.
        if (unreadBytes.length > 0) return;
      }
      decoder.end();
    };
    const writing = writeParts().catch((error: Error) => decoder.destroy(error));
    yield* decoder;
    await writing;
  }
}

type DecodingStep = Transform | ((body: AsyncIterable<Buffer>) => AsyncGenerator<Buffer>);

/** Decoders by encoding. Only zstd needs a loop over frames: Node's gzip decoder reads all members, and other formats have no frames. */
const DECODER_BY_ENCODING: Readonly<Record<string, (firstByte: number, origin: string) => DecodingStep>> = {
  gzip: () => createGunzip(),
  "x-gzip": () => createGunzip(),
  deflate: createInflater,
  br: () => createBrotliDecompress(),
  zstd: (_firstByte, origin) => (body) => decodeZstdFrames(body, origin),
};

interface DecodingOptions {
  encoding: string | undefined;
  /** Maximum size of the body in bytes, which applies before and after each step of decoding. */
  maxBytes: number;
  origin: string;
  /** Called for each decoded part of the body. If the promise rejects, reading the body fails; an OutgoingError is thrown again. */
  onDecoded(chunk: Buffer): Promise<void>;
}

function createDecoders(encoding: string, firstByte: number, origin: string): DecodingStep[] {
  const names = encoding
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity");
  const unknownEncoding = names.find((name) => !Object.hasOwn(DECODER_BY_ENCODING, name));
  if (unknownEncoding !== undefined || names.length > ENCODINGS_MAX) {
    const supportedEncodings = `at most ${ENCODINGS_MAX} of ${ACCEPT_ENCODING}`;
    const message = `the Content-Encoding of the response of ${origin} is not supported; the service decodes ${supportedEncodings}`;
    throw new OutgoingError("UNSUPPORTED", message, origin);
  }
  // `firstByte` shows only the format of the outermost encoding. An inner `deflate` must be a zlib stream.
  return names
    .reverse()
    .map((name, index) => DECODER_BY_ENCODING[name]!(index === 0 ? firstByte : ZLIB_METHOD_DEFLATE, origin));
}

/** Returns a stream that passes bytes on. Above `maxBytes`, the stream fails with the error that `createTooLargeError` creates. */
function limitBytes(maxBytes: number, createTooLargeError: () => Error): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > maxBytes) done(createTooLargeError());
      else done(null, chunk);
    },
  });
}

/** Reads a body without encodings. The body stream itself fails when the signal of the request aborts. */
async function readUnencodedBody(
  body: Readable,
  { maxBytes, onDecoded }: DecodingOptions,
  createTooLargeError: () => Error,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBytes) throw createTooLargeError();
    await onDecoded(part);
    parts.push(part);
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, bytes);
}

/**
 * Reads and decodes a body. Does not decode an empty body, because a response to a HEAD request may also name an encoding.
 * @throws OutgoingError UNSUPPORTED for unknown or too many encodings, LIMIT for a body that is too large, TRANSPORT if the body is
 * incomplete or cannot be decoded; the signal's abort reason
 */
export async function readDecodedBody(body: Readable, options: DecodingOptions, signal: AbortSignal): Promise<Buffer> {
  const { encoding = "", maxBytes, origin, onDecoded } = options;
  const createTooLargeError = () =>
    new OutgoingError("LIMIT", `the response of ${origin} is larger than ${maxBytes / 2 ** 20} MB`, origin);
  const parts: Buffer[] = [];
  const collectParts = async (decodedParts: AsyncIterable<Buffer>) => {
    for await (const part of decodedParts) {
      await onDecoded(part);
      parts.push(part);
    }
  };
  try {
    if (encoding === "") return await readUnencodedBody(body, options, createTooLargeError);
    const source = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const first = await readFirstPart(source);
    if (first === null) return Buffer.alloc(0);
    const steps = createDecoders(encoding, first[0]!, origin).flatMap((step) => [
      step,
      limitBytes(maxBytes, createTooLargeError),
    ]);
    async function* readWholeBody(): AsyncGenerator<Buffer> {
      yield first!;
      for (let next = await source.next(); !next.done; next = await source.next()) yield next.value;
    }
    await pipeline([readWholeBody, limitBytes(maxBytes, createTooLargeError), ...steps, collectParts] as never, {
      signal,
    });
    return Buffer.concat(parts);
  } catch (error) {
    body.on("error", () => undefined).destroy();
    if (error instanceof OutgoingError) throw error;
    signal.throwIfAborted();
    const message = `the response of ${origin} could not be read or decoded (${getTransportErrorCode(error)})`;
    throw new OutgoingError("TRANSPORT", message, origin);
  }
}
