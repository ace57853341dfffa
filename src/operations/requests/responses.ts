/**
 * Prepares responses for an author's code: decodes them to text, and masks bound secrets in every form in which a body
 * can contain them.
 */
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from "node:zlib";
import { OutgoingError, type OutgoingResponse } from "../../engine/outgoing.js";
import type { Scan } from "../../engine/secret-scan.js";
import { RESPONSE_MAX_BYTES } from "../../limits.js";

/** Finds and masks the bound values of one app. */
export type ResponseScan = Pick<Scan, "find" | "mask">;

export interface MaskedResponse {
  headers: Record<string, string>;
  body: string | Buffer;
  /** Keys of the settings whose values were masked. */
  keys: string[];
}

const CHARSET_PARAMETER = /;\s*charset\s*=\s*"?([^\s;"]+)/i;
const MASK_TEXT = /«([^«»]+)»/g;
/** Minimum size of a compressed body. A shorter one contains no compressed secret. */
const COMPRESSED_MIN_BYTES = 12;

/** A compressed format. `canBegin` is false for bodies that its decoder rejects for their first bytes. */
interface CompressedFormat {
  decompress: (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;
  canBegin(body: Buffer): boolean;
}

const formatOf = (decompress: unknown, canBegin: CompressedFormat["canBegin"] = () => true): CompressedFormat => ({
  decompress: promisify(decompress as typeof gunzip),
  canBegin,
});
const GZIP_MAGIC = 0x1f8b;
const ZSTD_MAGIC = 0xfd2fb528;
/** Upper 28 bits of the magic numbers of skippable frames, which a stream of zstd may begin with. */
const ZSTD_SKIPPABLE_MAGIC = 0x184d2a5;

/**
 * `canBegin` is checked first, because each decoder occupies a thread even if it rejects the first byte. Only the two
 * formats without a magic number decode every body.
 */
const COMPRESSED_FORMATS: readonly CompressedFormat[] = [
  formatOf(gunzip, (body) => body.readUInt16BE(0) === GZIP_MAGIC),
  // RFC 1950: the first two bytes are a multiple of 31.
  formatOf(inflate, (body) => body.readUInt16BE(0) % 31 === 0),
  formatOf(inflateRaw),
  formatOf(brotliDecompress),
  formatOf(zstdDecompress, (body) => {
    const magic = body.readUInt32LE(0);
    return magic === ZSTD_MAGIC || magic >>> 4 === ZSTD_SKIPPABLE_MAGIC;
  }),
];

const UTF8 = "utf-8";
const UTF8_DECODER = new TextDecoder(UTF8);
/** Encodings that convert a decoded text back to the same bytes, if the body was valid in the encoding. */
const EXACT_ENCODINGS = ["utf8", "utf16le", "latin1"] as const;

/** Returns the body as text, by the charset of its Content-Type. @throws OutgoingError UNSUPPORTED */
export function textOfResponse({ headers, body, origin }: OutgoingResponse): string {
  const charsetLabel = CHARSET_PARAMETER.exec(headers["content-type"] ?? "")?.[1]?.toLowerCase() ?? UTF8;
  try {
    return (charsetLabel === UTF8 ? UTF8_DECODER : new TextDecoder(charsetLabel)).decode(body);
  } catch {
    const message = `the response of ${origin} has an unknown charset; use responseType: "bytes"`;
    throw new OutgoingError("UNSUPPORTED", message, origin);
  }
}

const plainReadings = (bytes: Buffer): string[] => [bytes.toString("utf8"), bytes.toString("latin1")];

function wideReadings(bytes: Buffer): string[] {
  const evenBytes = bytes.subarray(0, bytes.length & ~1);
  return [evenBytes.toString("utf16le"), Buffer.from(evenBytes).swap16().toString("utf16le")];
}

/**
 * Returns the texts that code could decode from the bytes in other charsets, without duplicates: ASCII text is the same
 * in all one-byte charsets.
 */
const decodedTexts = (body: Buffer): Set<string> =>
  new Set([
    ...plainReadings(body),
    ...wideReadings(body),
    ...wideReadings(body.subarray(1)),
    body.toString("latin1").replaceAll("\0", ""),
  ]);

/** Returns the texts that code could get by decompressing a body without Content-Encoding. */
async function decompressedTexts(body: Buffer): Promise<Set<string>> {
  const readings = new Set<string>();
  if (body.length < COMPRESSED_MIN_BYTES) return readings;
  for (const { decompress } of COMPRESSED_FORMATS.filter(({ canBegin }) => canBegin(body))) {
    // The decoder rejects a body that does not have its format.
    const decompressedBody = await decompress(body, { maxOutputLength: RESPONSE_MAX_BYTES }).catch(() => null);
    if (decompressedBody === null || decompressedBody.length === 0) continue;
    for (const reading of plainReadings(decompressedBody)) readings.add(reading);
  }
  return readings;
}

/** Returns the key of the first secret in the texts, or null. */
async function findInTexts(scan: ResponseScan, texts: Iterable<string>): Promise<string | null> {
  for (const text of texts) {
    const key = await scan.find([{ text }]);
    if (key !== null) return key;
  }
  return null;
}

/**
 * Encodes a masked text like the body: in the encoding that converts `text` to the bytes of `body`. Returns null if
 * there is no such encoding.
 */
function bytesOfMasked(maskedText: string, text: string, body: Buffer): Buffer | null {
  const encoding = EXACT_ENCODINGS.find((name) => Buffer.from(text, name).equals(body));
  return encoding === undefined ? null : Buffer.from(maskedText, encoding);
}

/** Returns the key of a secret that a response still contains in any form after its text was masked, or null. */
async function findInBody(
  scan: ResponseScan,
  body: Buffer,
  texts: { text: string; maskedText: string } | null,
): Promise<string | null> {
  const decompressed = await decompressedTexts(body);
  const key = await findInTexts(scan, [...decodedTexts(body), ...decompressed]);
  if (key === null || texts === null) return key;
  const maskedBytes = bytesOfMasked(texts.maskedText, texts.text, body);
  if (maskedBytes === null) return key;
  // Masking the text has removed only one form of the secret. The body may contain other forms.
  return findInTexts(scan, [...decodedTexts(maskedBytes), ...(await decompressedTexts(maskedBytes)), ...decompressed]);
}

/** Returns the keys of the settings whose values were masked. Returns none if masking has not changed the text. */
function keysIn(maskedText: string, before: string): string[] {
  return maskedText === before ? [] : [...maskedText.matchAll(MASK_TEXT)].map(([, key]) => key!);
}

/**
 * Masks bound secrets in a response.
 * @param text the body as text; null if code requested bytes
 * @returns null if the response contains no bound secret
 */
export async function maskResponse(
  scan: ResponseScan,
  response: OutgoingResponse,
  text: string | null,
): Promise<MaskedResponse | null> {
  const keys = new Set<string>();
  const maskTexts = async (texts: string[]): Promise<string[]> => {
    const maskedTexts = await scan.mask(texts.map((text) => ({ text: text })));
    for (const [at, masked] of maskedTexts.entries()) for (const key of keysIn(masked, texts[at]!)) keys.add(key);
    return maskedTexts;
  };
  const entries = Object.entries(response.headers);
  const maskedEntries = await maskTexts(entries.flat());
  const headers = Object.fromEntries(
    entries.map((_, index) => [maskedEntries[2 * index]!, maskedEntries[2 * index + 1]!]),
  );
  let body: string | Buffer = text === null ? response.body : (await maskTexts([text]))[0]!;
  const texts = text === null ? null : { text, maskedText: String(body) };
  const key = await findInBody(scan, response.body, texts);
  if (key !== null) {
    // Only plain text can be masked. If the body contains any other form, the whole body is removed.
    keys.add(key);
    body = text === null ? Buffer.from(`«${key}»`) : `«${key}»`;
  }
  return keys.size === 0 ? null : { headers, body, keys: [...keys] };
}
