/** Extracts the archive of an npm package (a compressed tar file). Supports the parts of the format that npm's registry uses. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";

const BLOCK_BYTES = 512;
const FILE_TYPE = "0";
const OLD_FILE_TYPE = "\0";
const EXTENDED_HEADER_TYPE = "x";
const LONG_NAME_TYPE = "L";
/** Types of entries to skip: headers for the whole archive, long names of links, links, and folders. */
const IGNORED_TYPES = ["g", "K", "1", "2", "5"];

const decompress = promisify(gunzip);

function readText(tar, start, length) {
  const end = tar.indexOf(0, start);
  return tar.toString("utf8", start, end === -1 || end > start + length ? start + length : end);
}

const readOctal = (tar, start, length) => Number.parseInt(readText(tar, start, length).trim() || "0", 8);

/** Returns the entry's name. If the name is long, its first part is in the field `prefix`. */
function readName(tar, header) {
  const name = readText(tar, header, 100);
  const prefix = readText(tar, header + 257, 5) === "ustar" ? readText(tar, header + 345, 155) : "";
  return prefix ? `${prefix}/${name}` : name;
}

/** Reads an extended header. Returns the path and the size in bytes of the next entry, if the header contains them. */
function readExtendedHeader(content) {
  const text = content.toString();
  const path = /^\d+ path=(.*)$/m.exec(text)?.[1];
  const size = /^\d+ size=(\d+)$/m.exec(text)?.[1];
  return { ...(path && { path }), ...(size && { size: Number(size) }) };
}

/** Yields the files of a tar file, each with its name, mode and content. @throws Error if the tar file is damaged or of an unknown kind */
export function* readFiles(tar) {
  let extended = {};
  let header = 0;
  while (header + BLOCK_BYTES <= tar.length && tar[header] !== 0) {
    const size = extended.size ?? readOctal(tar, header + 124, 12);
    const start = header + BLOCK_BYTES;
    if (!Number.isInteger(size) || start + size > tar.length) throw new Error("the archive is damaged");
    const content = tar.subarray(start, start + size);
    const type = String.fromCharCode(tar[header + 156]);
    if (type === EXTENDED_HEADER_TYPE) extended = { ...extended, ...readExtendedHeader(content) };
    else if (type === LONG_NAME_TYPE) extended.path = readText(tar, start, size);
    else if (type === FILE_TYPE || type === OLD_FILE_TYPE) {
      yield { name: extended.path ?? readName(tar, header), mode: readOctal(tar, header + 100, 8), content };
      extended = {};
    } else if (!IGNORED_TYPES.includes(type)) throw new Error(`the archive has an entry of the unknown type ${type}`);
    else if (type !== "g" && type !== "K") extended = {};
    header = start + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
}

/**
 * Extracts the files to a folder, without the first folder in their paths. Leaves out links, like npm.
 * @param isWanted receives the path of a file in the package, and returns false to leave the file out
 */
export async function extractArchive(archive, folder, isWanted) {
  const tar = await decompress(archive);
  const created = new Set();
  for (const { name, mode, content } of readFiles(tar)) {
    const parts = name.split("/").slice(1);
    if (parts.includes("..")) throw new Error(`the archive has a file outside of its folder: ${name}`);
    const path = parts.join("/");
    if (path === "" || path.endsWith("/") || !isWanted(path)) continue;
    const file = join(folder, path);
    const parent = dirname(file);
    if (!created.has(parent)) mkdirSync(parent, { recursive: true });
    created.add(parent);
    writeFileSync(file, content, { mode: (mode & 0o755) | 0o644 });
  }
}
