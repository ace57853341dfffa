/**
 * Tests the CSV parser: the rows do not depend on where the text is split, and equal those of Papa Parse. Also tests the types of cells.
 */
import { expect } from "chai";
import fc from "fast-check";
import Papa from "papaparse";
import { CSV_CELLS_PER_ROW_MAX, CsvError, CsvParser, detectDelimiter, isValidDelimiter } from "../../src/rules/csv.js";
import { CSV_CELL_TYPES, convertCsvCell, detectCsvCellType } from "../../src/rules/csv-types.js";
import { caseCount } from "../harness/samples.js";

function rowsOf(parts: readonly string[], delimiter: string): string[][] {
  const parser = new CsvParser(delimiter);
  return [...parts.flatMap((part) => parser.write(part)), ...parser.finish()];
}

/** Parses a text with Papa Parse. The caller passes the delimiter and the line break, because the test does not compare their detection. */
function parseWithPapa(text: string, delimiter: string, newline: "\r\n" | "\n" | "\r"): string[][] {
  return Papa.parse<string[]>(text, { delimiter, newline, skipEmptyLines: true }).data;
}

const cell = fc.string({
  unit: fc.constantFrom("a", "é", "😀", '"', "\r", "\n", "\r\n", " ", ",", ";", "|", "\t", "="),
  maxLength: 5,
});
const table = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 5 });

describe("CSV that arrives in parts", () => {
  it("has the same rows as the whole text, for every cut position", () => {
    const texts = fc.record({
      rows: table,
      delimiter: fc.constantFrom(",", ";", "\t", "|"),
      newline: fc.constantFrom("\r\n" as const, "\n" as const, "\r" as const),
      quotes: fc.boolean(),
      ending: fc.boolean(),
    });
    fc.assert(
      fc.property(texts, ({ rows, delimiter, newline, quotes, ending }) => {
        const text = Papa.unparse(rows, { delimiter, newline, quotes }) + (ending ? newline : "");
        const expected = parseWithPapa(text, delimiter, newline);
        expect(rowsOf([text], delimiter)).to.deep.equal(expected);
        expect(
          rowsOf(
            [...text].flatMap((character) => character.split("")),
            delimiter,
          ),
        ).to.deep.equal(expected);
        for (let at = 1; at < text.length; at += 1) {
          expect(rowsOf([text.slice(0, at), text.slice(at)], delimiter), `cut at ${at}`).to.deep.equal(expected);
        }
      }),
      { numRuns: caseCount(300) },
    );
  });

  it("keeps rows of blank cells and skips empty lines", () => {
    expect(rowsOf(["a,b\n1,2\n,\n\n3,4\n\n"], ",")).to.deep.equal([
      ["a", "b"],
      ["1", "2"],
      ["", ""],
      ["3", "4"],
    ]);
    expect(rowsOf(['a\n""\n\n1'], ",")).to.deep.equal([["a"], [""], ["1"]]);
    expect(rowsOf(["a\r\n\r\n1\r\r2\n\n3"], ",")).to.deep.equal([["a"], ["1"], ["2"], ["3"]]);
  });

  it("rejects a quote that does not end or ends too early, and rows of too many cells, for every cut position", () => {
    for (const text of [
      'a,b\n"1,2\n3,4\n',
      'a,b\n"1"x,2\n',
      'a,b\n"1" "2",2\n',
      `a\n${",".repeat(CSV_CELLS_PER_ROW_MAX)}`,
    ]) {
      for (let at = 0; at < Math.min(text.length, 20); at += 1) {
        const parse = () => rowsOf([text.slice(0, at), text.slice(at)], ",");
        expect(parse, text.slice(0, 20)).to.throw(CsvError, /^row 2 of the file has /);
      }
    }
    expect(rowsOf(['a"b,"c" ,d\n'], ",")).to.deep.equal([['a"b', "c", "d"]]);
  });
});

describe("the delimiter of a CSV", () => {
  const cases: [string, string, string][] = [
    ["commas", "a,b\n1,2\n", ","],
    ["semicolons", "a;b\n1;2\n", ";"],
    ["tabs", "a\tb\n1\t2\n", "\t"],
    ["bars where the header has nothing else", "a|b\n1|2\n", "|"],
    ["commas where a name has bars", "Title|Sub,Note|x\n1,2\n", ","],
    ["commas where a header alone has bars", "Title|Sub,Note|x", ","],
    ["semicolons beside decimal commas", "x;y\n1,5;2,5\n", ";"],
    ["semicolons beside a comma in the header", "Price, EUR;Name\n5;x\n", ";"],
    ["commas inside quotes do not count", '"a,b";c\n1;2\n', ";"],
    ["one column", "Name\nAda\n", ","],
    ["one column with a comma in a row", "Name\nAda, Countess\n", ","],
    ["nothing", "", ","],
  ];
  for (const [title, text, delimiter] of cases) {
    it(`is found: ${title}`, () => {
      expect(detectDelimiter(text, true)).to.deep.equal({ delimiter, skippedCharacters: 0 });
    });
  }

  it("is the one of `sep=` on the first line", () => {
    for (const [line, delimiter] of [
      ["sep=;\r\n", ";"],
      ["sep=|\n", "|"],
      ['"sep=,"\r', ","],
      ["SEP=\t\n", "\t"],
    ] as const) {
      expect(detectDelimiter(`${line}a,b;c\n1,2;3\n`, true)).to.deep.equal({
        delimiter,
        skippedCharacters: line.length,
      });
    }
    expect(detectDelimiter("sep=;x,y\n1,2\n", true)).to.deep.equal({ delimiter: ",", skippedCharacters: 0 });
  });

  it("is one character other than a quote or a line break", () => {
    expect([";", "|", "\t", " ", "¦"].filter((text) => !isValidDelimiter(text))).to.deep.equal([]);
    expect(["", ";;", '"', "\n", "\r", "😀", "\uFEFF"].filter(isValidDelimiter)).to.deep.equal([]);
  });
});

describe("types of CSV cells", () => {
  it("convert each cell that has the type, make blank cells null, and reject all others", () => {
    const cells = {
      number: { "12": 12, " -1.50 ": -1.5, "007": 7, "1e3": 1000, "+2": 2, "": null, " ": null },
      boolean: { true: true, YES: true, "1": true, False: false, no: false, "0": false, "": null },
      date: {
        "2026-11-26": "2026-11-26",
        "2026-11-26T09:30Z": "2026-11-26T09:30:00.000Z",
        "2026-11-26 09:30:15.25": "2026-11-26T09:30:15.250Z",
        "2026-11-26T00:30+02:00": "2026-11-25T22:30:00.000Z",
        "6.1.2026": "2026-01-06",
        "29.2.2024": "2024-02-29",
        "": null,
      },
      text: { "": "", " 12 ": " 12 ", true: "true" },
    };
    for (const type of CSV_CELL_TYPES) {
      for (const [cell, value] of Object.entries(cells[type]))
        expect(convertCsvCell(cell, type), `${type} ${cell}`).to.equal(value);
    }
    const rejected = {
      number: ["a", "1,5", "0x10", "Infinity", "1e400", "9007199254740993", "1_000", "--1"],
      boolean: ["ja", "2", "toString", "__proto__"],
      date: [
        "2026-02-30",
        "29.2.2026",
        "11/26/2026",
        "2026-11-26T25:00Z",
        "26.11.26",
        "2026",
        "2026-11-26T09:30+99:00",
      ],
    };
    for (const [type, texts] of Object.entries(rejected)) {
      for (const text of texts) expect(convertCsvCell(text, type as "date"), `${type} ${text}`).to.equal(undefined);
    }
  });

  it("are detected only if no character of a number would be lost, and convert every cell", () => {
    expect(detectCsvCellType(["1", "2.5", ""])).to.equal("number");
    expect(detectCsvCellType(["yes", "No"])).to.equal("boolean");
    expect(detectCsvCellType(["2026-11-26", "1.2.2026"])).to.equal("date");
    for (const code of [
      "00123",
      "1.10",
      "0.12345678901234567890",
      "+49123",
      "1e5",
      "12345678901234567890",
      "1 000",
      "x",
    ])
      expect(detectCsvCellType(["1", code]), code).to.equal("text");
    expect(detectCsvCellType(["2026-11-26T09:30Z", "2026-11-26 09:30+01:00"])).to.equal("date");
    for (const time of ["2026-11-26 09:30", "2026-11-26T09:30"])
      expect(detectCsvCellType(["2026-11-26", time]), time).to.equal("text");
    for (const none of [[], ["", " "]]) expect(detectCsvCellType(none)).to.equal("text");
    const unit = fc.constantFrom("0", "1", "2", "-", ".", ":", "T", "Z", "e", " ", "yes");
    fc.assert(
      fc.property(fc.array(fc.string({ unit, maxLength: 12 })), (cells) => {
        const type = detectCsvCellType(cells);
        for (const text of cells) {
          expect(convertCsvCell(text, type)).not.to.equal(undefined);
          if (type === "number" && text.trim() !== "") expect(String(convertCsvCell(text, type))).to.equal(text.trim());
        }
      }),
    );
  });
});
