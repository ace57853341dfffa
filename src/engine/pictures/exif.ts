/** Reads and writes the orientation of a picture in Exif data. All other Exif data is private, so the service removes it. */

const ORIENTATION_TAG = 0x0112;
const SHORT_TYPE = 3;

/** Returns a number from 1 to 8 as in Exif; 1 (upright) if there is none. @param tiff Exif data from its byte order mark on */
export function readExifOrientation(tiff: Buffer): number {
  const order = tiff.toString("latin1", 0, 2);
  if ((order !== "II" && order !== "MM") || tiff.length < 14) return 1;
  const isLittleEndian = order === "II";
  const readShort = (offset: number) => (isLittleEndian ? tiff.readUInt16LE(offset) : tiff.readUInt16BE(offset));
  const directoryOffset = isLittleEndian ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
  if (directoryOffset + 2 > tiff.length) return 1;
  const count = readShort(directoryOffset);
  for (let at = directoryOffset + 2; at < directoryOffset + 2 + count * 12 && at + 12 <= tiff.length; at += 12) {
    if (readShort(at) !== ORIENTATION_TAG) continue;
    const value = readShort(at + 8);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

/** Returns an Exif block that contains only the orientation. The block starts with its byte order mark. */
export function createOrientationExif(orientation: number): Buffer {
  const tiff = Buffer.alloc(26);
  tiff.write("MM\0*", 0, "latin1");
  tiff.writeUInt32BE(8, 4);
  tiff.writeUInt16BE(1, 8);
  tiff.writeUInt16BE(ORIENTATION_TAG, 10);
  tiff.writeUInt16BE(SHORT_TYPE, 12);
  tiff.writeUInt32BE(1, 14);
  tiff.writeUInt16BE(orientation, 18);
  return tiff;
}
