import { expect } from "chai";
import type { Logger } from "pino";
import type { SendAlert } from "../../src/operations/alerts/alert-sender.js";
import { AlertWatch } from "../../src/operations/alerts/alert-watch.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { insertPublishedActions } from "../harness/published-actions.js";

describe("the evaluation of alert rules", () => {
  let database: ConnectedDatabase;
  before(async () => {
    database = await connectedDatabase(2);
  });
  after(() => database.stop());

  it("sets a savepoint only for the states that change", async () => {
    const { db } = database;
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
    const names = ["first", "second", "third"];
    const actions = await insertPublishedActions(
      db,
      1,
      names.map((name) => ({ name, triggers: [] })),
    );
    for (const { masterId } of actions)
      await db.query(
        `INSERT INTO alert_rule (app_id, name, condition, action_id, failures, "of", minutes, channel, setting, enabled)
         VALUES (1, $1, 'failed', $2, 1, 1, 0, 'webhook', '__alerts', true)`,
        [`rule ${masterId}`, masterId],
      );
    const statements: string[] = [];
    const nothing = () => {};
    const logQuery = (sql: string) => statements.push(sql);
    Object.assign(db, { logger: { logQuery, logQueryError: nothing, logQuerySlow: nothing, log: nothing } });
    const watch = new AlertWatch({ db, sendAlert: () => Promise.resolve(), now: Date.now, log: {} as Logger });
    const countSavepoints = async () => {
      statements.length = 0;
      await db.query("UPDATE alert_cursor SET looked_at = '-infinity'");
      await watch.checkRules();
      return statements.filter((sql) => sql.startsWith("SAVEPOINT")).length;
    };
    expect(await countSavepoints()).to.equal(0);
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at)
       VALUES (1, $1, 'production', 'manual', '{}', 'failed', now())`,
      [actions[1]!.id],
    );
    expect(await countSavepoints()).to.equal(1);
  });

  it("counts a run that failed before its action was unpublished, and then ends the alert", async () => {
    const { db } = database;
    const [{ id: organizationId }] = await db.query("INSERT INTO organization (name) VALUES ('o2') RETURNING id");
    const insertApp = "INSERT INTO app (organization_id, name) VALUES ($1, 'b') RETURNING id";
    const [{ id: appId }] = await db.query(insertApp, [organizationId]);
    const [action] = await insertPublishedActions(db, appId, [{ name: "removed", triggers: [] }]);
    await db.query(
      `INSERT INTO alert_rule (app_id, name, condition, failures, "of", minutes, channel, setting, enabled)
       VALUES ($1, 'all', 'failed', 1, 1, 0, 'webhook', '__alerts', true)`,
      [appId],
    );
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at)
       VALUES ($1, $2, 'production', 'manual', '{}', 'failed', now())`,
      [appId, action!.id],
    );
    await db.query("DELETE FROM action WHERE id = $1", [action!.id]);
    await db.query("UPDATE alert_cursor SET looked_at = '-infinity'");
    const firing: unknown[] = [];
    const sendAlert: SendAlert = async (_executor, _audience, { state, action: failed }) => {
      firing.push([state, failed]);
    };
    const watch = new AlertWatch({ db, sendAlert, now: Date.now, log: {} as Logger });
    await watch.checkRules();
    expect(firing).to.deep.equal([["firing", { id: action!.masterId, name: "removed" }]]);
    const states = "SELECT FROM alert_state WHERE firing AND action_id = $1";
    expect(await db.query(states, [action!.masterId])).to.have.length(1);
    await db.query("UPDATE alert_cursor SET looked_at = '-infinity'");
    await watch.checkRules();
    expect(await db.query(states, [action!.masterId]), "the alert ends, because no run can end it").to.have.length(0);
    expect(firing).to.have.length(1);
  });
});
