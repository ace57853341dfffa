import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";

const CODE = "async function execute(context) { return { greeting: `Hello ${context.payload.name}` }; }";

describe("the main job", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.stop());

  it("creates an action, runs it, answers its result and lists its log entry", async () => {
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

  it("shows each log entry live to who follows the app", async () => {
    const client = service.socket();
    const entries = client.iterate<{ actionLogAdded: { type: string; data: { payload: unknown } } }>({
      query: `subscription { actionLogAdded(appId: ${service.appId}) { id type data } }`,
    });
    const next = entries.next();
    let seen = false;
    void next.then(() => (seen = true));
    while (!seen) {
      await service.rest("POST", `/v3/apps/${service.appId}/actions/hello/runWithResult`, { body: { name: "tail" } });
    }
    const { value } = await next;
    expect(value.data?.actionLogAdded.type).to.equal("app.task.completed");
    expect(value.data?.actionLogAdded.data.payload).to.deep.equal({ name: "tail" });
    await entries.return?.();
    await client.dispose();
  });
});
