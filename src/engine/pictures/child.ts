/**
 * Program of a picture process, without environment variables and writable files. Decodes one untrusted picture from standard input, writes
 * the results to file descriptor 3, and ends.
 */
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import sharp, { type Sharp } from "sharp";
import type { PictureJob, PictureResponsePartHeader } from "../pictures.js";
import { DamagedPictureError, removePrivateMetadata } from "./private-metadata.js";

const DECODERS = ["Jpeg", "Png", "Webp", "Nsgif", "Heif", "Tiff"];
/** Encoding effort of AVIF, from 0 to 9. It is low, because encoding takes seconds at the highest effort. */
const AVIF_EFFORT = 2;

sharp.cache(false);
sharp.concurrency(1);
// Blocks all loaders except DECODERS. libvips could also read PDF, SVG, and all other formats that it was built with.
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({ operation: DECODERS.map((name) => `VipsForeignLoad${name}`) });

async function readStandardInput(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Opens the first page of a picture, rotated to its displayed orientation. */
const openPicture = (file: Buffer, maxPixels: number): Sharp =>
  sharp(file, { limitInputPixels: maxPixels, sequentialRead: true, pages: 1 }).autoOrient();

function encodePicture(picture: Sharp, { format, quality }: { format: string; quality: number }): Sharp {
  switch (format) {
    case "avif":
      return picture.avif({ quality, effort: AVIF_EFFORT });
    case "png":
      return picture.png();
    case "jpeg":
      return picture.flatten({ background: "#ffffff" }).jpeg({ quality });
    default:
      return picture.webp({ quality });
  }
}

interface RenderedPicture {
  size: [number, number];
  bytes: Buffer;
}

async function createThumbnail(file: Buffer, { maxPixels, thumbnail }: PictureJob): Promise<RenderedPicture> {
  const { autoOrient } = await sharp(file, { limitInputPixels: maxPixels }).metadata();
  const { edge, quality } = thumbnail!;
  const small = openPicture(file, maxPixels).resize({
    width: edge,
    height: edge,
    fit: "inside",
    withoutEnlargement: true,
  });
  return { size: [autoOrient.width, autoOrient.height], bytes: await small.webp({ quality }).toBuffer() };
}

async function resizePicture(file: Buffer, { maxPixels, resize }: PictureJob): Promise<RenderedPicture> {
  const { width, format, quality } = resize!;
  const picture = openPicture(file, maxPixels);
  const sized = width === null ? picture : picture.resize({ width, withoutEnlargement: true });
  const { data, info } = await encodePicture(sized, { format, quality }).toBuffer({ resolveWithObject: true });
  return { size: [info.width, info.height], bytes: data };
}

/** Yields the length of a JSON header, the header, and then the bytes that the header describes. */
function* encodePart(header: PictureResponsePartHeader, parts: readonly Buffer[]): Generator<Buffer> {
  const text = Buffer.from(JSON.stringify({ ...header, bytes: parts.reduce((sum, { length }) => sum + length, 0) }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  yield Buffer.concat([length, text]);
  yield* parts;
}

/** Decodes the picture, and returns the result. If decoding fails, returns a result that contains the error message. */
async function renderPicture(file: Buffer, job: PictureJob): Promise<Generator<Buffer>> {
  try {
    const { size, bytes } = await (job.resize ? resizePicture(file, job) : createThumbnail(file, job));
    return encodePart({ size }, [bytes]);
  } catch (error) {
    return encodePart({ fault: (error as Error).message }, []);
  }
}

/**
 * Yields the response to a job. A job with `resize` gets only the resized picture. Any other job first gets the file without private
 * metadata. This part needs no decoder, so it arrives even if a decoder then crashes the process.
 */
async function* answerJob(file: Buffer, job: PictureJob): AsyncGenerator<Buffer> {
  if (job.resize) return yield* await renderPicture(file, job);
  let parts: Buffer[];
  try {
    parts = removePrivateMetadata(file, job.contentType);
  } catch (error) {
    if (!(error instanceof DamagedPictureError)) throw error;
    return yield* encodePart({ fault: error.message }, []);
  }
  yield* encodePart({}, parts);
  yield* await renderPicture(Buffer.concat(parts), job);
}

const job = JSON.parse(process.argv[2]!) as PictureJob;
await pipeline(answerJob(await readStandardInput(), job), createWriteStream("", { fd: 3 }));
