/**
 * Tests statistics of a data source's queries. They contain no values, and their number has a limit. They name the indexes that PostgreSQL
 * really uses.
 */
import { expect } from "chai";
import type { StoredDataSource } from "../../../src/operations/data-sources/data-source-rows.js";
import {
  createEntryDocumentSource,
  type DataSourceKey,
  entryConditionSql,
} from "../../../src/operations/data-sources/entry-rows.js";
import { RecentQueries } from "../../../src/operations/data-sources/recent-queries.js";
import { UNRESTRICTED_ENTRY_SCOPE } from "../../../src/rules/entry-query/options.js";
import { orderBySql, parseOrder, sortKeySql } from "../../../src/rules/entry-query/order.js";
import { canIndexSpeedUpQueries, createQueryShape } from "../../../src/rules/entry-query/query-shape.js";
import { SqlStatement } from "../../../src/rules/entry-query/statement.js";
import { type Fixture, startFixture } from "./fixture.js";

const COLUMNS = ["Email", "Age", "Address", "Secret", "a.b"];

const sourceWith = (changes: Partial<StoredDataSource> = {}) =>
  ({ appId: 1, id: 1, columns: COLUMNS, hashedColumns: ["Secret"], indexes: [], ...changes }) as StoredDataSource;

function listRecentQueries(queries: readonly object[], source = sourceWith()) {
  const recent = new RecentQueries(() => 0);
  for (const query of queries) recent.record(source, query, 5);
  return recent.list(source);
}

describe("recent queries", () => {
  it("have columns and operators, and never a value", () => {
    const canary = "canary-7f3a";
    const queries = [
      { where: { Email: canary, Age: { $gt: 7, $lt: 9 } }, order: [["data.Age", "desc"], "createdAt"] },
      { where: { $or: [{ Email: { $regex: canary, $options: "i" } }, { $and: [{ Age: { $in: [canary] } }] }] } },
      { where: { "data.Address.zip": { $not: { $eq: canary } }, $not: { Email: { $elemMatch: { x: canary } } } } },
      { where: { $filters: [{ column: "Email", condition: "contains", value: canary }] } },
      { where: { "a\\.b": canary, Age: { [canary]: 1 } }, limit: 3, cursor: canary },
      { where: { Email: null }, aggregate: [{ $group: { _id: canary } }] },
      { where: {} },
      { limit: 5 },
    ];
    const found = listRecentQueries(queries);
    expect(JSON.stringify(found)).not.to.include("canary");
    expect(found.map(({ where, order, aggregate }) => [where, order, aggregate])).to.deep.equal([
      [["Email $eq"], [], true],
      [["Age $eq", "a\\.b $eq"], [], false],
      [["Email contains"], [], false],
      [["$not Email $elemMatch", "Address.zip $not"], [], false],
      [["$or Age $in", "$or Email $regex"], [], false],
      [["Age $gt", "Age $lt", "Email $eq"], ["Age DESC", "createdAt ASC"], false],
    ]);
  });

  it("are counted by kind, with the 95th percentile of the last durations", () => {
    const recent = new RecentQueries(() => 1_000);
    for (let n = 1; n <= 200; n += 1) recent.record(sourceWith(), { where: { Age: n } }, n);
    expect(recent.list(sourceWith())).to.deep.equal([
      {
        where: ["Age $eq"],
        order: [],
        aggregate: false,
        count: 200,
        p95Ms: 197,
        lastAt: "1970-01-01T00:00:01.000Z",
        index: null,
        suggestion: ["Age"],
      },
    ]);
  });

  it("keep the newest thirty kinds of a data source, of two hundred data sources, and none with unknown columns", () => {
    const many = COLUMNS.flatMap((column) =>
      ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne", "$exists"].map((operator) => ({
        where: { [column]: { [operator]: 1 } },
      })),
    ).filter(({ where }) => !("a.b" in where));
    expect(many.length).to.be.lessThan(30);
    const twice = [...many, ...many.map(({ where }) => ({ where, order: ["Age"] }))];
    const found = listRecentQueries(twice);
    expect(found.length).to.equal(30);
    expect(found[0]!.order).to.deep.equal(["Age ASC"]);
    expect(
      listRecentQueries([{ where: { Made: 1 } }, { order: ["Up"] }, { where: { $or: [{ Age: 1 }, { Made: 1 }] } }]),
    ).to.deep.equal([]);
    const wide = Object.fromEntries(Array.from({ length: 13 }, (_, n) => [`Address.${n}`, 1]));
    expect(listRecentQueries([{ where: wide }])).to.deep.equal([]);
    const recent = new RecentQueries();
    for (let id = 0; id <= 200; id += 1) recent.record(sourceWith({ id }), { where: { Age: 1 } }, 1);
    expect([0, 1, 200].map((id) => recent.list(sourceWith({ id })).length)).to.deep.equal([0, 1, 1]);
    expect(recent.list(sourceWith({ appId: 2, id: 1 }))).to.deep.equal([]);
  });

  it("name the index that they use, or one that would help, never of a hashed column", () => {
    const of = (query: object, indexes: unknown[] = []) => {
      const [found] = listRecentQueries([query], sourceWith({ indexes: indexes as never }));
      return [found!.index, found!.suggestion];
    };
    expect(of({ where: { Email: "x", Age: { $gt: 3 } } })).to.deep.equal([null, ["Email"]]);
    expect(of({ where: { Age: { $gt: 3 }, Email: { $in: ["x"] } } })).to.deep.equal([null, ["Email"]]);
    expect(of({ where: { Age: { $gt: 3 } } }, [{ columns: ["Age"], unique: true }])).to.deep.equal([["Age"], null]);
    expect(of({ where: { "data.Address.zip": 1 } }, ["Age", "Address.zip"])).to.deep.equal([["Address.zip"], null]);
    expect(of({ order: ["Age", ["Email", "ASC"]] })).to.deep.equal([null, ["Age", "Email"]]);
    expect(
      of({
        order: [
          ["Age", "DESC"],
          ["Email", "ASC"],
        ],
      }),
    ).to.deep.equal([null, null]);
    expect(of({ order: ["createdAt"] })).to.deep.equal([null, null]);
    expect(of({ where: { Email: { $iLike: "x" } } })).to.deep.equal([null, null]);
    expect(of({ where: { Secret: "x" } })).to.deep.equal([null, null]);
    expect(of({ where: { $or: [{ Email: "x" }] } }, ["Email"])).to.deep.equal([null, null]);
  });
});

describe("the index that is shown for a query", () => {
  let fixture: Fixture;
  let key: DataSourceKey;

  before(async () => {
    fixture = await startFixture();
    const many = Array.from({ length: 20_000 }, (_, n) => ({
      Email: `u${n}@x.org`,
      Age: n % 5_000,
      Address: { zip: n % 5_000 },
    }));
    key = await fixture.fill("Many", many);
    await fixture.indexes.apply(key, ["Email", "Address.zip", ["Age", "Email"]]);
  });
  after(() => fixture.stop());

  async function planOf({ where, order }: { where?: object; order?: unknown }): Promise<string> {
    const statement = new SqlStatement();
    const condition = entryConditionSql(key, { scope: UNRESTRICTED_ENTRY_SCOPE, where }, statement, "e");
    const source = createEntryDocumentSource("e", UNRESTRICTED_ENTRY_SCOPE.canSeeColumn);
    const keys = parseOrder(order, source);
    const sorted = orderBySql(
      keys,
      keys.map((sortKey) => sortKeySql(sortKey, source, statement)),
    );
    const sql = `EXPLAIN SELECT e.id FROM data_source_entry e WHERE ${condition} ${order ? `ORDER BY ${sorted} LIMIT 10` : ""}`;
    const lines = await fixture.pool.read<Record<string, string>>(1, sql, statement.values);
    return lines.map((line) => line["QUERY PLAN"]).join("\n");
  }

  for (const query of [
    { where: { Email: "u1@x.org" } },
    { where: { Email: { $in: ["u1@x.org", "u2@x.org"] } } },
    { where: { "Address.zip": { $gte: 10, $lt: 12 } } },
    { where: { Age: { $lte: 3 } } },
    { where: { $and: [{ Age: 3 }, { Name: "x" }] } },
    { where: { Email: { $ne: "u1@x.org" } } },
    { where: { Email: { $regex: "^u1@" } } },
    { where: { Email: { $iLike: "u1@" } } },
    { where: { Email: { $exists: true } } },
    { where: { Name: "x" } },
    { where: { "Address.street": "x" } },
    { where: { $nor: [{ Email: "u1@x.org" }] } },
    { where: { Email: { $not: { $eq: "u1@x.org" } } } },
    { where: { $filters: [{ column: "Email", condition: "==", value: "u1@x.org" }] } },
    { order: [["Email", "DESC"]] },
    { order: ["Age", "Email"] },
    { order: ["Age"] },
    {
      order: [
        ["Age", "ASC"],
        ["Email", "DESC"],
      ],
    },
    { order: ["Email", "Age"] },
    { where: { Name: "x" }, order: ["createdAt"] },
  ]) {
    it(`is the one that PostgreSQL uses: ${JSON.stringify(query)}`, async () => {
      const shape = createQueryShape(query, () => true)!;
      const isPredicted = [["Email"], ["Address.zip"], ["Age", "Email"]].some((columns) =>
        canIndexSpeedUpQueries(columns, shape),
      );
      const plan = await planOf(query);
      const usesIndex = /entry_ix_/.test(plan) && ("where" in query || !/Sort/.test(plan));
      expect(isPredicted, plan).to.equal(usesIndex);
    });
  }
});
