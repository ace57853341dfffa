/**
 * Removes private metadata from a picture's file: place, time, device, texts, previews. The bytes of pixels and colours, and the
 * orientation, stay. Does not decode pixels, and can process malicious files.
 */
import { crc32 } from "node:zlib";
import { removePrivateBmffItems } from "./bmff-metadata.js";
import { createOrientationExif, readExifOrientation } from "./exif.js";
import { removePersonalTiffTags } from "./tiff-metadata.js";

/** Error if the file does not have the format that its first bytes announce. */
export class DamagedPictureError extends Error {
  override readonly name = "DamagedPicture";
}

const EXIF_MARK = Buffer.from("Exif\0\0", "latin1");

const isMarkerWithoutContent = (marker: number) => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);

/** True for a JPEG segment that viewers need: the picture itself, JFIF, the colour profile, and Adobe's colour transform. */
function isDisplayMarker(marker: number, content: Buffer): boolean {
  if (marker === 0xe0) return content.toString("latin1", 0, 4) === "JFIF";
  if (marker === 0xe2) return content.toString("latin1", 0, 11) === "ICC_PROFILE";
  if (marker === 0xee) return content.toString("latin1", 0, 5) === "Adobe";
  const isApplicationMarker = marker >= 0xe0 && marker <= 0xef;
  return !isApplicationMarker && marker !== 0xfe;
}

function findScanEnd(file: Buffer, from: number): number {
  let at = from;
  for (;;) {
    at = file.indexOf(0xff, at);
    if (at < 0 || at + 1 >= file.length) return file.length;
    const next = file[at + 1]!;
    if (next !== 0 && next !== 0xff && !(next >= 0xd0 && next <= 0xd7)) return at;
    at += next === 0xff ? 1 : 2;
  }
}

const createOrientationSegment = (orientation: number): Buffer => {
  const content = Buffer.concat([EXIF_MARK, createOrientationExif(orientation)]);
  return Buffer.concat([Buffer.from([0xff, 0xe1, 0, content.length + 2]), content]);
};

/** Removes private segments, and data after the end of the picture: cameras append videos and other pictures there. */
function cleanJpeg(file: Buffer): Buffer[] {
  const retainedParts: Buffer[] = [file.subarray(0, 2)];
  let orientation = 1;
  let at = 2;
  while (at + 4 <= file.length) {
    if (file[at] !== 0xff) throw new DamagedPictureError("a JPEG segment does not begin with 0xFF");
    const marker = file[at + 1]!;
    if (marker === 0xd9) break;
    if (marker === 0xff || isMarkerWithoutContent(marker)) {
      at += marker === 0xff ? 1 : 2;
      continue;
    }
    const segmentEnd = at + 2 + file.readUInt16BE(at + 2);
    if (segmentEnd > file.length || segmentEnd < at + 4)
      throw new DamagedPictureError("a JPEG segment has an invalid length");
    const content = file.subarray(at + 4, segmentEnd);
    if (marker === 0xe1 && content.subarray(0, 6).equals(EXIF_MARK))
      orientation = readExifOrientation(content.subarray(6));
    const scanEnd = marker === 0xda ? findScanEnd(file, segmentEnd) : segmentEnd;
    if (isDisplayMarker(marker, content)) retainedParts.push(file.subarray(at, scanEnd));
    at = scanEnd;
  }
  if (orientation !== 1) retainedParts.splice(1, 0, createOrientationSegment(orientation));
  return [...retainedParts, Buffer.from([0xff, 0xd9])];
}

function createPngChunk(type: string, content: Buffer): Buffer {
  const chunk = Buffer.alloc(content.length + 12);
  chunk.writeUInt32BE(content.length, 0);
  chunk.write(type, 4, "latin1");
  content.copy(chunk, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + content.length)), 8 + content.length);
  return chunk;
}

/** PNG chunks that viewers need to display the picture. Any other chunk may contain private data. */
const DISPLAY_PNG_CHUNKS = new Set(
  "IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD pHYs sPLT hIST acTL fcTL fdAT".split(" "),
);

function cleanPng(file: Buffer): Buffer[] {
  const retainedChunks: Buffer[] = [file.subarray(0, 8)];
  for (let at = 8; at + 12 <= file.length; ) {
    const type = file.toString("latin1", at + 4, at + 8);
    const chunkEnd = at + 12 + file.readUInt32BE(at);
    if (chunkEnd > file.length) throw new DamagedPictureError("a PNG chunk extends beyond the end of the file");
    if (DISPLAY_PNG_CHUNKS.has(type)) retainedChunks.push(file.subarray(at, chunkEnd));
    if (type === "eXIf") {
      const orientation = readExifOrientation(file.subarray(at + 8, chunkEnd - 4));
      if (orientation !== 1) retainedChunks.splice(2, 0, createPngChunk("eXIf", createOrientationExif(orientation)));
    }
    if (type === "IEND") break;
    at = chunkEnd;
  }
  return retainedChunks;
}

const DISPLAY_WEBP_CHUNKS = new Set(["VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF", "ICCP"]);
const WEBP_EXIF_FLAG = 0x08;
const WEBP_XMP_FLAG = 0x04;

/** Returns the chunks of a WebP file. `whole` is the chunk with its header and padding; `content` excludes both. */
function readWebpChunks(file: Buffer): { type: string; whole: Buffer; content: Buffer }[] {
  const chunks = [];
  for (let at = 12; at + 8 <= file.length; ) {
    const length = file.readUInt32LE(at + 4);
    const chunkEnd = at + 8 + length;
    if (chunkEnd > file.length) throw new DamagedPictureError("a WebP chunk extends beyond the end of the file");
    const chunk = file.subarray(at, Math.min(file.length, chunkEnd + (length % 2)));
    chunks.push({ type: file.toString("latin1", at, at + 4), whole: chunk, content: file.subarray(at + 8, chunkEnd) });
    at = chunkEnd + (length % 2);
  }
  return chunks;
}

function cleanWebp(file: Buffer): Buffer[] {
  const chunks = readWebpChunks(file);
  const exif = chunks.find(({ type }) => type === "EXIF")?.content;
  const tiff = exif?.subarray(0, 6).equals(EXIF_MARK) ? exif.subarray(6) : exif;
  const orientation = tiff ? readExifOrientation(tiff) : 1;
  const retainedChunks = chunks
    .filter(({ type }) => DISPLAY_WEBP_CHUNKS.has(type))
    .map(({ type, whole }) => {
      if (type !== "VP8X" || whole.length < 18) return whole;
      const header = Buffer.from(whole);
      header[8] = (header[8]! & ~(WEBP_EXIF_FLAG | WEBP_XMP_FLAG)) | (orientation === 1 ? 0 : WEBP_EXIF_FLAG);
      return header;
    });
  if (orientation !== 1) {
    const chunk = Buffer.concat([Buffer.from("EXIF\x1a\0\0\0", "latin1"), createOrientationExif(orientation)]);
    retainedChunks.push(chunk);
  }
  const header = Buffer.from(file.subarray(0, 12));
  header.writeUInt32LE(4 + retainedChunks.reduce((sum, { length }) => sum + length, 0), 4);
  return [header, ...retainedChunks];
}

/**
 * Keeps the images, and the extension blocks with loops and times of an animation. Removes all other blocks, such as comments and XMP data.
 */
function cleanGif(file: Buffer): Buffer[] {
  const countColorTableBytes = (flags: number) => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
  const findBlocksEnd = (from: number): number => {
    let at = from;
    while (at < file.length && file[at] !== 0) at += file[at]! + 1;
    return at + 1;
  };
  if (file.length < 13) throw new DamagedPictureError("a GIF is shorter than its header");
  let at = 13 + countColorTableBytes(file[10]!);
  const retainedBlocks: Buffer[] = [file.subarray(0, at)];
  while (at + 1 < file.length && file[at] !== 0x3b) {
    const isExtension = file[at] === 0x21;
    if (!isExtension && (file[at] !== 0x2c || at + 10 > file.length)) {
      throw new DamagedPictureError("a GIF block has an unknown type");
    }
    const label = file[at + 1]!;
    const blockEnd = isExtension ? findBlocksEnd(at + 2) : findBlocksEnd(at + 11 + countColorTableBytes(file[at + 9]!));
    if (blockEnd > file.length) throw new DamagedPictureError("a GIF block extends beyond the end of the file");
    const applicationName = isExtension && label === 0xff ? file.toString("latin1", at + 3, at + 14) : "";
    const isLoopExtension = applicationName === "NETSCAPE2.0" || applicationName === "ANIMEXTS1.0";
    if (!isExtension || label === 0xf9 || isLoopExtension) retainedBlocks.push(file.subarray(at, blockEnd));
    at = blockEnd;
  }
  return [...retainedBlocks, Buffer.from([0x3b])];
}

const CLEANER_BY_TYPE: Readonly<Record<string, (file: Buffer) => Buffer[]>> = {
  "image/jpeg": cleanJpeg,
  "image/png": cleanPng,
  "image/apng": cleanPng,
  "image/webp": cleanWebp,
  "image/gif": cleanGif,
  "image/tiff": (file) => [removePersonalTiffTags(file)],
  "image/avif": (file) => [removePrivateBmffItems(file)],
  "image/heic": (file) => [removePrivateBmffItems(file)],
  "image/heif": (file) => [removePrivateBmffItems(file)],
  "image/heic-sequence": (file) => [removePrivateBmffItems(file)],
  "image/heif-sequence": (file) => [removePrivateBmffItems(file)],
};

export const TYPES_WITH_REMOVABLE_METADATA: readonly string[] = Object.keys(CLEANER_BY_TYPE);

/** Returns the parts of the new file in their order. @throws DamagedPictureError if the file is not valid */
export function removePrivateMetadata(file: Buffer, contentType: string): Buffer[] {
  try {
    return CLEANER_BY_TYPE[contentType]?.(file) ?? [file];
  } catch (error) {
    // A RangeError means that a block has an invalid size, or that the format is not supported, such as a TIFF file with 64-bit offsets.
    if (error instanceof RangeError)
      throw new DamagedPictureError("a part of the picture file is incomplete, or has a format that is not supported");
    throw error;
  }
}
