/** Removes tags with personal data from a TIFF file in place. Only the entries of its directories move, and no offset changes. */

/** Tags with personal data. Some cameras store tags of the Exif directory in other directories too. */
const PERSONAL_TAGS = new Set([
  // XMP, IPTC, Photoshop, Exif, GPS, PrintIM, and the manufacturer's data in Exif and DNG.
  ...[700, 33723, 34377, 34665, 34853, 50341, 37500, 50740, 50828],
  // Texts: name of the document, description, page, author, copyright, and the texts of Windows and Exif.
  ...[269, 270, 285, 315, 33432, 37510, 40091, 40092, 40093, 40094, 40095, 50827],
  // Device and software with their serial numbers, its owner, and times.
  ...[271, 272, 305, 306, 316, 36867, 36868, 42016, 42032, 42033, 42035, 42036, 42037, 50708, 50709, 50735],
]);
/** Tag with the offsets of other pictures' directories, such as smaller sizes of a picture. */
const SUB_PICTURES_TAG = 330;
/** Tags whose values are offsets of other directories: of other pictures, Exif, GPS and interoperability. */
const DIRECTORY_TAGS = new Set([SUB_PICTURES_TAG, 34665, 34853, 40965]);
const LONG_TYPE = 4;
const IFD_TYPE = 13;
/**
 * Bytes of one value, by TIFF field type. The types from 1 to 13 are BYTE, ASCII, SHORT, LONG, RATIONAL, SBYTE, UNDEFINED, SSHORT, SLONG,
 * SRATIONAL, FLOAT, DOUBLE and IFD.
 */
const BYTES_BY_FIELD_TYPE = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4];
/** Maximum directories, entries and elements of lists that the editor reads, so that it ends if directories overlap. */
const READS_MAX = 1_000_000;

class TiffEditor {
  private readonly visitedOffsets = new Set<number>();
  private readCount = 0;
  private readonly isLittleEndian: boolean;

  constructor(readonly file: Buffer) {
    this.isLittleEndian = file.toString("latin1", 0, 2) === "II";
  }

  readShort(offset: number): number {
    return this.isLittleEndian ? this.file.readUInt16LE(offset) : this.file.readUInt16BE(offset);
  }

  readLong(offset: number): number {
    return this.isLittleEndian ? this.file.readUInt32LE(offset) : this.file.readUInt32BE(offset);
  }

  private writeShort(value: number, offset: number): void {
    if (this.isLittleEndian) this.file.writeUInt16LE(value, offset);
    else this.file.writeUInt16BE(value, offset);
  }

  private countReads(count: number): void {
    this.readCount += count;
    if (this.readCount > READS_MAX) throw new RangeError("the TIFF data has too many entries");
  }

  /** Marks the directory at `offset` as visited. Returns false if the offset is invalid, or if the directory was visited before. */
  private markVisited(offset: number): boolean {
    if (offset < 8 || offset + 6 > this.file.length || this.visitedOffsets.has(offset)) return false;
    this.countReads(1);
    this.visitedOffsets.add(offset);
    return true;
  }

  /** Returns the byte offsets of the entries in the directory at `offset`. Each entry has 12 bytes. */
  private listEntryOffsets(offset: number): number[] {
    const count = this.readShort(offset);
    this.countReads(count);
    const starts = Array.from({ length: count }, (_, index) => offset + 2 + index * 12);
    return starts.filter((start) => start + 12 <= this.file.length);
  }

  /** Yields the offsets of directories that an entry contains. @throws RangeError if their list extends beyond the end of the file */
  private *readDirectoryOffsets(entryOffset: number): Generator<number> {
    const [type, count] = [this.readShort(entryOffset + 2), this.readLong(entryOffset + 4)];
    const value = this.readLong(entryOffset + 8);
    if (count > 1 && (type === LONG_TYPE || type === IFD_TYPE))
      for (let index = 0; index < count; index += 1) {
        this.countReads(1);
        yield this.readLong(value + 4 * index);
      }
    else yield value;
  }

  private clearEntry(entryOffset: number): void {
    const bytes = (BYTES_BY_FIELD_TYPE[this.readShort(entryOffset + 2)] ?? 1) * this.readLong(entryOffset + 4);
    if (DIRECTORY_TAGS.has(this.readShort(entryOffset)))
      for (const offset of this.readDirectoryOffsets(entryOffset)) this.clearDirectory(offset);
    const value = this.readLong(entryOffset + 8);
    if (bytes > 4) this.file.fill(0, value, Math.min(this.file.length, value + bytes));
  }

  private clearDirectory(offset: number): void {
    if (!this.markVisited(offset)) return;
    const entryOffsets = this.listEntryOffsets(offset);
    for (const entryOffset of entryOffsets) this.clearEntry(entryOffset);
    this.file.fill(0, offset, Math.min(this.file.length, offset + 2 + entryOffsets.length * 12));
  }

  /** Removes the tags with personal data from the directory at `first`, the directories that follow it, and those of their other sizes. */
  clearDirectories(first: number): void {
    for (let at = first; this.markVisited(at); ) {
      const entryOffsets = this.listEntryOffsets(at);
      const next = this.readLong(at + 2 + entryOffsets.length * 12);
      const isPersonal = (entryOffset: number) => PERSONAL_TAGS.has(this.readShort(entryOffset));
      for (const entryOffset of entryOffsets.filter(isPersonal)) this.clearEntry(entryOffset);
      for (const entryOffset of entryOffsets.filter((start) => this.readShort(start) === SUB_PICTURES_TAG))
        for (const offset of this.readDirectoryOffsets(entryOffset)) this.clearDirectories(offset);
      const retainedEntries = entryOffsets
        .filter((entryOffset) => !isPersonal(entryOffset))
        .map((entryOffset) => Buffer.from(this.file.subarray(entryOffset, entryOffset + 12)));
      const nextDirectoryOffset = Buffer.from(
        this.file.subarray(at + 2 + entryOffsets.length * 12, at + 6 + entryOffsets.length * 12),
      );
      this.file.fill(0, at, at + 6 + entryOffsets.length * 12);
      this.writeShort(retainedEntries.length, at);
      Buffer.concat([...retainedEntries, nextDirectoryOffset]).copy(this.file, at + 2);
      at = next;
    }
  }
}

/**
 * Removes tags that can contain personal data, such as the location or the author, and overwrites their values. Changes `file` in place.
 * @throws RangeError if an offset points beyond the end of the file, if there are too many entries, or without 32-bit offsets
 */
export function removePersonalTiffTags(file: Buffer): Buffer {
  const tiff = new TiffEditor(file);
  // This function cannot read the 64-bit offsets of a BigTIFF.
  if (tiff.readShort(2) !== 42) throw new RangeError("the TIFF data does not have 32-bit offsets");
  tiff.clearDirectories(tiff.readLong(4));
  return file;
}
