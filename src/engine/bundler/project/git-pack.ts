/**
 * Unpacks the objects of a Git pack file (gitformat-pack) in memory, within limits. The pack of a shallow clone contains all objects of the
 * commit. Each object is complete, or stored as a delta to another object.
 */
import { createHash } from "node:crypto";
import { inflateSync } from "node:zlib";
import { PackageError } from "../fault.js";

const OBJECTS_MAX = 100_000;
const UNPACKED_MAX_BYTES = 64 * 1024 * 1024;
const HASH_BYTES = 20;
const PACK_HEADER_BYTES = 12;
const CHUNK_MAX_BYTES = 16 * 1024;
const CHUNK_MIN_BYTES = 64;
/** Maximum bytes after the first byte of an encoded number. They suffice for numbers up to UNPACKED_MAX_BYTES. */
const NUMBER_FURTHER_BYTES_MAX = 5;
const DELTA_OBJECT_TYPE = 7;
const TYPE_BY_CODE: Readonly<Record<number, GitObjectType>> = { 1: "commit", 2: "tree", 3: "blob", 4: "tag" };

export type GitObjectType = "commit" | "tree" | "blob" | "tag";

interface GitObject {
  type: GitObjectType;
  content: Buffer;
}

/** Git objects by their hash in lower-case hexadecimal. */
export type GitObjectsByHash = ReadonlyMap<string, GitObject>;

interface Delta {
  baseHash: string;
  content: Buffer;
}

const createBrokenPackFault = (reason: string) =>
  new PackageError(`the pack that the Git server sent is damaged or not supported: ${reason}`);

const computeObjectHash = ({ type, content }: GitObject): string =>
  createHash("sha1").update(`${type} ${content.length}\0`).update(content).digest("hex");

/** Reads bytes and numbers from a buffer. @throws PackageError at the end of the buffer */
class ByteReader {
  at = 0;

  constructor(private readonly bytes: Buffer) {}

  readByte(): number {
    const value = this.bytes[this.at];
    if (value === undefined) throw createBrokenPackFault("the pack ends too early");
    this.at += 1;
    return value;
  }

  readBytes(count: number): Buffer {
    if (this.at + count > this.bytes.length) throw createBrokenPackFault("the pack ends too early");
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  /**
   * Reads the rest of a number in groups of seven bits, the lowest group first. `first` is the number's first byte, which the caller has
   * read. Its lowest `bits` bits are the start of the number.
   */
  readNumber(first: number, bits: number): number {
    let value = first & (2 ** bits - 1);
    let factor = 2 ** bits;
    let count = 0;
    for (let byte = first; byte & 0x80; factor *= 128) {
      count += 1;
      if (count > NUMBER_FURTHER_BYTES_MAX) throw createBrokenPackFault("a number is too long");
      byte = this.readByte();
      value += (byte & 0x7f) * factor;
      if (value > UNPACKED_MAX_BYTES) throw createBrokenPackFault("an object is too large");
    }
    return value;
  }

  get rest(): Buffer {
    return this.bytes.subarray(this.at);
  }

  get isAtEnd(): boolean {
    return this.at === this.bytes.length;
  }
}

/** Unpacks the next object. @param size expected size of the object @throws PackageError if the object is damaged or has another size */
function inflateObject(reader: ByteReader, size: number): Buffer {
  const chunkSize = Math.min(Math.max(size, CHUNK_MIN_BYTES), CHUNK_MAX_BYTES);
  try {
    const result = inflateSync(reader.rest, { info: true, maxOutputLength: Math.max(size, 1), chunkSize });
    const { buffer, engine } = result as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
    reader.at += engine.bytesWritten;
    if (buffer.length === size) return buffer;
  } catch {
    // The error below reports that the object cannot be unpacked.
  }
  throw createBrokenPackFault("an object cannot be unpacked");
}

/**
 * Returns the object that a delta creates from its base object.
 * @param countUnpackedBytes receives the size of the object; throws if all objects together are too large
 */
function applyDelta(base: Buffer, content: Buffer, countUnpackedBytes: (bytes: number) => void): Buffer {
  const reader = new ByteReader(content);
  const baseSize = reader.readNumber(reader.readByte(), 7);
  const size = reader.readNumber(reader.readByte(), 7);
  if (baseSize !== base.length) throw createBrokenPackFault("a delta does not match the size of its base object");
  countUnpackedBytes(size);
  const result = Buffer.alloc(size);
  let writtenBytes = 0;
  while (!reader.isAtEnd) {
    const command = reader.readByte();
    let part: Buffer;
    if (command & 0x80) {
      let [offset, length] = [0, 0];
      for (let bit = 0; bit < 4; bit += 1) if (command & (1 << bit)) offset += reader.readByte() * 256 ** bit;
      for (let bit = 0; bit < 3; bit += 1) if (command & (0x10 << bit)) length += reader.readByte() * 256 ** bit;
      if (length === 0) length = 0x10000;
      if (offset + length > base.length)
        throw createBrokenPackFault("a delta copies bytes from after the end of its base object");
      part = base.subarray(offset, offset + length);
    } else {
      if (command === 0) throw createBrokenPackFault("a delta has an unknown command");
      part = reader.readBytes(command);
    }
    if (writtenBytes + part.length > size)
      throw createBrokenPackFault("a delta creates more bytes than its header states");
    writtenBytes += part.copy(result, writtenBytes);
  }
  if (writtenBytes !== size) throw createBrokenPackFault("a delta creates fewer bytes than its header states");
  return result;
}

/** Checks the header and the checksum of a pack, and returns the number of objects in the pack. */
function readObjectCount(pack: Buffer): number {
  if (pack.length < PACK_HEADER_BYTES + HASH_BYTES || pack.toString("latin1", 0, 4) !== "PACK")
    throw createBrokenPackFault("the received bytes are not a pack");
  const contentEnd = pack.length - HASH_BYTES;
  const digest = createHash("sha1").update(pack.subarray(0, contentEnd)).digest();
  if (!digest.equals(pack.subarray(contentEnd))) throw createBrokenPackFault("the checksum of the pack is wrong");
  const version = pack.readUInt32BE(4);
  if (version !== 2) throw createBrokenPackFault(`the version of the pack format is ${version} instead of 2`);
  const count = pack.readUInt32BE(8);
  if (count > OBJECTS_MAX) throw new PackageError(`the repository has more than ${OBJECTS_MAX} files and folders`);
  return count;
}

/** Unpacks the objects of a pack. @throws PackageError for a pack that is damaged or too large */
export function readGitPack(pack: Buffer): GitObjectsByHash {
  const count = readObjectCount(pack);
  let unpackedBytes = 0;
  const countUnpackedBytes = (bytes: number) => {
    unpackedBytes += bytes;
    if (unpackedBytes > UNPACKED_MAX_BYTES)
      throw new PackageError(`the repository unpacks to more than ${UNPACKED_MAX_BYTES / 2 ** 20} MB`);
  };
  const objects = new Map<string, GitObject>();
  /** Deltas that have not been applied yet, by the hash of the base object. */
  const unresolvedDeltas = new Map<string, Delta[]>();
  const reader = new ByteReader(pack.subarray(PACK_HEADER_BYTES, pack.length - HASH_BYTES));
  for (let index = 0; index < count; index += 1) {
    const firstByte = reader.readByte();
    const typeCode = (firstByte >> 4) & 7;
    const size = reader.readNumber((firstByte & 0x0f) | (firstByte & 0x80), 4);
    countUnpackedBytes(size);
    const baseHash = typeCode === DELTA_OBJECT_TYPE ? reader.readBytes(HASH_BYTES).toString("hex") : null;
    const content = inflateObject(reader, size);
    if (baseHash !== null) {
      const deltas = unresolvedDeltas.get(baseHash) ?? [];
      deltas.push({ baseHash, content });
      unresolvedDeltas.set(baseHash, deltas);
      continue;
    }
    const type = TYPE_BY_CODE[typeCode];
    if (type === undefined) throw createBrokenPackFault(`the pack has an object of the unknown type ${typeCode}`);
    objects.set(computeObjectHash({ type, content }), { type, content });
  }
  resolveDeltas(objects, unresolvedDeltas, countUnpackedBytes);
  return objects;
}

function resolveDeltas(
  objects: Map<string, GitObject>,
  unresolvedDeltas: Map<string, Delta[]>,
  countUnpackedBytes: (bytes: number) => void,
): void {
  const baseHashes = [...objects.keys()].filter((hash) => unresolvedDeltas.has(hash));
  for (let hash = baseHashes.pop(); hash !== undefined; hash = baseHashes.pop()) {
    const { type, content } = objects.get(hash)!;
    const deltas = unresolvedDeltas.get(hash) ?? [];
    unresolvedDeltas.delete(hash);
    for (const delta of deltas) {
      const object = { type, content: applyDelta(content, delta.content, countUnpackedBytes) };
      const objectHash = computeObjectHash(object);
      objects.set(objectHash, object);
      if (unresolvedDeltas.has(objectHash)) baseHashes.push(objectHash);
    }
  }
  if (unresolvedDeltas.size > 0) throw createBrokenPackFault("the base object of a delta is missing");
}
