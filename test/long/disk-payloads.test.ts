/**
 * Checks that the disk space of an event or payload does not depend on the number of runs that it starts. Readers still get the complete
 * data.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { createDataRetention } from "../../src/operations/upkeep/retention.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const quietLog = { warn: () => {} };

const MATCHING_ACTIONS = 50;
const PAYLOAD_MAX_BYTES = 32 * 1024;

/** Returns data that cannot be compressed. */
const noise = (bytes: number) => randomBytes(bytes / 2).toString("hex");

describe("a payload is stored once", () => {
  let service: TestService;
  let ids: number[];

  before(async () => {
    service = await startTestService();
    const actionFields = Array.from({ length: MATCHING_ACTIONS }, (_, at) => ({
      name: `action-${at}`,
      triggers: [{ trigger: "log" as const, where: { type: "many" } }],
    }));
    ids = (await insertPublishedActions(service.db, service.appId, actionFields)).map(({ id }) => id);
  });
  after(() => service.stop());

  const bytesOfLogs = async () =>
    Number(
      (
        await service.db.query(
          `SELECT coalesce(sum(pg_column_size(payload)), 0) +
                  (SELECT coalesce(sum(pg_column_size(data)), 0) FROM log_event) +
                  (SELECT coalesce(sum(pg_column_size(data)), 0) FROM execution_log) AS bytes FROM run`,
        )
      )[0].bytes,
    );
  const add = (body: object) => service.rest("POST", `/v1/apps/${service.appId}/logs`, { as: "api", body });
  const list = async (body: object) =>
    (await service.rest("POST", `/v3/apps/${service.appId}/actions/logs`, { body })).body.logs;
  const waitForLogEntries = (count: number) =>
    until(async () => {
      const [row] = await service.db.query("SELECT count(*) FROM execution_log");
      return row.count >= count;
    });

  it("for an event that starts fifty runs, and each of their log entries shows the complete event", async () => {
    const data = { text: noise(30_000), quotes: '\\"\\u0000\u2028é', "a\\1": "$1 \\0 &" };
    const before = await bytesOfLogs();
    const { http, body } = await add({ type: "many", data, dataSourceId: 3 });
    expect(http).to.equal(201);
    await waitForLogEntries(MATCHING_ACTIONS);
    expect((await bytesOfLogs()) - before).to.be.below(2 * PAYLOAD_MAX_BYTES);
    const logs = await list({ limit: MATCHING_ACTIONS });
    expect(logs).to.have.length(MATCHING_ACTIONS);
    for (const entry of logs) expect(entry.data.payload).to.deep.equal({ trigger: "log", log: body.log });
    expect(Object.keys(logs[0].data).slice(0, 4)).to.deep.equal(["mode", "runOn", "taskId", "payload"]);
  });

  it("for a run on demand and for the replay of an event's run, and both get the complete payload", async () => {
    const fields = {
      code: "async function execute({ payload }) { return payload }",
      triggers: [{ trigger: "manual" }],
    };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, {
      body: { name: "echo", active: true, ...fields },
    });
    const payload = { text: noise(200_000), odd: '"payload":null' };
    const before = await bytesOfLogs();
    const call = { body: payload };
    const ran = await service.rest("POST", `/v3/apps/${service.appId}/actions/echo/runWithResult`, call);
    expect(ran.body.result).to.deep.equal(payload);
    // The same data is stored twice: once as the payload, and once as the result.
    expect((await bytesOfLogs()) - before).to.be.below(2.1 * 200_000);
    const [entry] = await list({ limit: 1 });
    expect(entry.data.payload).to.deep.equal(payload);

    const [{ id: runId, payload: composed }] = await service.db.query(
      "SELECT id, svc_run_payload(payload, event_id) AS payload FROM run WHERE action_id = $1",
      [ids[0]],
    );
    const replayed = await service.rest("POST", `/v3/apps/${service.appId}/runs/${runId}/replay`, { body: {} });
    expect(replayed.http).to.equal(202);
    const again = await until(async () =>
      (await list({ id: ids[0] })).find((listed: { data: { replayOf?: number } }) => listed.data.replayOf === runId),
    );
    expect(again.data.payload).to.deep.equal(JSON.parse(composed));
  });

  it("and stays after its event is deleted, until the log entries and runs that use it are deleted", async () => {
    await service.db.query("UPDATE log_event SET created_at = now() - interval '31 days'");
    await createDataRetention({ db: service.db, days: 30, log: quietLog }).clean();
    const [entry] = await list({ id: ids[1] });
    expect(entry.data.payload.log.type).to.equal("many");
    await service.db.query("UPDATE execution_log SET created_at = now() - interval '31 days'");
    await service.db.query("UPDATE run SET finished_at = now() - interval '31 days'");
    await createDataRetention({ db: service.db, days: 30, log: quietLog }).clean();
    const [left] = await service.db.query(
      "SELECT (SELECT count(*) FROM log_event) AS events, (SELECT count(*) FROM run) AS runs",
    );
    expect(left).to.deep.equal({ events: 0, runs: 0 });
  });
});
