/** Tests RunAdmission.checkDueKeys: a check that fails, or many due keys of one app, do not delay the runs of another app. */
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { RunAdmission } from "../../src/operations/runs/run-admission.js";
import { insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import { ServiceMetrics } from "../../src/operations/watch/measures.js";
import { type ConnectedDatabase, connectedDatabase, emptyTables } from "../harness/connected-database.js";

const TABLES = ["run", "run_concurrency", "concurrency_due", "action", "app", "organization"];

describe("runs of two apps that wait for the limits of their actions", () => {
  let database: ConnectedDatabase;
  let db: Db;
  let repository: RunRepository;
  let limiter: RunAdmission;
  let warnings: unknown[];

  before(async () => {
    database = await connectedDatabase(2);
    ({ db } = database);
    repository = new RunRepository(db);
  });
  beforeEach(async () => {
    await emptyTables(db, TABLES);
    await db.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name, published_at) VALUES (1, 'a', now()), (1, 'b', now());
      INSERT INTO action (app_id, name, code, environment) VALUES (1, 'one', '', 'server'), (2, 'two', '', 'server')`);
    await setLimit(1);
    warnings = [];
    limiter = new RunAdmission(db, repository, new ServiceMetrics(), {
      warn: (fields: unknown) => warnings.push(fields),
    });
  });
  after(() => database.stop());

  const setLimit = (limit: unknown) =>
    db.query("UPDATE action SET concurrency = $1", [{ policy: "queue", limit, key: null }]);
  const addRun = async (id: number) => {
    const run = { appId: id, actionId: id, copy: "master", trigger: "manual", payload: "{}" } as const;
    const nobody = { personId: null, credentialId: null, idempotencyKey: null };
    await insertRunByActionId(db, { ...run, ...nobody, waitsFor: "concurrency" }, null);
  };
  const waits = async () =>
    (await db.query("SELECT waits_for AS waits FROM run ORDER BY id")).map(
      (run: { waits: string | null }) => run.waits,
    );

  it("start after the check of another limit has failed, which is repeated a second later", async () => {
    await addRun(1);
    await addRun(2);
    await db.query("UPDATE action SET concurrency = $1 WHERE id = 1", [{ policy: "queue", limit: "broken" }]);
    expect(await limiter.checkDueKeys()).to.equal(2);
    expect(await waits()).to.deep.equal(["concurrency", null]);
    expect(warnings).to.have.length(1);
    const due = await db.query("SELECT action_id AS action, at > now() AS later FROM concurrency_due");
    expect(due).to.deep.equal([{ action: 1, later: true }]);
    await setLimit(1);
    await db.query("UPDATE concurrency_due SET at = now()");
    await limiter.checkDueKeys();
    expect(await waits()).to.deep.equal([null, null]);
  });

  it("start although many keys of the other app have waited for longer", async () => {
    await db.query(
      `INSERT INTO concurrency_due (action_id, key, at)
       SELECT 1, int4send(n), now() - interval '1 hour' FROM generate_series(1, 150) n`,
    );
    await addRun(2);
    expect(await limiter.checkDueKeys()).to.equal(100);
    expect(await waits()).to.deep.equal([null]);
  });
});
