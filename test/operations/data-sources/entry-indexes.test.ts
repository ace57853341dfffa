/** Tests indexes that editors define: `where` and `order` use them, results do not change, and they are removed with their data source. */
import { expect } from "chai";
import { rows } from "../../../src/data/database.js";
import { ActionError } from "../../../src/errors.js";
import { INDEXES_PER_APP } from "../../../src/operations/data-sources/entry-indexes.js";
import {
  createEntryDocumentSource,
  type DataSourceKey,
  entryConditionSql,
} from "../../../src/operations/data-sources/entry-rows.js";
import { validateIndexes } from "../../../src/operations/data-sources/index-definitions.js";
import { UNRESTRICTED_ENTRY_SCOPE } from "../../../src/rules/entry-query/options.js";
import { orderBySql, parseOrder, sortKeySql } from "../../../src/rules/entry-query/order.js";
import { SqlStatement } from "../../../src/rules/entry-query/statement.js";
import { until } from "../../harness/until.js";
import { dataOf, type Fixture, startFixture } from "./fixture.js";

describe("indexes on entries", () => {
  let fixture: Fixture;
  let key: DataSourceKey;

  before(async () => {
    fixture = await startFixture();
    const many = Array.from({ length: 20_000 }, (_, n) => ({
      Email: `u${n}@x.org`,
      Age: n % 90,
      Address: { zip: n % 5_000 },
    }));
    key = await fixture.fill("Many", [...many, { Email: ["u7@x.org", "other"] }, { Email: null }, {}]);
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
  const found = async (where: object) => dataOf(await fixture.entryReader.find(key, { where }, fixture.readAccess()));
  const names = () =>
    rows<{ name: string }>(
      fixture.db,
      `SELECT relname AS name FROM pg_class WHERE relname LIKE 'entry\\_ix%'
       UNION ALL SELECT stxname FROM pg_statistic_ext WHERE stxname LIKE 'entry\\_ix%'`,
    );

  const waitingLocks = async () =>
    (await rows<{ count: number }>(fixture.db, "SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted"))[0]!
      .count;

  it("are used for where and order, with the same results as without them", async () => {
    const wheres = [
      { Email: "u7@x.org" },
      { Email: { $in: ["u1@x.org", "other"] } },
      { "Address.zip": { $gte: 10, $lt: 12 } },
      { Email: null },
    ];
    const before = await Promise.all(wheres.map(found));
    expect(before.map(({ length }) => length)).to.deep.equal([2, 2, 8, 2]);
    await fixture.indexes.apply(key, ["Email", "data.Address.zip", ["Age", "Email"]]);
    expect(await fixture.indexes.readStates(key, ["Email", "data.Address.zip", ["Age", "Email"], "Age"])).to.deep.equal(
      ["ready", "ready", "ready", "missing"],
    );
    expect(await Promise.all(wheres.map(found))).to.deep.equal(before);
    expect(await planOf({ where: wheres[0]! })).to.match(/Index Scan on entry_ix_.*\n.*Index Cond: .*u7@x\.org/);
    expect(await planOf({ where: wheres[1]! })).to.include("Index Cond: (COALESCE((doc -> 'Email'::text)");
    expect(await planOf({ where: wheres[2]! })).to.include(
      "Index Cond: ((COALESCE(((doc -> 'Address'::text) -> 'zip'::text)",
    );
    expect(await planOf({ order: [["Email", "ASC"]] }))
      .to.match(/Index Scan using entry_ix_/)
      .and.not.include("Sort");
    expect(
      await planOf({
        order: [
          ["Age", "DESC"],
          ["Email", "DESC"],
        ],
      }),
    )
      .to.match(/Index Scan Backward using entry_ix_/)
      .and.not.include("Sort");
    expect(await planOf({ where: { Name: "x" } })).not.to.include("entry_ix_");
  });

  it("are removed when they are no longer defined, and all with their data source", async () => {
    await fixture.indexes.apply(key, ["Email"]);
    expect(await names()).to.have.length(2);
    await fixture.indexes.drop(key);
    expect(await names()).to.deep.equal([]);
  });

  it("are left out if a value is too long for them, and block nothing", async () => {
    const long = await fixture.fill("Long", [
      { Text: Array.from({ length: 3_000 }, (_, n) => n.toString(36)).join(" ") },
    ]);
    await fixture.indexes.apply(long, ["Text", "Other"]);
    expect(await fixture.indexes.readStates(long, ["Text", "Other"])).to.deep.equal(["missing", "ready"]);
    await fixture.indexes.drop(long);
  });

  it("that no definition has are removed when a process starts, and missing ones are created", async () => {
    const wish = { columns: ["Email"], unique: true };
    const [left, kept] = [await fixture.fill("Left", [{ Email: "a" }]), await fixture.fill("Kept", [{ Email: "a" }])];
    await fixture.indexes.apply(left, [wish]);
    await rows(fixture.db, "UPDATE data_source SET indexes = $2 WHERE id = $1", [kept.id, JSON.stringify([wish])]);
    await fixture.indexes.reconcile();
    expect(await fixture.indexes.readStates(left, [wish])).to.deep.equal(["missing"]);
    expect(await fixture.indexes.readStates(kept, [wish])).to.deep.equal(["ready"]);
    expect((await names()).filter(({ name }) => name.startsWith(`entry_ix_1_${left.id}_`))).to.deep.equal([]);
  });

  it("leave no statistics: those that could not be dropped are removed when a process starts", async () => {
    const { id } = await fixture.fill("Statistics", [{ Email: "a" }]);
    await fixture.db.query(`CREATE STATISTICS entry_ix_1_${id}_email_s0 ON (doc->'Email') FROM data_source_entry`);
    await fixture.indexes.reconcile();
    expect((await names()).filter(({ name }) => name.startsWith(`entry_ix_1_${id}_`))).to.deep.equal([]);
  });

  it("are removed with their statistics as soon as no query uses the entries", async () => {
    const { id } = await fixture.fill("Busy", [{ Email: "a" }]);
    await fixture.db.query(`CREATE STATISTICS entry_ix_1_${id}_email_s0 ON (doc->'Email') FROM data_source_entry`);
    let removed: Promise<void> | undefined;
    await fixture.db.transaction(async (manager) => {
      await manager.query("SELECT 1 FROM data_source_entry LIMIT 1");
      removed = fixture.indexes.drop({ appId: 1, id });
      // The first attempt fails at its lock timeout. Its failed transaction must not block the next attempt.
      await until(async () => (await waitingLocks()) > 0);
    });
    await removed;
    expect((await names()).filter(({ name }) => name.startsWith(`entry_ix_1_${id}_`))).to.deep.equal([]);
  });

  it("have a maximum number, and need columns", async () => {
    const refusal = (requestedIndexes: unknown) => {
      try {
        return validateIndexes(requestedIndexes);
      } catch (error) {
        return (error as ActionError).message;
      }
    };
    expect(refusal(["a", "b", "c", "d", "e", "f"])).to.equal(
      "indexes must be an array of at most 5 indexes, each a column path, an array of column paths or {columns, unique} (got an array of 6)",
    );
    expect(refusal([["a", "b", "c", "d"]])).to.include("indexes[0] must be an index of 1 to 3 columns");
    expect(refusal(["entry.id"])).to.include(
      "indexes[0] must be the path of a column in the data of entries; fields of the entry itself, such as id, need no index",
    );
    expect(refusal([5])).to.include("indexes[0] must be a text");
    expect(refusal(["a", ["b", "c.d"]])).to.deep.equal(["a", ["b", "c.d"]]);
  });

  it("of one app have a maximum number", async () => {
    for (let id = 1; id <= INDEXES_PER_APP; id += 1) {
      await fixture.db.query(
        `CREATE INDEX entry_ix_1_9_${id} ON data_source_entry (id) WHERE app_id = 1 AND data_source_id = 9 AND id = ${id}`,
      );
    }
    const fault: unknown = await fixture.indexes.apply(key, ["Email"]).catch((error: unknown) => error);
    expect(fault).to.be.instanceOf(ActionError);
    expect((fault as ActionError).message).to.equal(
      `an app can have at most ${INDEXES_PER_APP} indexes on its data sources (got ${INDEXES_PER_APP + 3}); remove indexes that you do not need`,
    );
  });
});
