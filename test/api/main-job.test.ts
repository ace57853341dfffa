import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { until } from "../harness/until.js";

const CODE = "async function execute(context) { return { greeting: `Hello ${context.payload.name}` }; }";

describe("a service with one app", () => {
  let service: TestService;
  before(async () => {
    service = await useSharedService("api,runner");
  });
  after(() => service.stop());

  describe("the main task", () => {
    it("creates an action, runs it, returns its result and lists its log entry", async () => {
      const { appId, rest } = service;
      const created = await rest("POST", `/v3/apps/${appId}/actions`, {
        body: { name: "hello", code: CODE, active: true, triggers: [{ trigger: "manual" }] },
      });
      expect(created.http).to.equal(201);
      expect(created.body.status).to.equal("ACTION_CREATED");
      const run = await rest("POST", `/v3/apps/${appId}/actions/hello/runWithResult`, { body: { name: "you" } });
      expect(run.http).to.equal(200);
      expect(run.body).to.deep.include({ status: "ACTION_EXECUTED", result: { greeting: "Hello you" } });
      const logs = await rest("POST", `/v3/apps/${appId}/actions/logs`, { body: { id: created.body.action.id } });
      expect(logs.body.count).to.equal(1);
      expect(logs.body.logs[0]).to.have.keys("id", "type", "createdAt", "data");
      expect(logs.body.logs[0].type).to.equal("app.task.completed");
      expect(logs.body.logs[0].data).to.deep.include({
        mode: "on-demand",
        runOn: "server",
        taskId: created.body.action.id,
        payload: { name: "you" },
        actionVersion: "v3",
        result: { data: { greeting: "Hello you" }, success: true },
      });
    });

    it("sends each log entry live to clients that follow the app", async () => {
      const client = service.socket();
      const entries = client.iterate<{ actionLogAdded: { type: string; data: { payload: { name: string } } } }>({
        query: `subscription { actionLogAdded(appId: ${service.appId}) { id type data } }`,
      });
      /** Returns the next log entry. Skips entries of the earlier run, whose payload has the name "you". */
      const nextLogEntry = async () => {
        for (;;) {
          const { value } = await entries.next();
          if (value.data?.actionLogAdded.data.payload.name !== "you") return value;
        }
      };
      const next = nextLogEntry();
      let seen = false;
      void next.then(() => (seen = true));
      // A subscription sends no earlier entries, and does not signal its start. So the test starts runs until an entry arrives.
      await until(async () => {
        await service.rest("POST", `/v3/apps/${service.appId}/actions/hello/runWithResult`, { body: { name: "tail" } });
        return seen;
      });
      const value = await next;
      expect(value.data?.actionLogAdded.type).to.equal("app.task.completed");
      expect(value.data?.actionLogAdded.data.payload).to.deep.equal({ name: "tail" });
      await entries.return?.();
      await client.dispose();
    });
  });

  describe("the end of a run", () => {
    async function run(code: string, body: unknown = {}) {
      const fields = { name: "subject", code, active: true, triggers: [{ trigger: "manual" }] };
      const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: fields })).body;
      const answer = await service.rest("POST", `/v3/apps/${service.appId}/actions/subject/runWithResult`, { body });
      await service.rest("DELETE", `/v3/apps/${service.appId}/actions/${action.id}`);
      return answer;
    }
    const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

    it("is a failure with an explanation if the result has too many levels to be stored", async () => {
      const answer = await run(`async function execute() { return JSON.parse("[".repeat(7000) + "]".repeat(7000)); }`);
      expect([answer.http, answer.body.status]).to.deep.equal([500, "EXECUTION_FAILED"]);
      expect(answer.body.error).to.include("nests deeper than 500 levels");
    });

    it("keeps every character of a result", async () => {
      const text = "\u0000 \u2028 \ud83d\ude00 \ud800 </script>";
      const answer = await run(`async function execute() { return ${JSON.stringify(text)}; }`);
      expect(answer.body.result).to.equal(text);
      const logs = await service.rest("POST", `/v3/apps/${service.appId}/actions/logs`, { body: { limit: 1 } });
      expect(logs.body.logs[0].data.result.data).to.equal(text);
    });

    it("is not reached by a payload with too many levels: it is rejected earlier", async () => {
      const answer = await run("async function execute() {}", `{"a":${nested(100_000)}}`);
      expect([answer.http, answer.body.status]).to.deep.equal([400, "PAYLOAD_INVALID"]);
    });

    it("is written for a run that the database assigns to this process but this process does not know", async () => {
      const [{ id: holder }] = await service.db.query("SELECT id FROM instance WHERE roles <> '{}'");
      const [{ id }] = await service.db.query(
        `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, holder, started_at)
       VALUES (1, 999, 'master', 'manual', '{}', 'running', $1, now() - interval '1 minute') RETURNING id`,
        [holder],
      );
      const entries = () => service.db.query("SELECT type FROM execution_log WHERE run_id = $1", [id]);
      await until(async () => (await entries()).length === 1);
      expect(await entries()).to.deep.equal([{ type: "app.task.failed" }]);
    });
  });

  describe("the filter of a trigger", () => {
    it("keeps keys that every object inherits, through create, update and publication", async () => {
      const data = JSON.parse('{"toString": [1], "constructor": {"a": 1}, "__proto__": {"b": 2}}');
      const triggers = [{ trigger: "analytics", where: { type: "analytics.event", data } }];
      const fields = { name: "filter", code: "async function execute() {}", environment: "client", triggers };
      const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: fields })).body;
      await service.rest("PUT", `/v3/apps/${service.appId}/actions/${action.id}`, { body: { description: "changed" } });
      await service.rest("POST", `/v1/apps/${service.appId}/publish`);
      const published = (await service.rest("POST", `/v3/apps/${service.appId}/actions/${action.id}/publish`)).body
        .action;
      for (const id of [action.id, published.id]) {
        const read = (await service.rest("GET", `/v3/apps/${service.appId}/actions/${id}`)).body.action;
        expect(JSON.stringify(read.triggers)).to.equal(JSON.stringify(triggers));
      }
    });
  });
});
