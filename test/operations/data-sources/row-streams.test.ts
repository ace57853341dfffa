/** Rows out of files: that a file waits for whoever takes its rows, however fast its sender is. */
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { type RowFormat, readRows } from "../../../src/operations/data-sources/row-streams.js";

const PART_BYTES = 64 * 1024;
const PARTS = 120;
const ROW = { Name: "person", Email: "person@example.org" };
const TEXTS: Record<RowFormat, { head: string; row: string; end: string }> = {
  csv: { head: "Name,Email\n", row: "person,person@example.org\n", end: "" },
  json: { head: `[${JSON.stringify(ROW)}`, row: `,${JSON.stringify(ROW)}`, end: "]" },
  jsonl: { head: "", row: `${JSON.stringify(ROW)}\n`, end: "" },
};

describe("a file that comes faster than its rows are taken", () => {
  for (const [format, { head, row, end }] of Object.entries(TEXTS)) {
    it(`is read no further than its ${format} rows are, and to its last`, async () => {
      const rowsInPart = Math.floor(PART_BYTES / row.length);
      const part = Buffer.from(row.repeat(rowsInPart));
      let sent = 0;
      async function* file() {
        yield Buffer.from(head);
        for (let at = 0; at < PARTS; at += 1) {
          sent += part.length;
          yield part;
        }
        yield Buffer.from(end);
      }
      const rows = readRows(Readable.from(file()), format as RowFormat);
      expect((await rows.next()).value).to.deep.equal(ROW);
      // Whoever could run ahead has had a thousand turns for it.
      for (let at = 0; at < 1_000; at += 1) await turn();
      expect(sent).to.be.below(40 * PART_BYTES);
      let count = 1;
      for await (const one of rows) {
        count += 1;
        if (count % 5_000 === 0) expect(one).to.deep.equal(ROW);
      }
      expect(count).to.equal(rowsInPart * PARTS + (format === "json" ? 1 : 0));
    });
  }
});
