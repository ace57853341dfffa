/** Tests the stream of a file's rows: a fast sender waits until the rows have been read. */
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import {
  createCsvLayout,
  type ImportFormat,
  parseImportRows,
} from "../../../src/operations/data-sources/row-streams.js";
import { sampleOf } from "../../harness/samples.js";

const PART_BYTES = 64 * 1024;
const PART_COUNT = 120;
const ROW = { Name: "person", Email: "person@example.org" };
const TEXTS: Record<ImportFormat, { head: string; row: string; end: string }> = {
  csv: { head: "Name,Email\n", row: "person,person@example.org\n", end: "" },
  json: { head: `[${JSON.stringify(ROW)}`, row: `,${JSON.stringify(ROW)}`, end: "]" },
  jsonl: { head: "", row: `${JSON.stringify(ROW)}\n`, end: "" },
};

describe("a file that arrives faster than its rows are read", () => {
  for (const [format, { head, row, end }] of sampleOf(Object.entries(TEXTS), 2, 3)) {
    it(`is read only as far as its ${format} rows, and completely`, async () => {
      const rowsInPart = Math.floor(PART_BYTES / row.length);
      const part = Buffer.from(row.repeat(rowsInPart));
      let sent = 0;
      async function* file() {
        yield Buffer.from(head);
        for (let at = 0; at < PART_COUNT; at += 1) {
          sent += part.length;
          yield part;
        }
        yield Buffer.from(end);
      }
      const rows = parseImportRows(Readable.from(file()), format as ImportFormat);
      expect((await rows.next()).value).to.deep.equal(ROW);
      // In these thousand turns of the event loop, a sender that does not wait would run ahead of the reader.
      for (let at = 0; at < 1_000; at += 1) await turn();
      expect(sent).to.be.below(40 * PART_BYTES);
      let count = 1;
      for await (const streamed of rows) {
        count += 1;
        if (count % 5_000 === 0) expect(streamed).to.deep.equal(ROW);
      }
      expect(count).to.equal(rowsInPart * PART_COUNT + (format === "json" ? 1 : 0));
    });
  }
});

describe("a file that arrives in packets", () => {
  const rows = [
    { Näme: 'Ada "Countess"', Note: "a\r\nb; c" },
    { Näme: "", Note: "" },
    { Näme: "😀", Note: "x, y" },
  ];
  const csv = (newline: string, mark = "") =>
    mark + ["Näme;Note", '"Ada ""Countess""";"a\r\nb; c"', ";", '😀;"x, y"', ""].join(newline);
  const files: [string, ImportFormat, string][] = [
    ["CSV with CRLF", "csv", csv("\r\n")],
    ["CSV with LF and a byte order mark", "csv", csv("\n", "\uFEFF")],
    ["CSV with CR and a line that names the delimiter", "csv", csv("\r", "sep=;\r")],
    ["JSON", "json", JSON.stringify(rows)],
    ["JSON lines", "jsonl", rows.map((row) => JSON.stringify(row)).join("\r\n")],
  ];
  const read = async (format: ImportFormat, packets: readonly Buffer[]) => {
    const layout = createCsvLayout();
    const found: unknown[] = [];
    for await (const row of parseImportRows(Readable.from(packets), format, { layout })) found.push(row);
    return { found, layout };
  };
  for (const [title, format, text] of files) {
    it(`has the same rows and layout for every cut position: ${title}`, async () => {
      const bytes = Buffer.from(text);
      const layout = format === "csv" ? { columns: ["Näme", "Note"], delimiter: ";" } : createCsvLayout();
      const expected = { found: rows, layout };
      for (let at = 0; at <= bytes.length; at += 1) {
        const packets = [bytes.subarray(0, at), bytes.subarray(at)];
        expect(await read(format, packets), `cut at ${at}`).to.deep.equal(expected);
      }
      const single = Array.from(bytes, (byte) => Buffer.from([byte]));
      expect(await read(format, single)).to.deep.equal(expected);
    });
  }

  it("detects the delimiter from the same characters, however they arrive", async () => {
    // The service detects the delimiter in a sample at the beginning of the text, so later rows do not count.
    const text = `a,b\n${"1,2\n".repeat(20_000)}${"1;2,3;4\n".repeat(20_000)}`;
    for (const size of [1_000, 65_536, 65_537, 1_000_000]) {
      const packets: Buffer[] = [];
      for (let at = 0; at < text.length; at += size) packets.push(Buffer.from(text.slice(at, at + size)));
      const { found, layout } = await read("csv", packets);
      expect([found.length, layout]).to.deep.equal([40_000, { columns: ["a", "b"], delimiter: "," }]);
    }
  });
});
