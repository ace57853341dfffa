import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { until } from "../harness/until.js";

/** Code that sets the clock of a process 90 s ahead. */
const CLOCK_AHEAD_CODE = "const real = Date.now; Date.now = () => real() + 90_000";

describe("a scheduler whose clock is 90 s ahead", function () {
  this.timeout(120_000);
  let database: FreshDatabase;
  let db: Db;
  let service: ServiceProcess;

  before(async () => {
    database = await freshDatabase();
    db = await openDatabase(database.url, 2);
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
    await insertPublishedActions(db, 1, [
      { name: "ticking", triggers: [{ trigger: "schedule" }], frequency: "0 4 1 1 *" },
    ]);
    service = startProcess({
      DATABASE_URL: database.url,
      ROLES: "scheduler",
      LOG_LEVEL: "info",
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(CLOCK_AHEAD_CODE)}`,
    });
    await service.ready();
  });
  after(async () => {
    service.signal("SIGTERM");
    await service.ended;
    await service.clean();
    await db.destroy();
    await database.drop();
  });

  it("queues a scheduled run when it is due by the database's clock, and logs a warning", async () => {
    await db.query("UPDATE schedule SET next_tick = now() + interval '4 seconds'");
    await db.query("SELECT pg_notify('svc_schedule', '')");
    const [run] = await until(async () => {
      const found = await db.query('SELECT queued_at >= tick AS "isDue", state FROM run');
      return found.length > 0 ? (found as { isDue: boolean; state: string }[]) : null;
    });
    expect(run).to.deep.equal({ isDue: true, state: "queued" });
    const warning = service.log.find(({ msg }) =>
      String(msg).startsWith("this machine's clock differs from the database's"),
    );
    expect(warning!["databaseAheadSeconds"]).to.be.within(-91, -89);
  });
});
