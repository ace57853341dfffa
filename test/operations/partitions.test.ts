import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { listPartitions, type Partition } from "../../src/data/partitions.js";
import { readTables } from "../../src/operations/backup/tables.js";
import { recordChange } from "../../src/operations/records/audit.js";
import { Partitions } from "../../src/operations/upkeep/partitions.js";
import { createClient } from "../../src/postgres.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

const TABLES = ["execution_log", "run", "console_line", "run_search", "log_event", "audit_entry"];

describe("partitions", () => {
  let database: ConnectedDatabase;
  let db: Db;

  beforeEach(async () => {
    database = await connectedDatabase(6);
    ({ db } = database);
    await db.query(
      "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a')",
    );
  });
  afterEach(() => database.stop());

  const partitions = (days = 30) => new Partitions({ db, days });
  const write = (table: string, number: number) =>
    db.query(`SELECT setval('${table}_id_seq', $1)`, [number]).then(() =>
      db.query(
        table === "run"
          ? `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at)
             VALUES (1, 1, 'master', 'manual', '{}', 'completed', now())`
          : `INSERT INTO execution_log (app_id, task_id, run_id, type, data) VALUES (1, 1, 1, 'app.task.completed', '{}')`,
      ),
    );

  /** Expects that the partitions cover all IDs: each begins where the previous one ends, and the last has no upper bound. */
  function expectPartitionsWithoutGaps(all: readonly Partition[]): void {
    expect(all[0]!.low).to.equal(null);
    expect(all.at(-1)!.high).to.equal(null);
    for (const [index, { low }] of all.slice(1).entries()) expect(low).to.equal(all[index]!.high);
  }

  it("are prepared for two days of rows in advance, in every table, without a gap", async () => {
    await write("run", 5_000_000);
    await write("execution_log", 5_000_000);
    await partitions().createPartitionsAhead();
    for (const table of TABLES) expectPartitionsWithoutGaps(await listPartitions(db, table));
    for (const table of ["run", "console_line", "run_search", "execution_log"]) {
      expect((await listPartitions(db, table)).at(-1)!.low, table).to.be.at.least(5_200_000);
    }
    const before = await Promise.all(TABLES.map((table) => listPartitions(db, table)));
    await partitions().createPartitionsAhead();
    expect(await Promise.all(TABLES.map((table) => listPartitions(db, table)))).to.deep.equal(before);
  });

  it("take a row with any number beyond them", async () => {
    await write("run", 900_000_000);
    expect(await db.query("SELECT id FROM run")).to.deep.equal([{ id: 900_000_001 }]);
    await partitions().createPartitionsAhead();
    expect(await db.query("SELECT id FROM run")).to.deep.equal([{ id: 900_000_001 }]);
    expectPartitionsWithoutGaps(await listPartitions(db, "run"));
  });

  it("are dropped as a whole when their newest row is too old, and never with a run that has not ended", async () => {
    const [first] = await listPartitions(db, "run");
    await write("run", 10);
    await write("execution_log", 10);
    await db.query(`
      INSERT INTO console_line (run_id, seq, level, at, text) SELECT id, 0, 'log', now(), 'x' FROM run;
      INSERT INTO run_search (run_id, words) SELECT id, '' FROM run;
      UPDATE run SET queued_at = now() - interval '32 days';
      UPDATE execution_log SET created_at = now() - interval '29 days'`);
    await write("run", first!.high! + 10);
    await write("execution_log", first!.high! + 10);
    await db.query(`INSERT INTO run (id, app_id, action_id, copy, trigger, payload, state, queued_at)
      VALUES (5, 1, 1, 'master', 'manual', '{}', 'queued', now() - interval '40 days')`);
    const counts = () =>
      Promise.all(
        ["execution_log", "run", "console_line", "run_search"].map(async (table) =>
          Number((await db.query(`SELECT count(*) AS n FROM ${table}`))[0].n),
        ),
      );
    expect(await partitions().dropOldPartitions()).to.equal(0);
    expect(await counts()).to.deep.equal([2, 3, 1, 1]);
    await db.query("UPDATE run SET state = 'cancelled', finished_at = now() WHERE id = 5");
    expect(await partitions().dropOldPartitions()).to.equal(1);
    expect(await counts()).to.deep.equal([2, 1, 0, 0]);
    await db.query("UPDATE execution_log SET created_at = now() - interval '31 days' WHERE id < 100");
    expect(await partitions().dropOldPartitions()).to.equal(1);
    expect(await counts()).to.deep.equal([1, 1, 0, 0]);
    for (const table of TABLES)
      expectPartitionsWithoutGaps(
        (await listPartitions(db, table)).with(0, { ...(await listPartitions(db, table))[0]!, low: null }),
      );
  });

  it("that are detached are dropped later if a reader delayed this, and are in no backup", async () => {
    const [first] = await listPartitions(db, "execution_log");
    await write("execution_log", 10);
    await db.query("UPDATE execution_log SET created_at = now() - interval '40 days'");
    await write("execution_log", first!.high! + 10);
    const left = async () =>
      (await db.query("SELECT relname FROM pg_class WHERE relname LIKE 'DROPPED%' AND relkind = 'r'")).length;
    // Another transaction still reads the table after it was detached, so that the service cannot drop it at once.
    const reader = db.createQueryRunner();
    await reader.startTransaction();
    const watched = Object.create(db, {
      query: {
        value: async (sql: string, values: unknown[]) => {
          if (sql.includes("DROP TABLE")) await reader.query(`SELECT count(*) FROM "DROPPED_${first!.name}"`);
          return db.query(sql, values);
        },
      },
    }) as Db;
    expect(await new Partitions({ db: watched, days: 30 }).dropOldPartitions()).to.equal(1);
    expect(await left()).to.equal(1);
    expect((await db.query("SELECT count(*)::int AS n FROM execution_log"))[0].n).to.equal(1);
    const client = createClient(database.url);
    await client.connect();
    const backedUpTables = (await readTables(client)).map(({ name }) => name).filter((name) => /dropped/i.test(name));
    await client.end();
    expect(backedUpTables).to.deep.equal([]);
    await reader.commitTransaction();
    await reader.release();
    expect(await partitions().dropOldPartitions()).to.equal(0);
    expect(await left()).to.equal(0);
  });

  it("are detached in one step, so that others wait, and plan their statements again, only once", async () => {
    for (let day = 1; day <= 12; day += 1) {
      await write("execution_log", day * 250_000);
      await partitions().createPartitionsAhead();
    }
    await db.query("UPDATE execution_log SET created_at = now() - interval '40 days'");
    const old = (await listPartitions(db, "execution_log")).length;
    let steps = 0;
    const watched = Object.create(db, {
      transaction: {
        value: (work: (manager: unknown) => Promise<unknown>) => {
          steps += 1;
          return db.transaction(work);
        },
      },
    }) as Db;
    const dropped = await new Partitions({ db: watched, days: 30 }).dropOldPartitions();
    expect(dropped).to.be.within(20, 29);
    expect(steps).to.equal(1);
    expect(await listPartitions(db, "execution_log")).to.have.length(old - dropped);
  });

  it("are created beside writers and changes of apps: no transaction is ended for it", async () => {
    let over = false;
    let written = 0;
    const writer = async () => {
      while (!over) {
        await db.transaction(async (manager) => {
          await manager.query("SELECT FROM app WHERE id = 1 FOR UPDATE");
          await recordChange(manager, null, { appId: 1, type: "x", data: {} });
          await manager.query("UPDATE app SET name = 'b' WHERE id = 1");
        });
        written += 1;
      }
    };
    const writers = Promise.all([writer(), writer(), writer()]);
    writers.catch(() => undefined);
    for (let day = 0; day < 5; day += 1) {
      await db.query("SELECT setval('audit_entry_id_seq', (SELECT last_value + 200000 FROM audit_entry_id_seq))");
      await partitions().createPartitionsAhead();
    }
    over = true;
    await writers;
    expect(written).to.be.above(0);
    expect((await db.query("SELECT count(*)::int AS n FROM audit_entry"))[0].n).to.equal(written);
    expect(await listPartitions(db, "audit_entry")).to.have.length.above(4);
  });
});
