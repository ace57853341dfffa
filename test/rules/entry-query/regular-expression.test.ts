/** Checks that each regular expression of a query has the same meaning in PostgreSQL and in JavaScript, or is rejected. */
import { expect } from "chai";
import fc from "fast-check";
import type { Client } from "pg";
import { ActionError } from "../../../src/errors.js";
import { UNICODE_COLLATION } from "../../../src/rules/comparable-text.js";
import { translateRegExpToPostgres } from "../../../src/rules/entry-query/regular-expression.js";
import { type ConnectedClient, connectedClient } from "../../harness/connected-database.js";
import { caseCount } from "../../harness/samples.js";

const TEXTS = [
  "",
  "a",
  "A",
  "b",
  "ab",
  "aB",
  "abc",
  "ba",
  "aab",
  "a b",
  "a\nb",
  "a\r",
  "b\u2028a",
  "_a",
  "a_1",
  "12",
  "1a",
  "é",
  "É",
  "aé",
  "ß",
  "ǅ",
  "\u00a0",
  "\ufeff",
  "\t",
  "-",
  "]",
  "[",
  "^",
  "$",
  ".",
  "a.b",
  "\\",
  "a\\",
  "{",
  "}",
  "a{1}",
  "(",
  ")",
  "|",
  "*",
  "+",
  "?",
  "/",
  "x".repeat(30),
  "aaaa",
  "abab",
  "日本",
  "💥",
  "a💥b",
];
const REGEX_ATOMS = [
  "a",
  "b",
  "A",
  "1",
  "é",
  "É",
  "ß",
  "日",
  "💥",
  "_",
  "-",
  "]",
  "}",
  "{",
  "/",
  "\\.",
  "\\\\",
  "\\n",
  "\\t",
  "\\r",
  "\\v",
  "\\0",
  "\\cA",
  "\\x61",
  "\\u0062",
  "\\u00e9",
  "\\u{61}",
  "\\d",
  "\\D",
  "\\w",
  "\\W",
  "\\s",
  "\\S",
  "\\b",
  "\\B",
  ".",
  "^",
  "$",
  "[ab]",
  "[^a]",
  "[a-c]",
  "[^\\d]",
  "[\\w.]",
  "[\\W]",
  "[]",
  "[^]",
  "[-a]",
  "[a-]",
  "[\\]]",
  "[[:alpha:]]",
  "[\\b]",
  "[^\\n]",
  "[.]",
  "[$^]",
  "\\p{L}",
  "\\k<a>",
  "(a)",
  "(?:b)",
  "(?<n>a)",
  "(a)\\1",
  "(?=a)",
  "(?!b)",
  "(?<=a)",
  "(?<!b)",
  "(?i:a)",
  "***:a",
  "(?i)",
  "\\y",
  "\\m",
  "\\Z",
  "\\A",
  "\\e",
];
const REGEX_JOINS = [
  "",
  "|",
  "",
  "",
  "*",
  "+",
  "?",
  "{2}",
  "{1,2}",
  "{0,}",
  "*?",
  "+?",
  "{,2}",
  "{",
  "(",
  ")",
  "(?:",
  "^",
  "$",
];
const pattern = fc
  .array(fc.tuple(fc.constantFrom(...REGEX_ATOMS), fc.constantFrom(...REGEX_JOINS)), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.flat().join(""));

/** Matches a half of a surrogate pair. JavaScript matches both halves separately: see the differences in docs/reference/data-sources.md. */
const ASTRAL_CHARACTER = /[\ud800-\udfff]/;

describe("regular expressions", () => {
  let database: ConnectedClient;
  let client: Client;

  before(async () => {
    database = await connectedClient();
    ({ client } = database);
  });
  after(() => database.stop());

  function translateExpression(source: string, flags: string) {
    try {
      return translateRegExpToPostgres(source, flags, "where.a");
    } catch (error) {
      expect(error).to.be.instanceOf(ActionError);
      expect((error as ActionError).status).to.equal("REQUEST_INVALID");
      return null;
    }
  }

  const javaScriptExpression = (source: string, flags: string): RegExp | null => {
    try {
      return new RegExp(source, flags);
    } catch {
      return null;
    }
  };

  it(`find the same as in JavaScript, for ${4 * caseCount(500)} that were generated`, async () => {
    let compared = 0;
    for (const [flags, seed] of [
      ["", 1],
      ["i", 2],
      ["s", 3],
      ["is", 4],
    ] as const) {
      for (const source of fc.sample(pattern, { seed, numRuns: caseCount(500) })) {
        const ours = translateExpression(source, flags);
        const theirs = javaScriptExpression(source, flags);
        if (!theirs) expect(ours, source).to.equal(null);
        if (!ours || !theirs) continue;
        const texts =
          ASTRAL_CHARACTER.test(source) || /[.^DWSB!]/.test(source)
            ? TEXTS.filter((text) => !ASTRAL_CHARACTER.test(text))
            : TEXTS;
        const sign = ours.ignoreCase ? `${UNICODE_COLLATION} ~*` : 'COLLATE "C" ~';
        const { rows } = await client.query<{ found: boolean[] }>(
          `SELECT array_agg(one ${sign} $2 ORDER BY n) AS found FROM unnest($1::text[]) WITH ORDINALITY t(one, n)`,
          [texts, ours.pattern],
        );
        const expected = texts.filter((text) => theirs.test(text));
        expect(
          texts.filter((_, at) => rows[0]!.found[at]),
          `/${source}/${flags} as ${ours.pattern}`,
        ).to.deep.equal(expected);
        compared += 1;
      }
    }
    expect(compared).to.be.greaterThan(1.2 * caseCount(500));
  });
});
