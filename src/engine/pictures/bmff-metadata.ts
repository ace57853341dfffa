/** Overwrites Exif, XMP and manufacturers' data in an ISO base media file, such as HEIC or AVIF. Its length and all offsets stay. */

/** Replaces the content of each Exif item: four bytes with the offset of the TIFF data, and TIFF data without entries. */
const EMPTY_EXIF = Buffer.from("\0\0\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0", "latin1");
const DEPTH_MAX = 4;

interface Box {
  type: string;
  /** Index of the box's first byte in the file. The content of the box is from `start` to `end`. */
  at: number;
  start: number;
  end: number;
}

function* readBoxes(file: Buffer, from: number, to: number): Generator<Box> {
  for (let at = from; at + 8 <= to; ) {
    let size = file.readUInt32BE(at);
    let header = 8;
    if (size === 1) {
      size = Number(file.readBigUInt64BE(at + 8));
      header = 16;
    } else if (size === 0) size = to - at;
    if (size < header || at + size > to)
      throw new RangeError(
        "a box of the picture file has an invalid size: it is shorter than its header, or extends beyond the box or file that contains it",
      );
    yield { type: file.toString("latin1", at + 4, at + 8), at, start: at + header, end: at + size };
    at += size;
  }
}

function readNumberAt(file: Buffer, offset: number, bytes: number): number {
  if (bytes === 0) return 0;
  return bytes === 8 ? Number(file.readBigUInt64BE(offset)) : file.readUIntBE(offset, bytes);
}

function findPrivateItems(file: Buffer, { start, end }: Box): Map<number, string> {
  const items = new Map<number, string>();
  const version = file[start]!;
  const first = start + 4 + (version === 0 ? 2 : 4);
  for (const box of readBoxes(file, first, end)) {
    if (box.type !== "infe") continue;
    const hasLongId = file[box.start] === 3;
    const id = hasLongId ? file.readUInt32BE(box.start + 4) : file.readUInt16BE(box.start + 4);
    const at = box.start + (hasLongId ? 10 : 8);
    const type = file.toString("latin1", at, at + 4);
    if (type === "Exif" || type === "mime" || type === "uri ") items.set(id, type);
  }
  return items;
}

interface Extent {
  itemId: number;
  method: number;
  offset: number;
  length: number;
}

function* readExtents(file: Buffer, { start }: Box): Generator<Extent> {
  const version = file[start]!;
  const sizes = file.readUInt16BE(start + 4);
  const [offsetBytes, lengthBytes, baseBytes] = [sizes >> 12, (sizes >> 8) & 15, (sizes >> 4) & 15] as const;
  const indexBytes = version === 0 ? 0 : sizes & 15;
  const idBytes = version === 2 ? 4 : 2;
  let at = start + 6;
  const count = readNumberAt(file, at, idBytes);
  at += idBytes;
  for (let index = 0; index < count; index += 1) {
    const itemId = readNumberAt(file, at, idBytes);
    at += idBytes;
    const method = version === 0 ? 0 : file.readUInt16BE(at) & 15;
    at += (version === 0 ? 0 : 2) + 2;
    const base = readNumberAt(file, at, baseBytes);
    at += baseBytes;
    const extentCount = file.readUInt16BE(at);
    at += 2;
    for (let extentIndex = 0; extentIndex < extentCount; extentIndex += 1) {
      at += indexBytes;
      const offset = base + readNumberAt(file, at, offsetBytes);
      at += offsetBytes;
      const length = readNumberAt(file, at, lengthBytes);
      at += lengthBytes;
      yield { itemId, method, offset, length };
    }
  }
}

function clearMetaBox(file: Buffer, metaBox: Box): void {
  const boxes = [...readBoxes(file, metaBox.start + 4, metaBox.end)];
  const [itemInfoBox, itemLocationBox] = [
    boxes.find(({ type }) => type === "iinf"),
    boxes.find(({ type }) => type === "iloc"),
  ];
  if (!itemInfoBox || !itemLocationBox) return;
  const dataStart = boxes.find(({ type }) => type === "idat")?.start ?? 0;
  const items = findPrivateItems(file, itemInfoBox);
  for (const { itemId, method, offset, length } of readExtents(file, itemLocationBox)) {
    const type = items.get(itemId);
    if (type === undefined) continue;
    const from = offset + (method === 1 ? dataStart : 0);
    const to = length === 0 ? file.length : from + length;
    if (method > 1)
      throw new RangeError(`the location of a metadata item has an unsupported construction method (got ${method})`);
    if (to > file.length) throw new RangeError("a metadata item extends beyond the end of the picture file");
    file.fill(type === "Exif" ? 0 : 0x20, from, to);
    if (type === "Exif") EMPTY_EXIF.copy(file, from, 0, Math.min(EMPTY_EXIF.length, to - from));
  }
}

const CLEARED_BOX_TYPES = ["uuid", "udta", "free", "skip"];

/** Overwrites a free-space or manufacturer's box with zeros, and changes its type to free space. */
function clearBox(file: Buffer, { at, start, end }: Box): void {
  file.fill(0, start, end);
  file.write("free", at + 4, "latin1");
}

function clearMetadataBoxes(file: Buffer, from: number, to: number, depth: number): void {
  for (const box of readBoxes(file, from, to)) {
    if (box.type === "meta") clearMetaBox(file, box);
    else if (CLEARED_BOX_TYPES.includes(box.type)) clearBox(file, box);
    else if (["moov", "trak"].includes(box.type) && depth < DEPTH_MAX)
      clearMetadataBoxes(file, box.start, box.end, depth + 1);
  }
}

/** Changes `file` in place and returns it. @throws RangeError if a box has an invalid size, or an item an invalid position */
export function removePrivateBmffItems(file: Buffer): Buffer {
  clearMetadataBoxes(file, 0, file.length, 0);
  return file;
}
