/**
 * The process that meets strangers' pictures: reads one from standard input, answers in JSON on standard output, what it made goes to
 * descriptor 3, and ends. It has no environment, no file, no address and no second picture.
 */
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import sharp, { type Sharp } from "sharp";
import type { Job, PictureAnswer } from "../pictures.js";
import { DamagedPicture, withoutPrivateMetadata } from "./private-metadata.js";

const DECODERS = ["Jpeg", "Png", "Webp", "Nsgif", "Heif", "Tiff"];
/** Decoding is slow already where many pictures come; encoding AVIF at its best takes seconds. */
const AVIF_EFFORT = 2;

sharp.cache(false);
sharp.concurrency(1);
// All loaders but these: libvips also reads PDF, SVG, matrices, and whatever is built into it.
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({ operation: DECODERS.map((name) => `VipsForeignLoad${name}`) });

async function standardInput(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Upright, the first page alone. */
const opened = (file: Buffer, maxPixels: number): Sharp =>
  sharp(file, { limitInputPixels: maxPixels, sequentialRead: true, pages: 1 }).autoOrient();

function encoded(picture: Sharp, { format, quality }: { format: string; quality: number }): Sharp {
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

/** What the picture measures as it is shown; null where it cannot be decoded within the bounds. */
async function thumbnailOf(file: Buffer, job: Job): Promise<{ size: [number, number]; bytes: Buffer } | string> {
  try {
    const { autoOrient } = await sharp(file, { limitInputPixels: job.maxPixels }).metadata();
    const { edge, quality } = job.thumbnail!;
    const small = opened(file, job.maxPixels).resize({ width: edge, height: edge, fit: "inside", withoutEnlargement: true });
    return { size: [autoOrient.width, autoOrient.height], bytes: await small.webp({ quality }).toBuffer() };
  } catch (error) {
    return (error as Error).message;
  }
}

/** The file without what is private, and behind it the thumbnail. */
async function inspect(file: Buffer, job: Job): Promise<[PictureAnswer, Buffer[]]> {
  const parts = withoutPrivateMetadata(file, job.contentType);
  const cleanBytes = parts.reduce((sum, { length }) => sum + length, 0);
  const found = await thumbnailOf(Buffer.concat(parts), job);
  if (typeof found === "string") return [{ size: null, cleanBytes, otherBytes: 0, undecodable: found }, parts];
  const { size, bytes } = found;
  return [{ size, cleanBytes, otherBytes: bytes.length }, [...parts, bytes]];
}

async function resize(file: Buffer, job: Job): Promise<[PictureAnswer, Buffer[]]> {
  const { width, format, quality } = job.resize!;
  const picture = opened(file, job.maxPixels);
  const sized = width === null ? picture : picture.resize({ width, withoutEnlargement: true });
  const { data, info } = await encoded(sized, { format, quality }).toBuffer({ resolveWithObject: true });
  return [{ size: [info.width, info.height], cleanBytes: 0, otherBytes: data.length }, [data]];
}

async function answered(file: Buffer, job: Job): Promise<[PictureAnswer, Buffer[]]> {
  try {
    return job.resize ? await resize(file, job) : await inspect(file, job);
  } catch (error) {
    const damaged = error instanceof DamagedPicture || job.resize !== undefined;
    if (!damaged) throw error;
    return [{ size: null, cleanBytes: 0, otherBytes: 0, damaged: (error as Error).message }, []];
  }
}

const job = JSON.parse(process.argv[2]!) as Job;
const [answer, parts] = await answered(await standardInput(), job);
process.stdout.write(JSON.stringify(answer));
await pipeline(parts, createWriteStream("", { fd: 3 }));
