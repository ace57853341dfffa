import { expect } from "chai";
import { openDatabase } from "../../src/data/database.js";
import { Credentials } from "../../src/operations/access/credentials.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const CODE = "async function execute(context) { return context.payload; }";

interface ExpectedEvent {
  name: string;
  where?: object;
  triggers?: object[];
  active?: boolean;
}

describe("log events", () => {
  let service: TestService;
  let logs: string;
  let runsPath: string;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
    logs = `/v1/apps/${service.appId}/logs`;
    runsPath = `/v3/apps/${service.appId}/runs`;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  after(() => service.stop());

  async function published({
    name,
    where,
    triggers,
    active = true,
  }: ExpectedEvent): Promise<{ id: number; master: number }> {
    const path = `/v3/apps/${service.appId}/actions`;
    const body = { name, code: CODE, active, triggers: triggers ?? [{ trigger: "log", where }] };
    const created = await service.rest("POST", path, { body });
    expect(created.http, JSON.stringify(created.body)).to.equal(201);
    const master = created.body.action.id;
    const { body: copy } = await service.rest("POST", `${path}/${master}/publish`);
    return { id: copy.action.id, master };
  }

  const add = async (body: object, as: string = "api") => service.rest("POST", logs, { as, body });
  const runsOf = async (actionId: number) =>
    (await service.rest("GET", `${runsPath}?actionId=${actionId}`)).body.runs as Record<string, unknown>[];
  const entryOf = (actionId: number) =>
    until(async () => {
      const { body } = await service.rest("POST", `/v3/apps/${service.appId}/actions/logs`, { body: { id: actionId } });
      return body.logs[0];
    });

  it("are stored in the specified form", async () => {
    const { http, body } = await add({
      type: "email.bounced",
      data: { to: "x" },
      dataSourceId: 4,
      sessionId: 3_000_000_000,
    });
    expect(http).to.equal(201);
    const { log } = body;
    expect(log).to.have.all.keys(
      ...["id", "userId", "appId", "organizationId", "dataSourceId", "dataSourceEntryId", "appNotificationId"],
      ...["sessionId", "requestId", "type", "data", "dataString", "createdAt", "updatedAt"],
    );
    expect(log).to.deep.include({ appId: service.appId, organizationId: service.organizationId, dataSourceId: 4 });
    expect(log).to.deep.include({ data: { to: "x" }, dataString: '{"to":"x"}', sessionId: 3_000_000_000 });
    expect(log.createdAt).to.equal(new Date(log.createdAt).toISOString());
  });

  it("have the e-mail address of a user of the app's organization, whatever address the caller sends", async () => {
    const [person] = await service.db.query("SELECT id, email FROM person ORDER BY id LIMIT 1");
    for (const data of [{}, { a: 1 }, { _userEmail: "forged@example.com" }]) {
      const { body } = await add({ type: "app.view", data, userId: person.id });
      expect(body.log.data).to.deep.equal({ ...data, _userEmail: person.email });
      expect(JSON.parse(body.log.dataString)).to.deep.equal(body.log.data);
    }
    const claim = { type: "app.view", data: { _userEmail: "claimed@example.com" }, userId: 999_999 };
    expect((await add(claim)).body.log.data).to.deep.equal(claim.data);
    const unknown = await add({ type: "app.view", data: {}, userId: 999_999 });
    expect(unknown.body.log).to.deep.include({ userId: 999_999, data: {} });
  });

  it("are stored with their data unchanged if the caller names no user", async () => {
    for (const data of [{ columns: { a: 1 } }, { _userEmail: "a@example.com" }]) {
      const { body } = await service.rest("POST", `/v1/apps/${service.appId}/logs`, {
        as: "editor",
        body: { type: "app.view", data },
      });
      expect(body.log.data).to.deep.equal(data);
    }
  });

  it("have no address of a person of the organization who has no access to the app", async () => {
    const [person] = await service.db.query(
      "INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, 'a', 'b', 'k@d.e') RETURNING id",
      [service.organizationId],
    );
    const data = async () => (await add({ type: "app.view", userId: person.id })).body.log.data;
    expect(await data()).to.deep.equal({});
    const token = await service.rest("POST", `/v1/apps/${service.appId}/tokens`, {
      body: { kind: "live", userId: person.id },
    });
    expect(token.http).to.equal(201);
    expect(await data()).to.deep.equal({ _userEmail: "k@d.e" });
  });

  it("do not reveal the address of a person of another organization", async () => {
    const [organization] = await service.db.query("INSERT INTO organization (name) VALUES ('other') RETURNING id");
    const [person] = await service.db.query(
      "INSERT INTO person (organization_id, first_name, last_name, email) VALUES ($1, 'a', 'b', 'c@d.e') RETURNING id",
      [organization.id],
    );
    expect((await add({ type: "app.view", userId: person.id })).body.log.data).to.deep.equal({});
  });

  it("start each active live version whose where matches, with the entry as its payload", async () => {
    const any = await published({ name: "any-source", where: { type: "dataSource.entry.create" } });
    const mine = await published({ name: "source-7", where: { type: "dataSource.entry.create", dataSourceId: 7 } });
    const other = await published({ name: "source-8", where: { type: "dataSource.entry.create", dataSourceId: 8 } });
    const off = await published({ name: "off", where: { type: "dataSource.entry.create" }, active: false });
    const event = {
      type: "dataSource.entry.create",
      data: { columns: { a: 1 } },
      dataSourceId: 7,
      dataSourceEntryId: 9,
    };
    const { body } = await add(event);
    for (const { id } of [any, mine]) {
      const entry = await entryOf(id);
      expect(entry.data.payload).to.deep.equal({ trigger: "log", log: body.log });
      expect(entry.data).to.deep.include({ mode: "on-demand", runOn: "server", taskId: id });
      expect(entry.data.result.data).to.deep.equal(entry.data.payload);
      expect(await runsOf(id)).to.have.length(1);
    }
    expect(await runsOf(other.id)).to.deep.equal([]);
    expect(await runsOf(off.id)).to.deep.equal([]);
  });

  it("start an action once, even if several of its triggers match", async () => {
    const where = { type: "mediaFile.create" };
    const { id } = await published({
      name: "twice",
      triggers: [
        { trigger: "log", where },
        { trigger: "log", where: { ...where, dataSourceId: 1 } },
      ],
    });
    await add({ type: "mediaFile.create", dataSourceId: 1 });
    expect(await runsOf(id)).to.have.length(1);
  });

  it("start nothing of another app, and nothing after the action is unpublished", async () => {
    const { id, master } = await published({ name: "ours", where: { type: "sms.2fa" } });
    const made = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "second" } });
    await service.rest("POST", `/v1/apps/${made.body.app.id}/logs`, { as: "admin", body: { type: "sms.2fa" } });
    expect(await runsOf(id)).to.deep.equal([]);
    await service.rest("POST", `/v3/apps/${service.appId}/actions/${master}/unpublish`);
    await add({ type: "sms.2fa" });
    expect(await service.db.query("SELECT 1 FROM run WHERE action_id = $1", [id])).to.deep.equal([]);
  });

  it("are rejected with the name of an invalid field", async () => {
    const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
    const bodies: [unknown, RegExp][] = [
      [{}, /^type/],
      [{ type: "" }, /^type/],
      [{ type: "a".repeat(256) }, /^type/],
      [{ type: "a\0b" }, /^type/],
      [{ type: "app.task.failed" }, /^type must not begin with app\.task\./],
      [{ type: "a", data: [] }, /^data/],
      [{ type: "a", data: "x" }, /^data/],
      [`{"type":"a","data":{"a":${deep}}}`, /^data must nest/],
      [{ type: "a", userId: "1" }, /^userId/],
      [{ type: "a", dataSourceId: -1 }, /^dataSourceId/],
      [{ type: "a", sessionId: 1.5 }, /^sessionId/],
      [[], /^the body/],
    ];
    for (const [body, message] of bodies) {
      const { http, body: refusal } = await service.rest("POST", logs, { as: "api", body });
      expect([http, refusal.status], JSON.stringify(body)?.slice(0, 80)).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(refusal.error).to.match(message);
    }
  });

  it("keep every JSON value, and can have types that the specification does not name", async () => {
    const data = JSON.parse(
      '{"__proto__":{"a":1},"nul":"\\u0000","half":"\\ud800","big":12345678901234567890,"q":"\\"}"}',
    );
    const { http, body } = await add({ type: "our.own.type", data });
    expect(http).to.equal(201);
    expect(body.log.dataString).to.equal(JSON.stringify(data));
  });

  it("can be stored only by editors, admins, API tokens and task tokens", async () => {
    for (const as of ["editor", "admin", "api"]) expect((await add({ type: "app.view" }, as)).http, as).to.equal(201);
    for (const as of ["viewer", "live"]) expect((await add({ type: "app.view" }, as)).http, as).to.equal(403);
  });

  it("can also be stored by a mutation", async () => {
    const { data, errors } = await service.graphql(
      "mutation ($event: LogEventInput!) { addLogEvent(appId: 1, event: $event) { id type sessionId data dataString } }",
      { event: { type: "ai.image", data: { a: 1 }, sessionId: 3_000_000_000 } },
      { as: "api" },
    );
    expect(errors).to.equal(undefined);
    expect(data.addLogEvent).to.deep.include({ type: "ai.image", sessionId: 3_000_000_000, dataString: '{"a":1}' });
  });

  it("of an unpublished app start nothing; the skipped run has the reason", async () => {
    const { id } = await published({ name: "asleep", where: { type: "sms.validate" } });
    await service.rest("POST", `/v1/apps/${service.appId}/unpublish`);
    await add({ type: "sms.validate" });
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    const [run] = await runsOf(id);
    expect(run).to.deep.include({ state: "skipped", reason: "app unpublished", logId: null });
  });

  describe("that runs emit", () => {
    /** Emits an event with a token of the run. Returns the newest run of the action, which the event has started. */
    async function emitAs(runId: number, actionId: number, type: string): Promise<Record<string, unknown>> {
      const db = await openDatabase(service.databaseUrl, 1);
      const notifications = { listen: () => () => undefined, onGap: () => () => undefined, isHealthy: () => false };
      const credentials = new Credentials({ db, notifications: notifications as never });
      const { token } = await credentials.issue({ kind: "task", appId: service.appId, runId });
      await db.destroy();
      expect((await add({ type }, token)).http).to.equal(201);
      return (await runsOf(actionId))[0]!;
    }

    it("have the chain of runs; beyond a depth of 8 they are skipped, with a log entry about it", async () => {
      const { id } = await published({ name: "echo", where: { type: "loop.deep" } });
      await add({ type: "loop.deep" });
      const [first] = await runsOf(id);
      expect(first).to.deep.include({ depth: 0, causeRunId: null, chainId: null });
      let last = first!;
      for (let depth = 1; depth <= 8; depth += 1) {
        const next = await emitAs(last["id"] as number, id, "loop.deep");
        expect(next).to.deep.include({ depth, causeRunId: last["id"], chainId: first!["id"] });
        expect(next["state"]).to.not.equal("skipped");
        last = next;
      }
      const halted = await emitAs(last["id"] as number, id, "loop.deep");
      expect(halted).to.deep.include({ state: "skipped", reason: "recursion: more than 8 runs deep" });
      const entry = await until(async () => {
        const { body } = await service.rest("POST", `/v3/apps/${service.appId}/actions/logs`, {
          body: { id, where: { type: "app.task.failed" } },
        });
        return body.logs[0];
      });
      expect(entry.data.error.name).to.equal("RecursionError");
      expect(entry.data.error.message).to.contain(`run ${first!["id"]} (action ${id}) -> `);
      expect(entry.data.error.message).to.contain(`run ${last["id"]} (action ${id}) -> run ${halted["id"]}`);
      expect(halted["logId"]).to.equal(entry.id);
    });

    it("start at most 100 runs of one chain in a minute", async () => {
      const { id } = await published({ name: "wide", where: { type: "loop.wide" } });
      await add({ type: "loop.wide" });
      const [first] = await runsOf(id);
      await service.db.query(
        `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at, chain_id, cause_run_id, depth)
         SELECT app_id, action_id, copy, trigger, '{}', 'completed', now(), id, id, 1 FROM run, generate_series(1, 99)
          WHERE id = $1`,
        [first!["id"]],
      );
      expect((await emitAs(first!["id"] as number, id, "loop.wide"))["state"]).to.not.equal("skipped");
      expect(await emitAs(first!["id"] as number, id, "loop.wide")).to.deep.include({
        state: "skipped",
        reason: "recursion: more than 100 runs of one chain in a minute",
      });
    });
  });

  describe("on which a filter is tested", () => {
    it("are those of the last 1,000 that match", async () => {
      const made = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "third" } });
      const { id } = made.body.app;
      await service.db.query(
        `INSERT INTO log_event (app_id, type, data, data_source_id, request_id)
         SELECT $1, CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END, '{}', n % 10, gen_random_uuid()
           FROM generate_series(1, 1100) n`,
        [id],
      );
      const test = async (where: unknown) =>
        service.rest("POST", `/v3/apps/${id}/triggers/backtest`, { as: "admin", body: { where } });
      expect((await test({ type: "even" })).body).to.deep.include({ examined: 1_000, matched: 500 });
      const { body } = await test({ type: "even", dataSourceId: 2 });
      expect(body.matched).to.equal(100);
      expect(body.events[0]).to.deep.include({ type: "even", dataSourceId: 2 });
      const refused = await test({ dataSourceId: 2 });
      expect([refused.http, refused.body.status]).to.deep.equal([400, "TRIGGERS_INVALID"]);
    });
  });
});
