/** Tests that rejected requests to HTTP triggers are counted completely: during an outage of the database, and at a stop. */
import { expect } from "chai";
import { pino } from "pino";
import { openDatabase, rows, type SqlClient } from "../../src/data/database.js";
import { RejectedRequestCounter } from "../../src/operations/http/rejected-request-counter.js";
import { TriggerAuthenticationError } from "../../src/operations/http/trigger-authenticator.js";
import { connectedDatabase } from "../harness/connected-database.js";
import { startNetwork } from "../harness/network.js";
import { startTestService } from "../harness/service.js";
import { until, untilEqual } from "../harness/until.js";
import { makeAction, send } from "./support.js";

const readCounts = (db: SqlClient) =>
  rows<object>(
    db,
    "SELECT action_id AS id, reason, refused AS count, last_address AS address FROM http_refusal ORDER BY 1, 2",
  );

describe("rejected requests to HTTP triggers", () => {
  it("are counted completely although the first write fails", async () => {
    const database = await connectedDatabase();
    await database.db.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name) VALUES (1, 'a');
      INSERT INTO action (app_id, name, code, environment) VALUES (1, 'one', '', 'server'), (1, 'two', '', 'server')`);
    const network = await startNetwork();
    network.setTarget(database.url);
    const db = await openDatabase(Object.assign(new URL(database.url), { port: new URL(network.url).port }).href, 1);
    const warnings: string[] = [];
    const log = pino({}, { write: (line) => void warnings.push(JSON.parse(line).msg) });
    const counter = new RejectedRequestCounter({ db, log });
    const count = (actionId: number, reason: string, address: string) =>
      counter.count(actionId, new TriggerAuthenticationError("UNAUTHORIZED", reason), address);
    try {
      network.cut();
      for (let request = 0; request < 3; request += 1) count(1, "a", "10.0.0.1");
      count(2, "b", "10.0.0.2");
      await until(() => warnings.length > 0);
      for (let request = 0; request < 2; request += 1) count(1, "a", "10.0.0.3");
      network.restore();
      await untilEqual(
        () => readCounts(database.db),
        [
          { id: 1, reason: "a", count: 5, address: "10.0.0.3" },
          { id: 2, reason: "b", count: 1, address: "10.0.0.2" },
        ],
      );
      expect(warnings[0]).to.contain("rejected requests to HTTP triggers could not be counted");
    } finally {
      await db.destroy();
      await network.stop();
      await database.stop();
    }
  });

  it("are counted if the service stops before the next write", async () => {
    const service = await startTestService({ ROLES: "api" });
    try {
      await service.rest("POST", `/v1/apps/${service.appId}/publish`);
      const auth = { type: "basic", setting: "__login" } as const;
      const { id } = await makeAction(service, { path: "closed", auth });
      for (let request = 0; request < 3; request += 1)
        expect((await send(service.url, `/h/${service.appId}/closed`)).http).to.equal(401);
      await service.stopService();
      const [counted] = await readCounts(service.db);
      expect(counted).to.include({ id, count: 3 });
    } finally {
      await service.stop();
    }
  });
});
