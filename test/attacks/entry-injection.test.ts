/**
 * Checks that no part of a query becomes SQL. Sends 2,000 generated texts, or 500 of them in `npm test`. Each text is in one of the
 * positions where callers can put text.
 */
import { expect } from "chai";
import fc from "fast-check";
import { isDatabaseUnavailable, rows } from "../../src/data/database.js";
import { ActionError } from "../../src/errors.js";
import type { DataSourceKey } from "../../src/operations/data-sources/entry-rows.js";
import { UNRESTRICTED_ENTRY_SCOPE } from "../../src/rules/entry-query/options.js";
import { sampleOf } from "../harness/samples.js";
import { answered, type Fixture, startFixture } from "../operations/data-sources/fixture.js";

const ATTEMPTS = 2_000;
const CONCURRENT_ATTEMPTS = 50;
const CANARY = "what app two keeps to itself";

const SQL_FRAGMENTS = [
  "'",
  "''",
  '"',
  "\\",
  "\\'",
  "`",
  "$",
  "$1",
  "$2::text",
  "$$",
  "$a$",
  ";",
  "--",
  "/*",
  "*/",
  ")",
  "(",
  "))",
  "]",
  "}",
  ",",
  "||",
  "::jsonb",
  "' OR 1=1 --",
  "') OR true --",
  '") OR ("1"="1',
  "'; DROP TABLE data_source_entry; --",
  "'; DELETE FROM data_source WHERE true; --",
  "' UNION SELECT data::text FROM data_source_entry --",
  "(SELECT doc FROM data_source_entry WHERE app_id = 2 LIMIT 1)",
  "' || (SELECT name FROM app) || '",
  "e.app_id",
  "app_id = 2",
  "entry.app_id",
  "entry.doc",
  "data_source_id",
  "d - 'x'",
  "pg_sleep(9)",
  "version()",
  "current_user",
  "{{user.Email}}",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "$eq",
  "$where",
  "$expr",
  "$$ROOT",
  "$$CURRENT",
  "a.b.c",
  "..",
  ".",
  "\\.",
  "data.",
  "null",
  "ASC; DROP TABLE app",
  "1; SELECT",
  "\n",
  "\u0000",
  "\ud800",
  "é",
  "💥",
  "%",
  "_",
  "\u2028",
  "ʼ",
  "＇",
  "\u02bc;--",
];
const payload = fc
  .array(fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...SQL_FRAGMENTS) }, fc.string({ maxLength: 4 })), {
    minLength: 1,
    maxLength: 3,
  })
  .map((parts) => parts.join(""));

const QUERY_POSITIONS: readonly ((text: string) => object)[] = [
  (text) => ({ where: { [text]: 1 } }),
  (text) => ({ where: { [`Name.${text}`]: { $exists: true } } }),
  (text) => ({ where: { Name: { [text]: 1 } } }),
  (text) => ({ where: { Name: { [`$${text}`]: 1 } } }),
  (text) => ({ where: { [`$${text}`]: [{ Name: 1 }] } }),
  (text) => ({ where: { Name: text } }),
  (text) => ({ where: { Name: { $in: [text, { [text]: text }] } } }),
  (text) => ({ where: { Name: { $gt: text, $not: { $lt: text } } } }),
  (text) => ({ where: { Name: { $regex: text } } }),
  (text) => ({ where: { Name: { $regex: "a", $options: text } } }),
  (text) => ({ where: { Name: { $iLike: text } } }),
  (text) => ({ where: { Name: { $type: text } } }),
  (text) => ({ where: { Tags: { $elemMatch: { [text]: text } } } }),
  (text) => ({ where: { $filters: [{ column: text, condition: "==", value: text }] } }),
  (text) => ({ where: { $filters: [{ column: "Name", condition: text, value: text }] } }),
  (text) => ({ where: { $filters: [{ column: "Name", condition: "between", value: [text, text] }] } }),
  (text) => ({ where: { $filters: [{ column: "Name", condition: "oneof", value: text }] } }),
  (text) => ({ order: [[text, "ASC"]] }),
  (text) => ({ order: [["Name", text]] }),
  (text) => ({ order: text }),
  (text) => ({ limit: text }),
  (text) => ({ offset: text }),
  (text) => ({ attributes: [text] }),
  (text) => ({ cursor: text }),
  (text) => ({ cursor: Buffer.from(JSON.stringify({ f: text, k: [text, text], r: 0 })).toString("base64url") }),
  (text) => ({ join: { [text]: { dataSourceName: "People", on: { Name: "Name" } } } }),
  (text) => ({ join: { J: { dataSourceName: text, on: { Name: "Name" } } } }),
  (text) => ({ join: { J: { dataSourceId: text, on: { Name: "Name" } } } }),
  (text) => ({ join: { J: { dataSourceName: "People", on: { [text]: text }, required: true } } }),
  (text) => ({ join: { J: { dataSourceName: "People", on: { Name: text }, sum: text } } }),
  (text) => ({
    join: { J: { dataSourceName: "People", on: { Name: "Name" }, where: { [text]: text }, order: [[text, "DESC"]] } },
  }),
  (text) => ({ aggregate: [{ [text]: text }] }),
  (text) => ({ aggregate: [{ $match: { [text]: text } }, { $sort: { [text]: 1 } }] }),
  (text) => ({ aggregate: [{ $project: { [text]: `$${text}`, x: { $convertToNumber: `$${text}` } } }] }),
  (text) => ({ aggregate: [{ $project: { [text]: 0 } }] }),
  (text) => ({ aggregate: [{ $group: { _id: `$${text}`, [text]: { $push: `$${text}` } } }] }),
  (text) => ({ aggregate: [{ $group: { _id: { [text]: text }, x: { [text]: 1 } } }] }),
  (text) => ({ aggregate: [{ $count: text }] }),
];

describe("SQL in a query", () => {
  let fixture: Fixture;
  let people: DataSourceKey;

  before(async () => {
    fixture = await startFixture({ timeoutMs: 2_000 });
    people = await fixture.fill("People", [{ Name: "Ann", Tags: [{ a: 1 }] }, { Name: "Bob" }]);
    await fixture.fill("Theirs", [{ Name: CANARY }], 2);
  });
  after(() => fixture.stop());

  const readAllRows = () =>
    rows(
      fixture.db,
      `SELECT (SELECT json_agg(e ORDER BY id) FROM data_source_entry e)::text AS entries, (SELECT json_agg(s ORDER BY id) FROM data_source s)::text AS sources,
              (SELECT json_agg(a ORDER BY id) FROM app a)::text AS apps, (SELECT count(*) FROM pg_class) AS relations`,
    );

  it("is never executed: it changes nothing, reads nothing of another app, and breaks no statement", async () => {
    const before = await readAllRows();
    const texts = sampleOf(fc.sample(payload, { seed: 7, numRuns: ATTEMPTS }), 0, 4);
    let refused = 0;
    async function attempt(text: string, at: number): Promise<void> {
      const query = QUERY_POSITIONS[at % QUERY_POSITIONS.length]!(text);
      const answer: unknown = await fixture.entryReader
        .find(people, query, fixture.readAccess())
        .catch((error: unknown) => error);
      if (!(answer instanceof Error)) {
        expect(JSON.stringify(answered(answer)), JSON.stringify(query)).not.to.include(CANARY);
        return;
      }
      // An error of the database, such as an SQL syntax error, would not be an ActionError.
      expect(answer, JSON.stringify(query)).to.be.instanceOf(ActionError);
      expect((answer as ActionError).status).to.be.oneOf(["REQUEST_INVALID", "DATA_SOURCE_NOT_FOUND"]);
      expect((answer as ActionError).message).not.to.include(CANARY);
      refused += 1;
    }
    for (let at = 0; at < texts.length; at += CONCURRENT_ATTEMPTS) {
      await Promise.all(texts.slice(at, at + CONCURRENT_ATTEMPTS).map((text, n) => attempt(text, at + n)));
    }
    expect(refused).to.be.within(texts.length / 10, (texts.length * 9) / 10);
    expect(await readAllRows()).to.deep.equal(before);
  });

  it("is never executed as a column of distinct values", async () => {
    for (const text of sampleOf(fc.sample(payload, { seed: 8, numRuns: 200 }), 0, 4)) {
      const answer: unknown = await fixture.entryReader
        .distinct(people, [text], UNRESTRICTED_ENTRY_SCOPE)
        .catch((error: unknown) => error);
      if (answer instanceof Error) expect(answer, text).to.be.instanceOf(ActionError);
      else expect(JSON.stringify(answered(answer))).not.to.include(CANARY);
    }
  });

  it("is never executed as a column of an index, whose definition takes no parameters", async () => {
    const before = await readAllRows();
    for (const text of fc.sample(payload, { seed: 9, numRuns: 8 })) {
      const fault: unknown = await fixture.indexes
        .apply(people, [text, [text, "Name"]])
        .catch((error: unknown) => error);
      if (fault !== undefined) expect(fault, text).to.be.instanceOf(ActionError);
    }
    await fixture.indexes.drop(people);
    expect(await readAllRows()).to.deep.equal(before);
  });

  it("could not write even if it were executed: the connections for reads are read-only", async () => {
    const write = fixture.pool.read(1, "DELETE FROM data_source_entry RETURNING id", []);
    const error: unknown = await write.catch((reason: unknown) => reason);
    expect((error as { code: string }).code).to.equal("25006");
    expect(isDatabaseUnavailable(error)).to.equal(false);
  });
});
