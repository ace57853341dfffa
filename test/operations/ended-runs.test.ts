/** Checks that the service's periodic SQL statements do not read ended runs, however many exist. */
import { expect } from "chai";
import type { EntityManager } from "typeorm";
import type { Db } from "../../src/data/database.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import { Vitals } from "../../src/operations/upkeep/vitals.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

const COUNT_READ_ROWS = `
  SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int AS n
    FROM pg_stat_xact_user_tables WHERE relname LIKE 'run\\_%'`;

describe("runs that have ended", () => {
  let database: ConnectedDatabase;
  before(async () => {
    database = await connectedDatabase(2);
    await database.db.query(`
      INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a');
      INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at)
        SELECT 1, 1, 'master', 'manual', '{}', 'completed', now() FROM generate_series(1, 5000);
      INSERT INTO run (app_id, action_id, copy, trigger, payload, state, holder, started_at)
        VALUES (1, 1, 'master', 'manual', '{}', 'running', '00000000-0000-4000-8000-000000000001', now());
      ANALYZE run`);
  });
  after(() => database.stop());

  it("are not read to find abandoned runs or to count active ones", async () => {
    const { db } = database;
    let read = 0;
    const counted = <T>(work: (manager: EntityManager) => Promise<T>) =>
      db.transaction(async (manager) => {
        const result = await work(manager);
        read += (await manager.query(COUNT_READ_ROWS))[0].n;
        return result;
      });
    const watched = Object.create(db, {
      transaction: { value: counted },
      query: { value: (sql: string, values: unknown[]) => counted((manager) => manager.query(sql, values)) },
    }) as Db;
    const vitals = new Vitals({
      db: watched,
      schedule: { readLagMs: async () => 0, countDueTicks: async () => 0 },
      readDepths: async () => [],
    });
    expect((await vitals.read()).running).to.equal(1);
    expect(await new RunRepository(watched).finishLost()).to.equal(1);
    expect(read).to.be.above(0).and.below(50);
  });
});
