/** Tests that the service removes private metadata from each directory of a TIFF file. sharp (libvips and libtiff) reads the results. */
import { expect } from "chai";
import sharp, { type SharpOptions } from "sharp";
import { removePrivateMetadata } from "../../src/engine/pictures/private-metadata.js";

const ASCII = 2;
const SHORT = 3;
const LONG = 4;
const RATIONAL = 5;
const UNDEFINED = 7;
const IFD = 13;
const ITEM_BYTES: Record<number, number> = {
  [ASCII]: 1,
  [SHORT]: 2,
  [LONG]: 4,
  [RATIONAL]: 4,
  [UNDEFINED]: 1,
  [IFD]: 4,
};

/** Values of a tag: numbers, a text, bytes, or other directories, of which the tag stores the offsets. */
type TagValues = number[] | string | Buffer | Directory[];
interface Directory {
  tags: [tag: number, type: number, values: TagValues][];
  next?: Directory;
}

const isDirectories = (values: TagValues): values is Directory[] =>
  Array.isArray(values) && typeof values[0] === "object";

/** Writes TIFF files in either byte order. */
class TiffWriter {
  private readonly chunks: Buffer[] = [];
  private length = 8;

  constructor(private readonly isLittle: boolean) {}

  private number(value: number, bytes: number): Buffer {
    const buffer = Buffer.alloc(bytes);
    if (this.isLittle) buffer.writeUIntLE(value, 0, bytes);
    else buffer.writeUIntBE(value, 0, bytes);
    return buffer;
  }

  private append(bytes: Buffer): number {
    const offset = this.length;
    const padding = Buffer.alloc(bytes.length % 2);
    this.chunks.push(bytes, padding);
    this.length += bytes.length + padding.length;
    return offset;
  }

  private encode(type: number, values: TagValues): Buffer {
    if (typeof values === "string") return Buffer.from(`${values}\0`);
    if (Buffer.isBuffer(values)) return values;
    const numbers = isDirectories(values) ? values.map((directory) => this.writeDirectory(directory)) : values;
    return Buffer.concat(numbers.map((value) => this.number(value, ITEM_BYTES[type]!)));
  }

  private writeDirectory({ tags, next }: Directory): number {
    const entries = tags
      .toSorted(([first], [second]) => first - second)
      .map(([tag, type, values]) => {
        const content = this.encode(type, values);
        const count = content.length / (type === RATIONAL ? 8 : ITEM_BYTES[type]!);
        const inline = content.length > 4 ? this.number(this.append(content), 4) : content;
        const field = Buffer.concat([inline, Buffer.alloc(4 - inline.length)]);
        return Buffer.concat([this.number(tag, 2), this.number(type, 2), this.number(count, 4), field]);
      });
    const following = this.number(next ? this.writeDirectory(next) : 0, 4);
    return this.append(Buffer.concat([this.number(entries.length, 2), ...entries, following]));
  }

  /** Appends bytes that directories refer to with their offset. */
  appendPixels = (bytes: Buffer): number => this.append(bytes);

  writeFile(first: Directory): Buffer {
    const offset = this.writeDirectory(first);
    const header = Buffer.concat([
      Buffer.from(this.isLittle ? "II" : "MM"),
      this.number(42, 2),
      this.number(offset, 4),
    ]);
    return Buffer.concat([header, ...this.chunks]);
  }
}

const SECRET = "Serial 4711 of Ann";
/** A latitude of 51 degrees and 30.25 minutes. */
const LATITUDE = [51, 1, 121, 4, 0, 1];

const createPrivateTags = (): Directory["tags"] => {
  const interoperability: Directory = { tags: [[1, ASCII, SECRET]] };
  const exif: Directory = {
    tags: [
      [36867, ASCII, SECRET],
      [37500, UNDEFINED, Buffer.from(SECRET)],
      [42033, ASCII, SECRET],
      [40965, LONG, [interoperability]],
    ],
  };
  const gps: Directory = {
    tags: [
      [1, ASCII, "N"],
      [2, RATIONAL, LATITUDE],
      [29, ASCII, SECRET],
    ],
  };
  return [
    [34665, LONG, [exif]],
    [34853, IFD, [gps]],
    [700, UNDEFINED, Buffer.from(`<x:xmpmeta xmlns:x="adobe:ns:meta/">${SECRET}</x:xmpmeta>`)],
    [271, ASCII, SECRET],
    [40091, UNDEFINED, Buffer.from(SECRET)],
    [42033, ASCII, SECRET],
    [50735, ASCII, SECRET],
  ];
};

/** Returns a directory with a grey picture of 2 × 2 pixels and all private tags. */
function createPicture(file: TiffWriter, shade: number): Directory {
  const tags: Directory["tags"] = [
    [254, LONG, [0]],
    [256, SHORT, [2]],
    [257, SHORT, [2]],
    [258, SHORT, [8]],
    [259, SHORT, [1]],
    [262, SHORT, [1]],
    [273, LONG, [file.appendPixels(Buffer.alloc(4, shade))]],
    [277, SHORT, [1]],
    [278, SHORT, [2]],
    [279, LONG, [4]],
  ];
  return { tags: [...tags, ...createPrivateTags()] };
}

const includesLatitude = (file: Buffer): boolean =>
  ["writeUInt32LE", "writeUInt32BE"].some((method) => {
    const minutes = Buffer.alloc(8);
    minutes[method as "writeUInt32LE"](121, 0);
    minutes[method as "writeUInt32LE"](4, 4);
    return file.includes(minutes);
  });

describe("the metadata of a TIFF file", () => {
  const clean = (file: Buffer) => Buffer.concat(removePrivateMetadata(Buffer.from(file), "image/tiff"));
  const readShade = async (file: Buffer, options: SharpOptions) =>
    (await sharp(file, options).toColourspace("b-w").raw().toBuffer())[0];

  for (const order of ["little", "big"] as const)
    for (const type of [LONG, IFD])
      it(`is removed from SubIFDs of type ${type} too, and all pictures stay (${order}-endian)`, async () => {
        const writer = new TiffWriter(order === "little");
        const [main, second, small, smaller, smallest, last] = [10, 20, 30, 40, 50, 60].map((shade) =>
          createPicture(writer, shade),
        ) as [Directory, Directory, Directory, Directory, Directory, Directory];
        main.next = second;
        main.tags.push([330, type, [small, smaller]]);
        small.next = smallest;
        second.tags.push([330, type, [last]]);
        const before = writer.writeFile(main);
        const after = clean(before);
        expect([before.includes(SECRET), includesLatitude(before)]).to.deep.equal([true, true]);
        expect([after.includes(SECRET), includesLatitude(after)]).to.deep.equal([false, false]);
        expect(after.length).to.equal(before.length);
        for (const [options, shade] of [
          [{ page: 0 }, 10],
          [{ page: 1 }, 20],
          [{ page: 0, subifd: 0 }, 30],
          [{ page: 0, subifd: 1 }, 40],
          [{ page: 1, subifd: 0 }, 60],
        ] as const) {
          expect((await sharp(before, options).metadata()).xmp, JSON.stringify(options)).to.be.instanceOf(Buffer);
          expect((await sharp(after, options).metadata()).xmp, JSON.stringify(options)).to.equal(undefined);
          expect(await readShade(after, options), JSON.stringify(options)).to.equal(shade);
        }
      });

  it("is removed from SubIFDs of SubIFDs, and from SubIFDs of the Exif directory", () => {
    const writer = new TiffWriter(true);
    const [main, outer, inner, preview] = [10, 20, 30, 40].map((shade) => createPicture(writer, shade)) as [
      Directory,
      Directory,
      Directory,
      Directory,
    ];
    main.tags.push([330, LONG, [outer]]);
    outer.tags.push([330, LONG, [inner]]);
    const exif: Directory = { tags: [[330, LONG, [preview, createPicture(writer, 50)]]] };
    main.tags.find(([tag]) => tag === 34665)![2] = [exif];
    const after = clean(writer.writeFile(main));
    expect([after.includes(SECRET), includesLatitude(after)]).to.deep.equal([false, false]);
  });

  it("is removed once if directories refer to each other", () => {
    const writer = new TiffWriter(false);
    const main = createPicture(writer, 10);
    main.tags.push([330, LONG, [8, 8, 0, 4_294_967_295]]);
    const file = writer.writeFile(main);
    const first = file.readUInt32BE(4);
    const list = file.indexOf(Buffer.from([0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0, 255, 255, 255, 255]));
    file.writeUInt32BE(first, list);
    file.writeUInt32BE(first, list + 4);
    expect(clean(file).includes(SECRET)).to.equal(false);
  });

  it("is removed from 300 pages with four smaller sizes each", () => {
    const writer = new TiffWriter(true);
    const pages = Array.from({ length: 300 }, () => createPicture(writer, 10));
    for (const [index, page] of pages.entries()) {
      if (index > 0) pages[index - 1]!.next = page;
      page.tags.push([330, LONG, Array.from({ length: 4 }, () => createPicture(writer, 20))]);
    }
    expect(clean(writer.writeFile(pages[0]!)).includes(SECRET)).to.equal(false);
  });

  it("makes the service reject a file with more than a million directories, entries and elements of lists", () => {
    const createFile = (listLength: number) => {
      const writer = new TiffWriter(true);
      const main = createPicture(writer, 10);
      main.tags.push([330, LONG, Array<number>(listLength).fill(8)]);
      return writer.writeFile(main);
    };
    expect(clean(createFile(1_000)).includes(SECRET)).to.equal(false);
    expect(() => clean(createFile(1_000_000))).to.throw("not supported");
  });
});
