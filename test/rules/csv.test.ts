/** CSV in parts: the rows do not depend on where a text is split, and equal those of Papa Parse. */
import { expect } from "chai";
import fc from "fast-check";
import Papa from "papaparse";
import { CSV_CELLS_MAX, CsvError, CsvParser, detectDelimiter, isDelimiter } from "../../src/rules/csv.js";

function rowsOf(parts: readonly string[], delimiter: string): string[][] {
  const parser = new CsvParser(delimiter);
  return [...parts.flatMap((part) => parser.write(part)), ...parser.end()];
}

/** Papa Parse gets delimiter and line break: its detection is not compared. */
function oracle(text: string, delimiter: string, newline: "\r\n" | "\n" | "\r"): string[][] {
  return Papa.parse<string[]>(text, { delimiter, newline, skipEmptyLines: true }).data;
}

const cell = fc.string({
  unit: fc.constantFrom("a", "é", "😀", '"', "\r", "\n", "\r\n", " ", ",", ";", "|", "\t", "="),
  maxLength: 5,
});
const table = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 5 });

describe("CSV that arrives in parts", () => {
  it("has the rows of the whole text, for every cut position", () => {
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
        const expected = oracle(text, delimiter, newline);
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
      { numRuns: 300 },
    );
  });

  it("keeps rows of blank cells and skips lines without a character", () => {
    expect(rowsOf(["a,b\n1,2\n,\n\n3,4\n\n"], ",")).to.deep.equal([
      ["a", "b"],
      ["1", "2"],
      ["", ""],
      ["3", "4"],
    ]);
    expect(rowsOf(['a\n""\n\n1'], ",")).to.deep.equal([["a"], [""], ["1"]]);
    expect(rowsOf(["a\r\n\r\n1\r\r2\n\n3"], ",")).to.deep.equal([["a"], ["1"], ["2"], ["3"]]);
  });

  it("refuses a quote that does not end or ends too early, and rows of too many cells, wherever it is cut", () => {
    for (const text of ['a,b\n"1,2\n3,4\n', 'a,b\n"1"x,2\n', 'a,b\n"1" "2",2\n', `a\n${",".repeat(CSV_CELLS_MAX)}`]) {
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
      expect(detectDelimiter(text, true)).to.deep.equal({ delimiter, skip: 0 });
    });
  }

  it("is what `sep=` on the first line says", () => {
    for (const [line, delimiter] of [
      ["sep=;\r\n", ";"],
      ["sep=|\n", "|"],
      ['"sep=,"\r', ","],
      ["SEP=\t\n", "\t"],
    ] as const) {
      expect(detectDelimiter(`${line}a,b;c\n1,2;3\n`, true)).to.deep.equal({ delimiter, skip: line.length });
    }
    expect(detectDelimiter("sep=;x,y\n1,2\n", true)).to.deep.equal({ delimiter: ",", skip: 0 });
  });

  it("is one character other than a quote or a line break", () => {
    expect([";", "|", "\t", " ", "¦"].filter((text) => !isDelimiter(text))).to.deep.equal([]);
    expect(["", ";;", '"', "\n", "\r", "😀", "\uFEFF"].filter(isDelimiter)).to.deep.equal([]);
  });
});
