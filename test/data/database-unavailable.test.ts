import { expect } from "chai";
import { type Db, isDatabaseUnavailable, openDatabase, queryPreparedRows } from "../../src/data/database.js";
import { countLostConnections } from "../../src/postgres.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { until } from "../harness/until.js";

describe("a lost connection to the database", () => {
  let database: FreshDatabase;
  let db: Db;
  let other: Db;

  before(async () => {
    database = await freshDatabase();
    [db, other] = await Promise.all([openDatabase(database.url, 2), openDatabase(database.url, 1)]);
  });
  after(async () => {
    await Promise.all([db.destroy(), other.destroy()]);
    await database.drop();
  });

  const failureOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => "nothing failed",
      (error: unknown) => error,
    );
  const pidOf = async (executor: { query: Db["query"] }) =>
    (await executor.query("SELECT pg_backend_pid() AS pid"))[0].pid as number;
  const end = (pid: number) => other.query("SELECT pg_terminate_backend($1, 5000)", [pid]);
  const pool = () => (db.driver as unknown as { master: { totalCount: number } }).master;

  it("differs from an error of the statement, in the middle of a statement", async () => {
    const statement = failureOf(queryPreparedRows(db, "sleep", "SELECT pg_sleep(20)", []));
    const [{ pid }] = await until(async () => {
      const found = await other.query("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
      return found.length > 0 ? found : null;
    });
    await end(pid);
    expect(isDatabaseUnavailable(await statement)).to.equal(true);
    expect(isDatabaseUnavailable(await failureOf(db.query("SELECT 1 / 0")))).to.equal(false);
    expect(isDatabaseUnavailable(await failureOf(db.query("SELEC")))).to.equal(false);
    expect(isDatabaseUnavailable(new TypeError("x is not a function"))).to.equal(false);
    expect(isDatabaseUnavailable(null)).to.equal(false);
  });

  it("is recognized between two statements of a transaction, and counted", async () => {
    const before = countLostConnections();
    for (const ask of [
      (manager: Db["manager"]) => manager.query("SELECT 1"),
      (manager: Db["manager"]) => manager.queryRunner!.query("SELECT 1"),
    ]) {
      const work = db.transaction(async (manager) => {
        const connections = pool().totalCount;
        await end(await pidOf(manager));
        await until(() => pool().totalCount < connections);
        await ask(manager);
      });
      expect(isDatabaseUnavailable(await failureOf(work))).to.equal(true);
    }
    expect(countLostConnections() - before).to.equal(2);
    expect(await pidOf(db)).to.be.a("number");
  });

  it("is reported if there is no connection, or none is free in time", async () => {
    const unreachableUrl = Object.assign(new URL(database.url), { port: "9" }).href;
    expect(isDatabaseUnavailable(await failureOf(openDatabase(unreachableUrl, 1)))).to.equal(true);
    const holders = [db.createQueryRunner(), db.createQueryRunner()];
    await Promise.all(holders.map((holder) => holder.connect()));
    expect(isDatabaseUnavailable(await failureOf(db.query("SELECT 1")))).to.equal(true);
    await Promise.all(holders.map((holder) => holder.release()));
    expect(await pidOf(db)).to.be.a("number");
  });
});
