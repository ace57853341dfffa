/** Checks that a hidden column behaves in each read as if no entry had this column. */
import { expect } from "chai";
import fc from "fast-check";
import { EntryExport } from "../../src/operations/data-sources/entry-export.js";
import type { DataSourceKey } from "../../src/operations/data-sources/entry-rows.js";
import { UNRESTRICTED_ENTRY_SCOPE, type VisibleEntryScope } from "../../src/rules/entry-query/options.js";
import { sampleOf } from "../harness/samples.js";
import { answered, type Fixture, startFixture } from "../operations/data-sources/fixture.js";
import { aggregate, document, path, where } from "../rules/entry-query/generated.js";

const HIDDEN_COLUMN = "a";
const QUERY_COUNT = 150;
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value));
const withoutHiddenColumn = ({ [HIDDEN_COLUMN]: _, ...rest }: Record<string, unknown>) => rest;

describe("a column that the caller may not read", () => {
  let fixture: Fixture;
  let whole: DataSourceKey;
  let without: DataSourceKey;
  const scope: VisibleEntryScope = { canSeeColumn: (column) => column !== HIDDEN_COLUMN, filter: null };

  before(async () => {
    fixture = await startFixture();
    const documents = plain(fc.sample(document, { seed: 41, numRuns: 60 })).map((generated) => ({
      ...generated,
      k: "same",
    }));
    whole = await fixture.fill("Whole", documents);
    without = await fixture.fill("Without", documents.map(withoutHiddenColumn));
  });
  after(() => fixture.stop());

  /** Returns two results of the query: for a caller who cannot see the column, and for a data source without this column. */
  async function findInBoth(query: object): Promise<[unknown, unknown]> {
    const answer = (key: DataSourceKey, seen: VisibleEntryScope) =>
      fixture.entryReader.find(key, query, fixture.readAccess(seen)).then(
        (found) => plain(answered(found)),
        (error: Error) => error.message,
      );
    return [
      stripVolatileValues(await answer(whole, scope)),
      stripVolatileValues(await answer(without, UNRESTRICTED_ENTRY_SCOPE)),
    ];
  }

  /** Replaces values that differ between the two data sources, such as IDs and times, by the names of their types. */
  function stripVolatileValues(found: unknown): unknown {
    return JSON.parse(
      JSON.stringify(found, (key, value) =>
        ["id", "dataSourceId", "createdAt", "updatedAt", "order", "next", "prev"].includes(key) ? typeof value : value,
      ),
    );
  }

  it("changes no list, with any where, order, attributes and cursor", async () => {
    const query = fc.record(
      {
        where,
        order: fc.array(fc.tuple(path, fc.constantFrom("ASC", "DESC")), { minLength: 1, maxLength: 2 }),
        attributes: fc.array(fc.constantFrom("a", "b", "tags"), { maxLength: 2 }),
        cursor: fc.constant(true),
        includePagination: fc.constant(true),
        limit: fc.integer({ min: 1, max: 70 }),
      },
      { requiredKeys: [] },
    );
    for (const generated of sampleOf(plain(fc.sample(query, { seed: 42, numRuns: QUERY_COUNT })), 0, 8)) {
      const [hidden, absent] = await findInBoth(generated);
      expect(hidden, JSON.stringify(generated)).to.deep.equal(absent);
    }
  });

  it("changes no aggregate", async () => {
    for (const stages of sampleOf(plain(fc.sample(aggregate, { seed: 43, numRuns: QUERY_COUNT })), 0, 8)) {
      const [hidden, absent] = await findInBoth({ aggregate: stages });
      expect(hidden, JSON.stringify(stages)).to.deep.equal(absent);
    }
  });

  it("changes no join, on either side", async () => {
    const showOptions = fc.oneof(
      fc.constant({}),
      fc.constant({ has: true }),
      fc.constant({ count: true }),
      path.map((column) => ({ sum: column })),
      fc.tuple(where, path).map(([condition, column]) => ({ where: condition, order: [[column, "DESC"]] })),
    );
    const join = fc.tuple(path, fc.oneof(path, fc.constant("k")), showOptions, fc.boolean());
    for (const [left, right, shown, required] of sampleOf(
      plain(fc.sample(join, { seed: 44, numRuns: QUERY_COUNT })),
      0,
      8,
    )) {
      const options = { on: { [left]: right }, required, ...shown };
      const ask = (dataSourceName: string) => ({ join: { J: { dataSourceName, ...options } }, limit: 20 });
      const answer = async (key: DataSourceKey, name: string, seen: VisibleEntryScope) =>
        stripVolatileValues(plain(answered(await fixture.entryReader.find(key, ask(name), fixture.readAccess(seen)))));
      const hidden = await answer(whole, "Whole", scope);
      expect(hidden, JSON.stringify(options)).to.deep.equal(await answer(without, "Without", UNRESTRICTED_ENTRY_SCOPE));
    }
  });

  it("has no distinct values, and is in no export", async () => {
    const values = await fixture.entryReader.distinct(whole, [HIDDEN_COLUMN, "a.b", "data.a", "k"], scope);
    expect(answered(values)).to.deep.equal({ a: [], "a.b": [], "data.a": [], k: ["same"] });
    const entryExport = new EntryExport(fixture.pool);
    for (const format of ["csv", "json", "jsonl"] as const) {
      const written = async (key: DataSourceKey, seen: VisibleEntryScope, columns: string[]) => {
        let text = "";
        for await (const part of entryExport.exportRows(key, columns, seen, { format, spreadsheet: false }))
          text += part;
        return text;
      };
      const all = ["a", "b", "c", "tags", "k"];
      expect(await written(whole, scope, all)).to.equal(await written(without, UNRESTRICTED_ENTRY_SCOPE, all.slice(1)));
      expect((await written(whole, scope, all)).length).to.be.greaterThan(1_000);
    }
  });

  it("is still available to the filter of a rule, which the caller does not write", async () => {
    const filteredScope: VisibleEntryScope = { ...scope, filter: { a: { $exists: true } } };
    const [seen, all] = [
      await fixture.entryReader.count(whole, null, filteredScope),
      await fixture.entryReader.count(whole, null, scope),
    ];
    expect(seen.total).to.be.within(1, all.total - 1);
    expect((await fixture.entryReader.count(without, null, filteredScope)).total).to.equal(0);
  });
});
