/** Decodes a response to text for the action's code. Masks the secrets of bindings, also in compressed or differently encoded bodies. */
import type { Transform } from "node:stream";
import { finished } from "node:stream/promises";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import { OutgoingError, type OutgoingResponse } from "../../engine/outgoing.js";
import type { SecretScanner } from "../../engine/secret-scan.js";
import { OUTGOING_RESPONSE_BODY_MAX_BYTES, ZSTD_FRAMES_MAX } from "../../limits.js";

/** Finds and masks the secret values of one app's bindings (settings whose values the service adds to requests). */
export type ResponseScanner = Pick<SecretScanner, "find" | "mask">;

export interface MaskedResponse {
  headers: Record<string, string>;
  body: string | Buffer;
  /** Keys of the settings whose values were masked in the response. */
  keys: string[];
}

const CHARSET_PATTERN = /;\s*charset\s*=\s*"?([^\s;"]+)/i;
const MASKED_VALUE_PATTERN = /«([^«»]+)»/g;
/** Minimum size in bytes of a compressed body that is searched for secrets. A shorter body cannot contain a compressed secret. */
const COMPRESSED_MIN_BYTES = 12;

type Decoder = Transform & { bytesWritten: number };

/** Compressed format of a body. `canBegin` returns false if the first bytes show that the body does not have this format. */
interface CompressedFormat {
  createDecoder(): Decoder;
  canBegin(body: Buffer): boolean;
  /** True if a body can consist of several frames, and the decoder reads only the first one. */
  hasFrames?: boolean;
}

/** Options of decoders that return the readable part of a truncated body instead of an error. */
const [ZLIB_OPTIONS, BROTLI_OPTIONS, ZSTD_OPTIONS] = [
  { finishFlush: constants.Z_SYNC_FLUSH },
  { finishFlush: constants.BROTLI_OPERATION_FLUSH },
  { finishFlush: constants.ZSTD_e_flush },
];
const GZIP_MAGIC = 0x1f8b;
const ZSTD_MAGIC = 0xfd2fb528;
/** Upper 28 bits of the magic numbers of skippable frames. A zstd stream can begin with a skippable frame. */
const ZSTD_SKIPPABLE_MAGIC = 0x184d2a5;

/**
 * Formats in which the service searches bodies for secrets. Decoders occupy threads, so `canBegin` checks the first bytes before a decoder
 * starts. Raw deflate and Brotli have no magic number, so their decoders always run.
 */
const COMPRESSED_FORMATS: readonly CompressedFormat[] = [
  { createDecoder: () => createGunzip(ZLIB_OPTIONS), canBegin: (body) => body.readUInt16BE(0) === GZIP_MAGIC },
  // In the zlib format, the first two bytes form a number that is a multiple of 31 (RFC 1950).
  { createDecoder: () => createInflate(ZLIB_OPTIONS), canBegin: (body) => body.readUInt16BE(0) % 31 === 0 },
  { createDecoder: () => createInflateRaw(ZLIB_OPTIONS), canBegin: () => true },
  { createDecoder: () => createBrotliDecompress(BROTLI_OPTIONS), canBegin: () => true },
  {
    createDecoder: () => createZstdDecompress(ZSTD_OPTIONS),
    canBegin: (body) => {
      const magic = body.readUInt32LE(0);
      return magic === ZSTD_MAGIC || magic >>> 4 === ZSTD_SKIPPABLE_MAGIC;
    },
    hasFrames: true,
  },
];
/** Codes of errors for data that is invalid in a format. Errors with other codes have other causes, for example a lack of memory. */
const INVALID_DATA_CODE_PATTERN =
  /^Z_(?:DATA_ERROR|BUF_ERROR|NEED_DICT)$|^ERR_.*FORMAT|^ZSTD_error_(?!memory|.*TooLarge)/;
/** Sizes in bytes of the parts in which an invalid body is decoded again. Each attempt splits only the part that failed before. */
const REPEATED_PART_BYTES = [4_096, 64, 1];

const UTF8 = "utf-8";
const UTF8_DECODER = new TextDecoder(UTF8);
/** Encodings that can convert a decoded text back to the same bytes, if the body was valid in the encoding. */
const EXACT_ENCODINGS = ["utf8", "utf16le", "latin1"] as const;

/** Decodes the body with the charset of the header Content-Type, or as UTF-8. @throws OutgoingError UNSUPPORTED for an unknown charset */
export function decodeResponseText({ headers, body, origin }: OutgoingResponse): string {
  const charsetLabel = CHARSET_PATTERN.exec(headers["content-type"] ?? "")?.[1]?.toLowerCase() ?? UTF8;
  try {
    return (charsetLabel === UTF8 ? UTF8_DECODER : new TextDecoder(charsetLabel)).decode(body);
  } catch {
    const message = `the response of ${origin} has an unknown charset; use responseType: "bytes"`;
    throw new OutgoingError("UNSUPPORTED", message, origin);
  }
}

const decodeOneByteCharsets = (bytes: Buffer): string[] => [bytes.toString("utf8"), bytes.toString("latin1")];

function decodeTwoByteCharsets(bytes: Buffer): string[] {
  const evenBytes = bytes.subarray(0, bytes.length & ~1);
  return [evenBytes.toString("utf16le"), Buffer.from(evenBytes).swap16().toString("utf16le")];
}

/** Returns the texts that code could decode from the bytes. Further one-byte charsets are not needed, because almost all contain ASCII. */
const listDecodedTexts = (body: Buffer): Set<string> =>
  new Set([
    ...decodeOneByteCharsets(body),
    ...decodeTwoByteCharsets(body),
    ...decodeTwoByteCharsets(body.subarray(1)),
    body.toString("latin1").replaceAll("\0", ""),
  ]);

interface DecodedParts {
  decoded: Buffer;
  /** Number of bytes of the body that the decoder has processed without an error. */
  bytesRead: number;
  isInvalid: boolean;
}

function createTooLargeError(origin: string): OutgoingError {
  const limit = `${OUTGOING_RESPONSE_BODY_MAX_BYTES / 2 ** 20} MB`;
  return new OutgoingError("LIMIT", `the response of ${origin} is larger than ${limit} after decompression`, origin);
}

const createUnreadableError = (origin: string, reason: string) =>
  new OutgoingError(
    "TRANSPORT",
    `the response of ${origin} could not be searched for secrets, because its decompression failed (${reason})`,
    origin,
  );

/**
 * Decodes bytes that arrive in parts.
 * @throws OutgoingError LIMIT if the output is too large; TRANSPORT for errors other than invalid data
 */
async function decodeParts(decoder: Decoder, parts: readonly Buffer[], origin: string): Promise<DecodedParts> {
  const decodedParts: Buffer[] = [];
  let bytes = 0;
  decoder.on("data", (part: Buffer) => {
    decodedParts.push(part);
    bytes += part.length;
    if (bytes > OUTGOING_RESPONSE_BODY_MAX_BYTES) decoder.destroy(createTooLargeError(origin));
  });
  for (const part of parts) decoder.write(part);
  decoder.end();
  const error: unknown = await finished(decoder, { writable: false }).then(
    () => null,
    (reason: unknown) => reason,
  );
  decoder.destroy();
  if (error instanceof OutgoingError) throw error;
  const isInvalid = error !== null;
  const code = String((error as NodeJS.ErrnoException | null)?.code);
  if (isInvalid && !INVALID_DATA_CODE_PATTERN.test(code)) throw createUnreadableError(origin, code);
  return { decoded: Buffer.concat(decodedParts), bytesRead: decoder.bytesWritten, isInvalid };
}

/**
 * Decodes a body up to the first invalid data. A decoder discards the output of the whole part that contains this data. So this function
 * decodes that part again in smaller parts.
 */
async function decompressReadablePart(
  { createDecoder }: CompressedFormat,
  body: Buffer,
  origin: string,
): Promise<DecodedParts> {
  let result = await decodeParts(createDecoder(), [body], origin);
  let end = body.length;
  for (const partBytes of REPEATED_PART_BYTES) {
    if (!result.isInvalid) break;
    // Splits only the bytes after `from`. The bytes before are valid, or too few for a compressed secret.
    const from = Math.max(result.bytesRead, COMPRESSED_MIN_BYTES);
    const parts = [body.subarray(0, from)];
    for (let at = from; at < end; at += partBytes) parts.push(body.subarray(at, Math.min(at + partBytes, end)));
    result = await decodeParts(createDecoder(), parts, origin);
    if (result.bytesRead < COMPRESSED_MIN_BYTES) break;
    end = Math.min(end, result.bytesRead + partBytes);
  }
  return result;
}

/**
 * Decompresses a body up to its first invalid byte. A zstd body can have several frames, one after the other.
 * @throws OutgoingError LIMIT, TRANSPORT
 */
async function decompressFrames(format: CompressedFormat, body: Buffer, origin: string): Promise<Buffer> {
  const frames: Buffer[] = [];
  let bytes = 0;
  for (let unread = body; unread.length >= COMPRESSED_MIN_BYTES && format.canBegin(unread); ) {
    const { decoded, bytesRead, isInvalid } = await decompressReadablePart(format, unread, origin);
    bytes += decoded.length;
    if (bytes > OUTGOING_RESPONSE_BODY_MAX_BYTES) throw createTooLargeError(origin);
    if (frames.push(decoded) > ZSTD_FRAMES_MAX)
      throw createUnreadableError(origin, `more than ${ZSTD_FRAMES_MAX} frames of zstd`);
    if (!format.hasFrames || isInvalid || bytesRead === 0) break;
    unread = unread.subarray(bytesRead);
  }
  return Buffer.concat(frames);
}

/** Returns the texts that code could get by decompressing a body itself. @throws OutgoingError LIMIT, TRANSPORT */
async function listDecompressedTexts(body: Buffer, origin: string): Promise<Set<string>> {
  const texts = new Set<string>();
  for (const format of COMPRESSED_FORMATS) {
    const decompressedBody = await decompressFrames(format, body, origin);
    if (decompressedBody.length === 0) continue;
    for (const text of decodeOneByteCharsets(decompressedBody)) texts.add(text);
  }
  return texts;
}

/** Returns the key of the first setting whose value is in one of the texts; null if the texts contain no value. */
async function findInTexts(scan: ResponseScanner, texts: Iterable<string>): Promise<string | null> {
  for (const text of texts) {
    const key = await scan.find([{ text }]);
    if (key !== null) return key;
  }
  return null;
}

/** Encodes a masked text in the encoding that converts `text` to the bytes of `body`. Returns null if no encoding does. */
function encodeMaskedText(maskedText: string, text: string, body: Buffer): Buffer | null {
  const encoding = EXACT_ENCODINGS.find((name) => Buffer.from(text, name).equals(body));
  return encoding === undefined ? null : Buffer.from(maskedText, encoding);
}

/** Returns the key of a setting whose value is still in the response after the masking, in any form; null if there is none. */
async function findInBody(
  scan: ResponseScanner,
  { body, origin }: OutgoingResponse,
  texts: { text: string; maskedText: string } | null,
): Promise<string | null> {
  const decompressed = await listDecompressedTexts(body, origin);
  const key = await findInTexts(scan, [...listDecodedTexts(body), ...decompressed]);
  if (key === null || texts === null) return key;
  const maskedBytes = encodeMaskedText(texts.maskedText, texts.text, body);
  if (maskedBytes === null) return key;
  // The secret may have been only in the plain text, which is masked now. So searches the masked body and the decompressed texts again.
  const remaining = await listDecompressedTexts(maskedBytes, origin);
  return findInTexts(scan, [...listDecodedTexts(maskedBytes), ...remaining, ...decompressed]);
}

/** Returns the keys of the settings whose values were masked in the text; none if masking has not changed the text. */
function listMaskedKeys(maskedText: string, before: string): string[] {
  return maskedText === before ? [] : [...maskedText.matchAll(MASKED_VALUE_PATTERN)].map(([, key]) => key!);
}

/**
 * Returns the response with all secrets masked; null if the response contains no secret.
 * @param text the decoded body; null if the action's code requested bytes
 * @throws OutgoingError LIMIT or TRANSPORT if the body is compressed and cannot be searched
 */
export async function maskResponse(
  scan: ResponseScanner,
  response: OutgoingResponse,
  text: string | null,
): Promise<MaskedResponse | null> {
  const keys = new Set<string>();
  const maskTexts = async (texts: string[]): Promise<string[]> => {
    const maskedTexts = await scan.mask(texts.map((text) => ({ text: text })));
    for (const [at, masked] of maskedTexts.entries())
      for (const key of listMaskedKeys(masked, texts[at]!)) keys.add(key);
    return maskedTexts;
  };
  const entries = Object.entries(response.headers);
  const maskedEntries = await maskTexts(entries.flat());
  const headers = Object.fromEntries(
    entries.map((_, index) => [maskedEntries[2 * index]!, maskedEntries[2 * index + 1]!]),
  );
  let body: string | Buffer = text === null ? response.body : (await maskTexts([text]))[0]!;
  const texts = text === null ? null : { text, maskedText: String(body) };
  const key = await findInBody(scan, response, texts);
  if (key !== null) {
    // Only plain text can be masked. A body that contains a secret in another form is replaced as a whole.
    keys.add(key);
    body = text === null ? Buffer.from(`«${key}»`) : `«${key}»`;
  }
  return keys.size === 0 ? null : { headers, body, keys: [...keys] };
}
