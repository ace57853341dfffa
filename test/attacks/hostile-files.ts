/** Creates malicious files for the tests of code that stores, decodes or shows files. */
import { crc32, deflateSync } from "node:zlib";
import sharp from "sharp";

export interface HostileFile {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
  /** Content type in the upload form. */
  type?: string;
}

export const bytesOf = (...parts: (string | Uint8Array)[]): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part))));

export function pngChunk(type: string, content: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), content]);
  const whole = Buffer.alloc(body.length + 8);
  whole.writeUInt32BE(content.length, 0);
  body.copy(whole, 4);
  whole.writeUInt32BE(crc32(body), body.length + 4);
  return whole;
}

/** Builds a PNG whose header declares this width and height. Its pixel data consists of `pixels` zero bytes, compressed. */
export function pngOf(width: number, height: number, pixels: number, interlaced = false): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 6, 0, 0, interlaced ? 1 : 0], 8);
  const data = deflateSync(Buffer.alloc(pixels), { level: 9 });
  const chunks = [pngChunk("IHDR", header), pngChunk("IDAT", data), pngChunk("IEND", Buffer.alloc(0))];
  return bytesOf("\x89PNG\r\n\x1a\n", ...chunks);
}

function createGif(edge: number, frames: number): Uint8Array<ArrayBuffer> {
  const size = Buffer.from([edge & 255, edge >> 8, edge & 255, edge >> 8]);
  const head = Buffer.concat([Buffer.from("GIF89a"), size, Buffer.from([0x80, 0, 0, 0, 0, 0, 255, 255, 255])]);
  const frame = Buffer.concat([Buffer.from([0x2c, 0, 0, 0, 0]), size, Buffer.from([0, 2, 2, 0x44, 1, 0])]);
  return bytesOf(head, ...Array.from({ length: frames }, () => frame), ";");
}

const SCRIPT = "<script>parent.pwned=1;document.title='pwned'</script>";

export async function hostileFiles(): Promise<HostileFile[]> {
  const validPicture = sharp({ create: { width: 64, height: 48, channels: 3, background: "#393" } });
  const jpeg = await validPicture.jpeg().toBuffer();
  const tiff = await validPicture.tiff().toBuffer();
  const loopingTiff = Buffer.from(tiff);
  // The first directory of this TIFF refers to itself as the next directory, so a careless decoder loops.
  const first = loopingTiff.readUInt32LE(4);
  loopingTiff.writeUInt32LE(first, first + 2 + loopingTiff.readUInt16LE(first) * 12);
  return [
    { name: "bomb.png", bytes: pngOf(20_000, 20_000, 50_000_000) },
    { name: "huge.png", bytes: pngOf(50_000, 50_000, 1_000) },
    { name: "largest.png", bytes: pngOf(2 ** 31 - 1, 2 ** 31 - 1, 10) },
    { name: "interlaced.png", bytes: pngOf(4_000, 4_000, 30_000_000, true) },
    { name: "frames.gif", bytes: createGif(4_000, 2_000) },
    { name: "script.svg", bytes: bytesOf(`<svg xmlns="http://www.w3.org/2000/svg">${SCRIPT}</svg>`) },
    { name: "entities.svg", bytes: bytesOf('<!DOCTYPE svg [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><svg>&b;</svg>') },
    {
      name: "outside.svg",
      bytes: bytesOf('<svg xmlns:x="http://www.w3.org/1999/xlink"><image x:href="file:///etc/passwd"/></svg>'),
    },
    { name: "polyglot.gif", bytes: bytesOf("GIF89a/*", new Uint8Array(20), "*/=1;parent.pwned=1;//") },
    { name: "page.jpg", bytes: bytesOf(jpeg, SCRIPT) },
    {
      name: "comment.jpg",
      bytes: bytesOf(jpeg.subarray(0, 2), "\xff\xfe", new Uint8Array([0, SCRIPT.length + 2]), SCRIPT, jpeg.subarray(2)),
    },
    { name: "mis.html.jpg", bytes: bytesOf(`<html>${SCRIPT}`) },
    { name: "short.jpg", bytes: bytesOf(jpeg.subarray(0, 100)) },
    { name: "long-segment.jpg", bytes: bytesOf("\xff\xd8\xff\xe1\xff\xff", new Uint8Array(100)) },
    { name: "circle.tiff", bytes: bytesOf(loopingTiff) },
    { name: "many.tiff", bytes: bytesOf("II*\0\x08\0\0\0\xff\xff", new Uint8Array(65_535 * 12)) },
    {
      name: "items.heic",
      bytes: bytesOf(
        "\0\0\0\x18ftypheic\0\0\0\0heicmif1",
        "\0\0\0\x20meta\0\0\0\0\0\0\0\x14iloc\x02\0\0\0\0\0\xff\xff\xff\xff",
      ),
    },
    {
      name: "box.heic",
      bytes: bytesOf("\0\0\0\x18ftypheic\0\0\0\0heicmif1", "\0\0\0\x01meta\xff\xff\xff\xff\xff\xff\xff\xff"),
    },
    { name: "empty.webp", bytes: bytesOf("RIFF\xff\xff\xff\xffWEBPVP8X\xff\xff\xff\xff") },
    { name: "zip.docx", bytes: bytesOf("PK\x03\x04", new Uint8Array(26).fill(255), "[Content_Types].xml") },
    { name: "empty", bytes: bytesOf("") },
  ];
}

/** Returns `count` real pictures with some changed bytes. Some of them are also truncated. The same seed gives the same files. */
export async function damagedFiles(count: number, seed: number): Promise<HostileFile[]> {
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
  const validPicture = sharp({ create: { width: 90, height: 70, channels: 3, background: "#639" } }).withExif({
    IFD0: { Make: "Somebody" },
    IFD3: { GPSLatitudeRef: "N", GPSLatitude: "51/1 30/1 0/1" },
  });
  const formats = ["jpeg", "png", "webp", "avif", "tiff", "gif"] as const;
  const pictures = await Promise.all(formats.map((format) => validPicture.clone().toFormat(format).toBuffer()));
  return Array.from({ length: count }, (_, at) => {
    const bytes = new Uint8Array(pictures[at % pictures.length]!);
    // At least half of the changes are in the first 200 bytes, which contain lengths and offsets.
    for (let change = 0; change < 1 + random(8); change += 1) {
      bytes[random(2) === 0 ? random(Math.min(200, bytes.length)) : random(bytes.length)] = random(256);
    }
    const end = random(4) === 0 ? 1 + random(bytes.length) : bytes.length;
    return { name: `damaged-${at}.${formats[at % formats.length]}`, bytes: bytes.slice(0, end) };
  });
}
