import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { EXACT_COUNT_MAX_ROWS } from "../../src/limits.js";
import { listAuditEntries, recordChange } from "../../src/operations/records/audit.js";
import { ExecutionLogs } from "../../src/operations/records/execution-logs.js";
import { Partitions } from "../../src/operations/upkeep/partitions.js";
import { createRowCursor } from "../../src/rules/page.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { countReadings } from "../harness/plans.js";

/** Number of entries of another app in each partition. A good query plan does not read these entries. */
const NEIGHBOUR_ENTRIES = 100;

describe("pages of a log", () => {
  let database: ConnectedDatabase;
  let db: Db;

  before(async () => {
    database = await connectedDatabase(2);
    ({ db } = database);
    await db.query(
      "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b')",
    );
  });
  after(() => database.stop());

  const add = (appId: number, entries: number) =>
    db.query(
      `INSERT INTO execution_log (app_id, task_id, run_id, type, data)
       SELECT $1, n % 2, n, CASE WHEN n % 5 = 0 THEN 'app.task.failed' ELSE 'app.task.completed' END, '{}'
         FROM generate_series(1, $2::int) AS n`,
      [appId, entries],
    );

  it("follow each other by their cursor: each entry once, whatever is written in the meantime", async () => {
    const executionLogs = new ExecutionLogs(db);
    await add(1, 25);
    const seen: number[] = [];
    let cursor: string | undefined;
    do {
      const { logs, nextCursor } = await executionLogs.list(1, { limit: 10, ...(cursor && { cursor }) });
      seen.push(...logs.map(({ id }) => id));
      cursor = nextCursor;
      await add(1, 3);
    } while (cursor);
    expect(seen).to.have.length(25);
    expect(seen).to.deep.equal([...new Set(seen)].sort((a, b) => b - a));
  });

  it("follow each other within a filter, and the last one has no cursor", async () => {
    const executionLogs = new ExecutionLogs(db);
    await db.query("DELETE FROM execution_log");
    await add(1, 30);
    const options = { where: { type: "app.task.failed", data: { taskId: 1 } } };
    const first = await executionLogs.list(1, { ...options, limit: 2 });
    const second = await executionLogs.list(1, { ...options, limit: 2, cursor: first.nextCursor });
    expect([first.count, first.logs.length, second.logs.length]).to.deep.equal([3, 2, 1]);
    expect(second).to.not.have.property("nextCursor");
    expect(first).to.not.have.property("countIsExact");
  });

  it("reject an invented cursor, and name it", async () => {
    const executionLogs = new ExecutionLogs(db);
    for (const cursor of [
      "5",
      "",
      "after 5",
      createRowCursor(5).slice(1),
      5,
      {},
      Buffer.from("after 05").toString("base64url"),
    ]) {
      const refusal = await executionLogs.list(1, { cursor }).then(
        () => null,
        (error: Error) => error,
      );
      expect(refusal?.message, JSON.stringify(cursor)).to.equal(
        "cursor must be a cursor from an earlier page of this list",
      );
    }
  });

  it("have an exact total up to 10,000, and an estimate beyond, marked as one", async () => {
    const executionLogs = new ExecutionLogs(db);
    await db.query("DELETE FROM execution_log");
    await add(1, EXACT_COUNT_MAX_ROWS);
    await add(2, EXACT_COUNT_MAX_ROWS * 2);
    await db.query("ANALYZE execution_log");
    const exact = await executionLogs.list(1, { limit: 1 });
    expect(exact.count).to.equal(EXACT_COUNT_MAX_ROWS);
    expect(exact).to.not.have.property("countIsExact");
    const about = await executionLogs.list(2, { limit: 1 });
    expect(about.countIsExact).to.equal(false);
    expect(about.count).to.be.within(EXACT_COUNT_MAX_ROWS * 1.5, EXACT_COUNT_MAX_ROWS * 2.5);
    expect((await executionLogs.list(2, { limit: 1, where: { type: "app.task.failed" } })).count).to.equal(
      EXACT_COUNT_MAX_ROWS * 0.4,
    );
  });

  it("read little more than they return, however many entries and partitions there are", async () => {
    await db.query("DELETE FROM execution_log");
    const middles: number[] = [];
    for (let day = 0; day < 4; day += 1) {
      await add(1, 6_000);
      await add(2, NEIGHBOUR_ENTRIES);
      middles.push((await db.query("SELECT last_value::int AS id FROM execution_log_id_seq"))[0].id);
      await db.query("SELECT setval('execution_log_id_seq', last_value + 200000) FROM execution_log_id_seq");
      await new Partitions({ db, days: 30 }).createPartitionsAhead();
    }
    await db.query("VACUUM ANALYZE execution_log");
    const pages = {
      "the first page": {},
      "a page behind a cursor": { cursor: createRowCursor(middles[1]!) },
      "the last page": { cursor: createRowCursor(100) },
      "one action": { id: 1 },
      failures: { where: { type: "app.task.failed" } },
    };
    for (const [name, options] of Object.entries(pages)) {
      const readings = await countReadings(db, (watched) =>
        new ExecutionLogs(watched).list(1, { limit: 20, ...options }),
      );
      const [counting, ...others] = readings;
      expect(counting!.text, name).to.match(/^SELECT count/);
      expect(
        others.map(({ read }) => read),
        name,
      ).to.satisfy((all: number[]) => all.length > 0 && all.every((read) => read < 1_000));
      const neighbours = await countReadings(db, (watched) =>
        new ExecutionLogs(watched).list(2, { limit: 20, ...options }),
      );
      expect(Math.max(...neighbours.map(({ read }) => read)), `${name}, beside a large app`).to.be.below(1_000);
    }
  });

  it("of the audit log also follow each other by their cursor", async () => {
    for (let at = 0; at < 5; at += 1) await recordChange(db, null, { appId: 1, type: `t${at}`, data: {} });
    const first = await listAuditEntries(db, 1, { limit: 3 });
    const { nextCursor, ...others } = first.pagination;
    expect(others).to.deep.equal({ total: 5, hasMore: true });
    const second = await listAuditEntries(db, 1, { limit: 3, cursor: nextCursor! });
    expect(second.entries.map(({ type }) => type)).to.deep.equal(["t1", "t0"]);
    expect(second.pagination).to.deep.equal({ total: 5, hasMore: false });
  });
});
