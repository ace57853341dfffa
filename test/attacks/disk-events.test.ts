/** Tests what unauthorized clients and an app's own credentials can store as events: size, rate, sender, and a full disk. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { insertPublishedActions } from "../harness/published-actions.js";
import { longTest } from "../harness/samples.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

const EVENT_MAX_BYTES = 32 * 1024;
const MB = 2 ** 20;

const randomText = (bytes: number) => randomBytes(bytes / 2).toString("hex");
const pageView = (data: object) => ({ createdAt: 1, type: "analytics.pageView", data });

/** Returns the event with a new `text` that makes its JSON exactly `bytes` bytes long. Almost all characters of the text have two bytes. */
function resizeEvent<T extends { data: object }>(event: T, bytes: number): T {
  const left = bytes - Buffer.byteLength(JSON.stringify({ ...event, data: { text: "" } }));
  return { ...event, data: { text: "é".repeat(Math.floor(left / 2)) + "e".repeat(left % 2) } };
}

describe("events and the disk", () => {
  let service: TestService;
  let logs: string;
  let analytics: string;

  /**
   * Starts a service with a published app. In `environment`, INTAKE_QUOTA_MB limits the data that an app stores in a minute. All visitors of
   * the app together get half of this quota, and one network address gets an eighth.
   */
  async function startPublishedApp(environment: Record<string, string>): Promise<void> {
    service = await startTestService(environment);
    logs = `/v1/apps/${service.appId}/logs`;
    analytics = `/v1/apps/${service.appId}/analytics`;
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  }
  afterEach(() => service.stop());

  const stored = async () => Number((await service.db.query("SELECT pg_total_relation_size('log_event') AS n"))[0].n);
  const count = async (table: string) => Number((await service.db.query(`SELECT count(*) AS n FROM ${table}`))[0].n);
  const send = (events: object[], as = "live"): Promise<Answer> =>
    service.rest("POST", analytics, { as, body: { events } });

  it("an event can have 32 KB and no byte more, as a log event and among analytics events, of which none is then stored", async () => {
    await startPublishedApp({});
    const event = { type: "email.bounced", data: {} };
    expect((await service.rest("POST", logs, { as: "api", body: resizeEvent(event, EVENT_MAX_BYTES) })).http).to.equal(
      201,
    );
    expect((await send([resizeEvent(pageView({}), EVENT_MAX_BYTES)])).http).to.equal(201);
    const before = await count("log_event");
    const refused = await service.rest("POST", logs, { as: "api", body: resizeEvent(event, EVENT_MAX_BYTES + 1) });
    expect([refused.http, refused.body]).to.deep.equal([
      413,
      { status: "PAYLOAD_TOO_LARGE", error: "the event must be at most 32768 bytes (32 KB) of JSON (got 32769)" },
    ]);
    const mixedBatch = await send([pageView({}), resizeEvent(pageView({}), EVENT_MAX_BYTES + 1), pageView({})]);
    expect([mixedBatch.http, mixedBatch.body.status]).to.deep.equal([413, "PAYLOAD_TOO_LARGE"]);
    expect(mixedBatch.body.error).to.match(/^events\[1\] must be at most 32768 bytes/);
    const data = { text: randomText(EVENT_MAX_BYTES) };
    const mutation =
      'mutation ($data: JSON!) { addLogEvent(appId: 1, event: { type: "email.bounced", data: $data }) { id } }';
    const { errors } = await service.graphql(mutation, { data }, { as: "api" });
    expect(errors?.[0].extensions.status).to.equal("PAYLOAD_TOO_LARGE");
    expect(await count("log_event")).to.equal(before);
  });

  longTest(
    "one address can store its share, however fast it sends; events of the app and of others are still stored",
    async () => {
      await startPublishedApp({ INTAKE_QUOTA_MB: "8" });
      const before = await stored();
      const batch = Array.from({ length: 30 }, () => pageView({ text: randomText(31_000) }));
      const answers = await Promise.all(Array.from({ length: 20 }, () => send(batch)));
      const refused = answers.filter(({ http }) => http === 429);
      expect(answers.filter(({ http }) => http === 201)).to.have.length(1);
      expect(refused).to.have.length(19);
      expect(refused[0]!.body).to.include({ status: "RATE_LIMIT_EXCEEDED" });
      expect(refused[0]!.body.error).to.match(/^one network address can send at most 1 MB per minute/);
      expect(Number(refused[0]!.headers.get("retry-after"))).to.be.within(1, 60);
      expect(refused[0]!.body.nextValidRequestDate).to.equal(
        new Date(refused[0]!.body.nextValidRequestDate).toISOString(),
      );
      expect((await stored()) - before).to.be.below(2 * MB);
      const answer = await service.rest("POST", logs, {
        as: "api",
        body: { type: "x", data: { text: randomText(30_000) } },
      });
      expect(answer.http).to.equal(201);
    },
  );

  longTest(
    "the runs that an event starts count too, so that small events cannot exceed the share of their sender",
    async () => {
      await startPublishedApp({ INTAKE_QUOTA_MB: "1" });
      const actionFields = Array.from({ length: 100 }, (_, at) => ({
        name: `action-${at}`,
        triggers: [{ trigger: "log" as const, where: { type: "app.analytics.event" } }],
      }));
      await insertPublishedActions(service.db, service.appId, actionFields);
      const events = Array.from({ length: 20 }, () => ({ createdAt: 1, type: "analytics.event", data: {} }));
      const answers = [];
      for (let sent = 0; sent < 4; sent += 1) answers.push((await send(events)).http);
      expect(answers).to.deep.equal([201, 429, 429, 429]);
      expect(await count("run")).to.equal(2_000);
    },
  );

  longTest("reports of client runs and settings count in the same way", async () => {
    await startPublishedApp({ INTAKE_QUOTA_MB: "8" });
    const fields = { name: "c", active: true, environment: "client", code: "async function execute() {}" };
    const triggers = [{ trigger: "analytics", where: { type: "analytics.event" } }];
    const path = `/v3/apps/${service.appId}/actions`;
    const { id } = (await service.rest("POST", path, { body: { ...fields, triggers } })).body.action;
    const report = { payload: { text: randomText(700_000) }, duration: 1 };
    const reports = [];
    for (let sent = 0; sent < 3; sent += 1) {
      reports.push((await service.rest("POST", `${path}/${id}/clientRuns`, { as: "viewer", body: report })).http);
    }
    expect(reports).to.deep.equal([201, 429, 429]);
    const writes: number[] = [];
    // The quota refills while a slow machine writes, so the number of accepted writes varies.
    while (!writes.includes(429)) {
      const body = { big: randomText(900_000) };
      writes.push((await service.rest("POST", `/v1/apps/${service.appId}/settings`, { as: "api", body })).http);
    }
    expect(writes.length).to.be.at.least(9);
    expect(new Set(writes.slice(0, -1))).to.deep.equal(new Set([200]));
  });

  longTest("payloads of visitors' runs count, those of the app's own runs do not", async () => {
    await startPublishedApp({ INTAKE_QUOTA_MB: "8" });
    const code = "async function execute() { return 1; }";
    const fields = { name: "one", code, active: true, triggers: [{ trigger: "manual" }] };
    const actions = `/v3/apps/${service.appId}/actions`;
    const { body } = await service.rest("POST", actions, { body: fields });
    await service.rest("POST", `${actions}/${body.action.id}/publish`);
    const run = (as: string) =>
      service.rest("POST", `${actions}/one/run`, { as, body: { text: randomText(MB * 0.7) } });
    expect((await run("live")).http).to.equal(202);
    const refused = await run("live");
    expect([refused.http, refused.body.status]).to.deep.equal([429, "RATE_LIMIT_EXCEEDED"]);
    expect(refused.body.error).to.match(/^one network address can send at most 1 MB per minute/);
    expect([(await run("api")).http, (await run("api")).http]).to.deep.equal([202, 202]);
    expect(await count("run")).to.equal(3);
  });

  it("events are rejected with OVERLOADED before the database is full; runs and reads continue", async () => {
    await startPublishedApp({ DATABASE_MAX_MB: "1000", DISK_FREE_MIN_MB: "1000" });
    for (const answer of [
      await send([pageView({})]),
      await service.rest("POST", logs, { as: "api", body: { type: "x" } }),
      await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { a: 1 } }),
      await service.rest("POST", `/v1/apps/${service.appId}/versions`),
      await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: {} }),
    ]) {
      expect([answer.http, answer.body.status]).to.deep.equal([503, "OVERLOADED"]);
      expect(answer.body.error).to.match(/disk is nearly full/);
      expect(answer.headers.get("retry-after")).to.equal("60");
    }
    await insertPublishedActions(service.db, service.appId, [{ name: "one", triggers: [{ trigger: "manual" }] }]);
    const ran = await service.rest("POST", `/v3/apps/${service.appId}/actions/one/runWithResult`, {
      as: "api",
      body: {},
    });
    expect(ran.body.result).to.equal(1);
    expect((await service.rest("GET", `/v1/apps/${service.appId}/settings`)).http).to.equal(200);
    const removed = await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["a"] } });
    expect(removed.http).to.equal(200);
    expect((await service.rest("GET", `/apps/${service.appId}`, { as: null })).http).to.equal(200);
  });

  longTest("new runs are also rejected when half of that reserve is used", async () => {
    await startPublishedApp({ DATABASE_MAX_MB: "1", DISK_FREE_MIN_MB: "1" });
    await insertPublishedActions(service.db, service.appId, [{ name: "one", triggers: [{ trigger: "manual" }] }]);
    const path = `/v3/apps/${service.appId}/actions/one/runWithResult`;
    const { http, body } = await service.rest("POST", path, { as: "api", body: {} });
    expect([http, body.status]).to.deep.equal([503, "OVERLOADED"]);
    const read = await service.rest("POST", `/v3/apps/${service.appId}/actions/logs`, { body: {} });
    expect(read.body).to.deep.include({ count: 0 });
  });
});
