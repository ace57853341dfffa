/** Tests comparisons that ignore case: equal in memory and in PostgreSQL, for whole texts and parts, in every script. */
import { expect } from "chai";
import fc from "fast-check";
import type { Client } from "pg";
import {
  containsTextFolded,
  containsTextFoldedSql,
  foldCase,
  foldCaseSql,
  formatDecimal,
  listEquivalentTexts,
} from "../../src/rules/comparable-text.js";
import { type ConnectedClient, connectedClient } from "../harness/connected-database.js";

const PAIRS: [whole: string, part: string][] = [
  ["ΟΔΟΣΑΝΔΡΟΣ", "ΟΔΟΣ"],
  ["οδοσανδρος", "ΟΔΟΣ"],
  ["ΟΔΟΣ", "οδός".normalize("NFD").replace("\u0301", "")],
  ["ΟΔΟΣ", "οδος"],
  ["İstanbul", "istanbul"],
  ["İSTANBUL", "i"],
  ["istanbul", "İSTANBUL"],
  ["ISTANBUL", "istanbul"],
  ["Straße", "STRASSE"],
  ["STRASSE", "straße"],
  ["ÉCOLE", "école"],
  ["МОСКВА", "москва"],
  ["ﬁle", "FI"],
  ["ǅ", "ǆ"],
];

describe("texts that are compared without case", () => {
  let database: ConnectedClient;
  let client: Client;

  before(async () => {
    database = await connectedClient();
    ({ client } = database);
  });
  after(() => database.stop());

  for (const [whole, part] of PAIRS) {
    it(`are found in memory and in PostgreSQL: ${part} in ${whole}`, async () => {
      const { rows } = await client.query(`SELECT ${containsTextFoldedSql("$1::text", "$2::text")} AS holds`, [
        whole,
        part,
      ]);
      expect([containsTextFolded(whole, part), rows[0].holds]).to.deep.equal([true, true]);
    });
  }

  it("are folded in the same way in memory and in PostgreSQL, for letters of every script", async () => {
    // Newer versions of Unicode have letters from U+1C80 to U+1CBF that the database's ICU lacks.
    const letters = Array.from({ length: 0x2000 }, (_, code) => String.fromCodePoint(code + 1)).filter((character) =>
      /[^\P{Letter}\u1c80-\u1cbf]/u.test(character),
    );
    const { rows } = await client.query(`SELECT t, ${foldCaseSql("t")} AS folded FROM unnest($1::text[]) t`, [letters]);
    const unlike = rows.filter(({ t, folded }) => foldCase(t) !== folded).map(({ t }) => t.codePointAt(0).toString(16));
    expect(unlike).to.deep.equal([]);
  });

  it("contain each of their parts", () => {
    const text = fc.string({ unit: fc.constantFrom(..."ΣσςİIiıßẞÉéa ".split("")), maxLength: 8 });
    fc.assert(
      fc.property(text, text, text, (before, part, after) =>
        containsTextFolded(before + part + after, part.toUpperCase()),
      ),
    );
  });
});

describe("numbers that are compared as texts", () => {
  it("are written as in PostgreSQL", async () => {
    const { client, stop } = await connectedClient();
    try {
      const random = fc.sample(fc.double({ noNaN: true, noDefaultInfinity: true }), 300);
      const numbers = [0, -0, 1, -1.5, 1e-7, -1e-7, 1e21, -1.25e21, 5e-324, Number.MAX_VALUE, 123456789e-15, ...random];
      const { rows } = await client.query(
        "SELECT value #>> '{}' AS text FROM jsonb_array_elements($1::jsonb) AS value",
        [JSON.stringify(numbers)],
      );
      expect(rows.map(({ text }) => text)).to.deep.equal(numbers.map((number) => formatDecimal(number)));
    } finally {
      await stop();
    }
  });

  it("have a second form with an exponent", () => {
    expect(listEquivalentTexts("1e-7")).to.deep.equal(["1e-7", "0.0000001"]);
    expect(listEquivalentTexts("1E+21")).to.deep.equal(["1E+21", "1000000000000000000000"]);
    for (const text of ["1", "e5", "1e", "0x1e5", "1e1000", ""])
      expect(listEquivalentTexts(text)).to.deep.equal([text]);
  });
});
