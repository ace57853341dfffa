/** Generates malicious files: kinds of files with malicious content, truncated pictures, and unusual file names. */
import { deflateSync, gzipSync } from "node:zlib";
import sharp from "sharp";
import { bytesOf, type HostileFile, pngChunk, pngOf } from "./hostile-files.js";

/** Code that sets a global and the title of the page if a browser executes it. */
const TRACE_CODE = "parent.pwned=1;document.title='pwned'";
const SCRIPT = `<script>${TRACE_CODE}</script>`;
/** Camera in the pictures' metadata, which the service must remove. */
export const CAMERA_MAKER = "Somebody's camera";

type Format = "jpeg" | "png" | "webp" | "gif" | "tiff" | "avif";
const FORMATS: readonly Format[] = ["jpeg", "png", "webp", "gif", "tiff", "avif"];

async function realPictures(): Promise<Map<Format, Buffer>> {
  const source = sharp({ create: { width: 64, height: 48, channels: 3, background: "#393" } });
  const made = await Promise.all(FORMATS.map((format) => source.clone().toFormat(format).toBuffer()));
  return new Map(FORMATS.map((format, at) => [format, made[at]!]));
}

const PDF = Buffer.from("%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\n");
const ZIP = Buffer.concat([Buffer.from("PK\x05\x06", "latin1"), Buffer.alloc(18)]);
const PAYLOADS: Readonly<Record<string, string>> = {
  page: `<!doctype html><html><body>${SCRIPT}`,
  script: `*/=1;${TRACE_CODE};//`,
  svg: `<svg xmlns="http://www.w3.org/2000/svg" onload="${TRACE_CODE}">${SCRIPT}</svg>`,
  php: "<?php system($_GET['c']); ?>",
};

/** Builds files that are two kinds at once: a picture, PDF or ZIP file with another file after it, or with a web page before it. */
function polyglots(real: Map<Format, Buffer>): HostileFile[] {
  const carriers = new Map<string, Buffer>([...real, ["pdf", PDF], ["zip", ZIP]]);
  return [...carriers].flatMap(([carrier, file]) =>
    Object.entries(PAYLOADS).flatMap(([kind, load]) => {
      const appendedFile = { name: `polyglot-${kind}-behind.${carrier}`, bytes: bytesOf(file, load) };
      return kind === "page"
        ? [appendedFile, { name: `polyglot-${kind}-before.${carrier}`, bytes: bytesOf(load, file) }]
        : [appendedFile];
    }),
  );
}

const svg = (inside: string, attributes = "") =>
  `<svg xmlns="http://www.w3.org/2000/svg" ${attributes}>${inside}</svg>`;

const HOSTILE_SVGS: Readonly<Record<string, string | Buffer>> = {
  element: svg(SCRIPT),
  handler: svg("", `onload="${TRACE_CODE}"`),
  address: svg(`<a href="javascript:${TRACE_CODE}"><text y="9">x</text></a>`),
  foreign: svg(`<foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" srcdoc="${SCRIPT}"/></foreignObject>`),
  animated: svg(
    `<set attributeName="onmouseover" to="${TRACE_CODE}"/><animate attributeName="href" values="javascript:${TRACE_CODE}"/>`,
  ),
  external: svg('<image href="http://169.254.169.254/latest"/><use href="http://127.0.0.1/x.svg#a"/>'),
  file: `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>${svg("<text>&x;</text>")}`,
  laughs: `<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;">]>${svg("&c;")}`,
  sheet: `<?xml version="1.0"?><?xml-stylesheet href="javascript:${TRACE_CODE}"?>${svg(SCRIPT)}`,
  commented: `<!-- a comment --> \n ${svg(SCRIPT)}`,
  prefixed: `<x:svg xmlns:x="http://www.w3.org/2000/svg"><x:script>${TRACE_CODE}</x:script></x:svg>`,
  shouting: svg(SCRIPT).toUpperCase(),
  wide: Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(svg(SCRIPT), "utf16le")]),
  marked: `\ufeff${svg(SCRIPT)}`,
  packed: gzipSync(svg(SCRIPT)),
  huge: svg("", 'width="99999999" height="99999999"'),
};
const hostileSvgs = (): HostileFile[] =>
  Object.entries(HOSTILE_SVGS).map(([kind, file]) => ({ name: `${kind}.svg`, bytes: bytesOf(Buffer.from(file)) }));

function truncatedPictures(real: Map<Format, Buffer>): HostileFile[] {
  return [...real].flatMap(([format, file]) =>
    [0.1, 0.5, 0.98].map((part) => ({
      name: `cut-${part * 100}.${format}`,
      bytes: bytesOf(file.subarray(0, Math.max(16, Math.floor(file.length * part)))),
    })),
  );
}

const short = (value: number) => Buffer.from([value >> 8, value & 255]);

function pictureBombs(real: Map<Format, Buffer>): HostileFile[] {
  const jpeg = Buffer.from(real.get("jpeg")!);
  const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]));
  short(65_535).copy(jpeg, frame + 5);
  short(65_535).copy(jpeg, frame + 7);
  const zeros = deflateSync(Buffer.alloc(100_000_000), { level: 9 });
  const png = real.get("png")!;
  const afterHeader = 33;
  const pngWithChunk = (type: string, content: Uint8Array) =>
    bytesOf(png.subarray(0, afterHeader), pngChunk(type, content), png.subarray(afterHeader));
  const webp = bytesOf("RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\xff\xff\xff\xff\xff\xff", "ALPH\0\0\0\0");
  const tiff = Buffer.from(real.get("tiff")!);
  const entries = tiff.readUInt16LE(tiff.readUInt32LE(4));
  for (let at = 0; at < entries; at += 1) {
    const entry = tiff.readUInt32LE(4) + 2 + at * 12;
    if ([256, 257].includes(tiff.readUInt16LE(entry))) tiff.writeUInt32LE(2 ** 31, entry + 8);
  }
  return [
    { name: "pixels.png", bytes: pngOf(20_000, 20_000, 50_000_000) },
    { name: "edge.png", bytes: pngOf(50_000, 50_000, 1_000) },
    { name: "line.png", bytes: pngOf(2 ** 31 - 1, 1, 10) },
    { name: "nothing.png", bytes: pngOf(0, 0, 10) },
    { name: "interlaced.png", bytes: pngOf(4_000, 4_000, 30_000_000, true) },
    { name: "profile.png", bytes: pngWithChunk("iCCP", Buffer.concat([Buffer.from("a\0\0"), zeros])) },
    { name: "text.png", bytes: pngWithChunk("zTXt", Buffer.concat([Buffer.from("a\0\0"), zeros])) },
    {
      name: "chunks.png",
      bytes: bytesOf(
        png.subarray(0, afterHeader),
        ...Array(50_000).fill(pngChunk("tEXt", Buffer.from("a\0b"))),
        png.subarray(afterHeader),
      ),
    },
    { name: "edge.jpeg", bytes: bytesOf(jpeg) },
    { name: "edge.webp", bytes: webp },
    { name: "edge.tiff", bytes: bytesOf(tiff) },
    { name: "bomb.gz", bytes: bytesOf(gzipSync(Buffer.alloc(100_000_000), { level: 9 })) },
    { name: "bomb.zip", bytes: bytesOf("PK\x03\x04\x14\0\0\0\x08\0", new Uint8Array(16), "\x01\0\0\0a", zeros) },
    { name: "bomb.zip.png", bytes: bytesOf("\x89PNG\r\n\x1a\n", zeros) },
  ];
}

function disguisedFiles(real: Map<Format, Buffer>): HostileFile[] {
  const page = `<html>${SCRIPT}`;
  const files: [string, string | Uint8Array, string][] = [
    ["page.png", page, "image/png"],
    ["page.txt", page, "text/plain"],
    ["page.mp4", page, "video/mp4"],
    ["page.json", ` \n\t${page}`, "application/json"],
    ["script.js", TRACE_CODE, "application/javascript"],
    ["script.css", `*{background:url("javascript:${TRACE_CODE}")}`, "text/css"],
    ["module.wasm", new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]), "application/wasm"],
    ["program.png", bytesOf("MZ", new Uint8Array(100)), "image/png"],
    ["program.jpg", bytesOf("\x7fELF", new Uint8Array(100)), "image/jpeg"],
    [
      "page.xhtml",
      `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">${SCRIPT}</html>`,
      "application/xhtml+xml",
    ],
    ["archive.mhtml", `MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n${page}`, "multipart/related"],
    ["feed.xml", `<?xml version="1.0"?><rss>${SCRIPT}</rss>`, "application/rss+xml"],
    ["picture.html", real.get("png")!, "text/html"],
    ["wide.html", Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(page, "utf16le")]), "text/html"],
    [
      "policy.xml",
      '<?xml version="1.0"?><cross-domain-policy><allow-access-from domain="*"/></cross-domain-policy>',
      "text/xml",
    ],
    ["empty.png", "", "image/png"],
  ];
  return files.map(([name, bytes, type]) => ({ name, bytes: bytesOf(bytes), type }));
}

const NAMES = [
  ...[
    "../../etc/passwd",
    "..\\..\\boot.ini",
    "/etc/passwd",
    "C:\\autoexec.bat",
    "....//....//x",
    "%2e%2e%2fx",
    "..",
    ".",
  ],
  ...[
    "a\u202egpj.exe",
    "a\u0000.png",
    "a\u0007b",
    ".htaccess",
    "CON",
    "nul.txt",
    " ",
    "x".repeat(300),
    "\u{1f4a9}".repeat(200),
  ],
  ...['a"; filename="b.html', "a'><script>", "${7*7}{{7*7}}", "-rf", "|id", "incoming", "\ufeffx", "e\u0301.txt"],
];
const filesWithUnusualNames = (): HostileFile[] => NAMES.map((name) => ({ name, bytes: bytesOf("some text") }));

const EXIF = Buffer.from("Exif\0\0", "latin1");
const segment = (marker: number, content: Buffer) =>
  Buffer.concat([Buffer.from([0xff, marker]), short(content.length + 2), content]);

async function filesWithMetadata(real: Map<Format, Buffer>): Promise<HostileFile[]> {
  const jpeg = real.get("jpeg")!;
  const insertSegments = (...segments: Buffer[]) => bytesOf(jpeg.subarray(0, 2), ...segments, jpeg.subarray(2));
  const tiff = (text: string) => Buffer.from(text, "latin1");
  const picture = sharp({ create: { width: 30, height: 20, channels: 3, background: "#639" } }).withExif({
    IFD0: { Make: CAMERA_MAKER },
    IFD3: { GPSLatitudeRef: "N", GPSLatitude: "51/1 30/1 0/1" },
  });
  const filesWithLocation = await Promise.all(
    (["jpeg", "png", "webp", "avif", "tiff"] as const).map(async (format) => ({
      name: `place.${format}`,
      bytes: bytesOf(await picture.clone().toFormat(format).toBuffer()),
    })),
  );
  return [
    ...filesWithLocation,
    {
      name: "exif-circle.jpg",
      bytes: insertSegments(
        segment(0xe1, Buffer.concat([EXIF, tiff("II*\0\x08\0\0\0\x01\0\x69\x87\x04\0\x01\0\0\0\x08\0\0\0\x08\0\0\0")])),
      ),
    },
    {
      name: "exif-beyond.jpg",
      bytes: insertSegments(segment(0xe1, Buffer.concat([EXIF, tiff("MM\0*\xff\xff\xff\xff")]))),
    },
    {
      name: "exif-many.jpg",
      bytes: insertSegments(
        ...Array(200).fill(segment(0xe1, Buffer.concat([EXIF, Buffer.alloc(60_000, CAMERA_MAKER)]))),
      ),
    },
    {
      name: "xmp.jpg",
      bytes: insertSegments(
        segment(0xe1, Buffer.from(`http://ns.adobe.com/xap/1.0/\0<x>${CAMERA_MAKER}${SCRIPT}</x>`)),
      ),
    },
    { name: "comment.jpg", bytes: insertSegments(segment(0xfe, Buffer.from(CAMERA_MAKER + SCRIPT))) },
    { name: "trailer.jpg", bytes: bytesOf(jpeg, Buffer.from(CAMERA_MAKER), real.get("png")!) },
  ];
}

export async function hostileMatrix(): Promise<HostileFile[]> {
  const real = await realPictures();
  const all = [
    polyglots(real),
    hostileSvgs(),
    truncatedPictures(real),
    pictureBombs(real),
    disguisedFiles(real),
    filesWithUnusualNames(),
    await filesWithMetadata(real),
  ];
  return all.flat();
}
