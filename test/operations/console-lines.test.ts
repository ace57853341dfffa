/** Tests console lines that the database rejects: the loss is logged, and visible in the console of the run. */
import { expect } from "chai";
import { type LogFn, pino } from "pino";
import { ConsoleWriter, RunConsole } from "../../src/operations/runs/console.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { until } from "../harness/until.js";

describe("console lines that cannot be stored", () => {
  let database: ConnectedDatabase;

  before(async () => {
    database = await connectedDatabase(2);
    const { db } = database;
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
    await db.query(`CREATE FUNCTION reject_line() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF NEW.text LIKE 'bad%' THEN RAISE EXCEPTION 'rejected'; END IF; RETURN NEW; END $$`);
    await db.query("CREATE TRIGGER reject BEFORE INSERT ON console_line FOR EACH ROW EXECUTE FUNCTION reject_line()");
  });
  after(() => database?.stop());

  it("are logged and counted in the console, also if the service stores them while the run goes on", async () => {
    const { db } = database;
    const [{ id }] =
      await db.query(`INSERT INTO run (app_id, action_id, copy, trigger, state, holder, started_at, payload)
      VALUES (1, 1, 'master', 'manual', 'running', gen_random_uuid(), now(), '{}') RETURNING id`);
    const logged: unknown[] = [];
    const log = pino({ hooks: { logMethod: ([facts]: Parameters<LogFn>) => void logged.push(facts) } });
    const mask = async (lines: readonly unknown[]) => lines.map((line) => (line as { text: string }).text);
    const writer = new ConsoleWriter({ db, runId: Number(id), mask, log });
    const print = (text: string) => writer.print({ level: "log", at: Date.now(), text });
    print("bad 1");
    print("good 1");
    await until(() => logged.length === 1);
    print("good 2");
    await writer.flush();
    print("bad 2");
    await writer.flush();
    const lines = await new RunConsole(db).list(1, Number(id));
    expect(lines.map(({ seq, level, text }) => [seq, level, text])).to.deep.equal([
      [0, "warn", "console lines could not be stored because of an internal error (lost lines: 2)"],
      [2, "log", "good 2"],
      [3, "warn", "console lines could not be stored because of an internal error (lost lines: 1)"],
    ]);
    expect(logged.map((facts) => (facts as { lines: number }).lines)).to.deep.equal([2, 1]);
  });
});
