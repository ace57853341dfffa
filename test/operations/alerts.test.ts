/** Tests alerts in a whole service: their receivers, frequency and transport. No alert reaches another receiver or reveals other data. */
import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { MANIFEST_VERSION } from "../../src/rules/manifest.js";
import { countLockWaits, untilLockWait } from "../harness/lock-waits.js";
import { startMailServer } from "../harness/mail-server.js";
import { insertPublishedActions } from "../harness/published-actions.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const SECRET = "a-secret-to-sign-with";

interface ReceivedAlert {
  path: string | undefined;
  headers: IncomingHttpHeaders;
  text: string;
  body: Record<string, unknown> & { text: string };
}

async function startHook() {
  const received: ReceivedAlert[] = [];
  const answers: number[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    received.push({ path: request.url, headers: request.headers, text, body: JSON.parse(text) });
    response.writeHead(answers.shift() ?? 204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => new Promise((resolve) => server.close(resolve).closeAllConnections());
  return { url: `http://127.0.0.1:${port}/hook`, heard: received, answers, stop };
}

describe("alerts", function () {
  this.timeout(180_000);
  let service: TestService;
  let hook: Awaited<ReturnType<typeof startHook>>;
  let moved = 0;
  let masterId = 0;
  let copyId = 0;

  // The service has only the API, so no process executes runs or ends lost runs. The test itself inserts ended runs.
  before(async () => {
    const clock = { now: () => Date.now() + moved, msUntil: (time: number) => time - Date.now() - moved };
    hook = await startHook();
    service = await startTestService({ ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" }, undefined, { clock });
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, {
      body: { __alerts: { url: hook.url, secret: SECRET }, __slack: `${hook.url}/slack`, __wrong: { url: "ftp://x" } },
    });
    await service.db.query("UPDATE app SET published_at = now()");
    const fields = { name: "job", triggers: [{ trigger: "schedule" }], frequency: "0 4 * * *" };
    const [copy] = await insertPublishedActions(service.db, service.appId, [fields]);
    copyId = copy!.id;
    masterId = (
      await rows<{ id: number }>(service.db, "SELECT master_id AS id FROM action WHERE id = $1", [copyId])
    )[0]!.id;
  });
  after(async () => {
    await service.stop();
    await hook.stop();
  });
  beforeEach(async () => {
    moved = 0;
    hook.heard.length = 0;
    hook.answers.length = 0;
    await service.db.query("DELETE FROM alert_rule");
    await service.db.query("UPDATE schedule SET next_tick = now() + interval '1 day'");
  });

  const path = (rest = "") => `/v1/apps/${service.appId}/alerts${rest}`;
  const create = async (rule: object): Promise<number> => {
    const base = { name: "job fails", condition: "failed", channel: "webhook", setting: "__alerts" };
    const { http, body } = await service.rest("POST", path(), { body: { ...base, ...rule } });
    expect(http, JSON.stringify(body)).to.equal(201);
    return body.alert.id;
  };
  const end = (state: string, more: { trigger?: string; reason?: string } = {}) =>
    service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at, reason)
       VALUES ($1, $2, 'production', $3, '{}', $4, now(), $5)`,
      [service.appId, copyId, more.trigger ?? "manual", state, more.reason ?? null],
    );
  /** Requests a check of the alert rules. Waits until a process has completed one. */
  async function waitForCheck(): Promise<void> {
    const sql = "UPDATE alert_cursor SET looked_at = '-infinity' RETURNING looked_until";
    await service.db.query(sql);
    await service.db.query("SELECT pg_notify('svc_alert', '')");
    await until(
      async () => (await rows(service.db, "SELECT FROM alert_cursor WHERE looked_at > '-infinity'")).length > 0,
    );
  }
  const received = (count: number) =>
    until(() => hook.heard.length >= count).then(() => hook.heard.map(({ body }) => body.text));

  it("report the first failure and the recovery, and not the ninety-nine failures between", async () => {
    const id = await create({ actionId: masterId });
    for (let count = 0; count < 50; count += 1) await end("failed");
    await waitForCheck();
    const listed = (await service.rest("GET", path(`/${id}`))).body.alert;
    expect(listed.firing).to.have.length(1);
    expect(listed.firing[0]).to.include({ actionId: masterId, actionName: "job", reason: "it failed" });
    for (let count = 0; count < 50; count += 1) await end("failed");
    await waitForCheck();
    await end("completed");
    await waitForCheck();
    expect(await received(2)).to.have.length(2);
    const [first, second] = hook.heard.map(({ body }) => body);
    expect(first).to.deep.include({ state: "firing", condition: "failed", action: { id: masterId, name: "job" } });
    expect(first!["text"]).to.match(/, job: it failed$/);
    expect(first!["studio"]).to.equal(`${service.url}/studio#/${service.appId}/actions/${masterId}`);
    expect(second).to.include({ state: "recovered" });
    expect((await service.rest("GET", path(`/${id}`))).body.alert.firing).to.deep.equal([]);
  });

  it("report a failure that was over before the first check", async () => {
    await create({});
    await end("failed");
    await end("completed");
    await waitForCheck();
    expect((await received(2)).map((text) => text.split(": ")[1])).to.deep.equal([
      "it failed",
      "recovered (job fails)",
    ]);
  });

  it("that change often send at most twelve messages in an hour, and then the current state", async () => {
    await create({});
    for (let count = 0; count < 20; count += 1) {
      await end("failed");
      await end("completed");
      await waitForCheck();
    }
    await end("failed");
    await waitForCheck();
    await received(12);
    expect(hook.heard).to.have.length(12);
    await service.db.query("UPDATE alert_rule SET told_at = '{}'");
    await waitForCheck();
    expect((await received(13)).at(-1)).to.match(/it failed$/);
  });

  it("have a signature over time and body, and one ID for all tries", async () => {
    await create({});
    hook.answers.push(500);
    await end("failed");
    await waitForCheck();
    await received(1);
    await until(
      async () => (await rows(service.db, "SELECT FROM alert_delivery WHERE detail = 'HTTP 500'")).length > 0,
    );
    await service.db.query("UPDATE alert_delivery SET due_at = now() WHERE status = 'queued'");
    await service.db.query("SELECT pg_notify('svc_alert', '')");
    await received(2);
    for (const { headers, text } of hook.heard) {
      const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers["svc-signature"]))!;
      expect(hex).to.equal(createHmac("sha256", SECRET).update(`${seconds}.${text}`).digest("hex"));
    }
    expect(new Set(hook.heard.map(({ headers, body }) => `${headers["idempotency-key"]} ${body["id"]}`)).size).to.equal(
      1,
    );
  });

  it("report within two minutes that the scheduler is dead, and when one is back", async () => {
    await create({ name: "no tick", condition: "skipped" });
    await service.db.query("UPDATE schedule SET next_tick = now()");
    moved = 30_000;
    await waitForCheck();
    expect(hook.heard).to.deep.equal([]);
    // The tick is more than 60 s late, which the next check must report. One of the processes checks every 10 to 15 s.
    moved = 61_000;
    await waitForCheck();
    expect((await received(1))[0]).to.contain("its schedule does not run");
    await service.db.query("UPDATE schedule SET next_tick = now() + interval '1 day'");
    await waitForCheck();
    expect((await received(2))[1]).to.contain("recovered");
  });

  it("are sent by mail even if no scheduler is alive", async () => {
    const server = await startMailServer();
    const smtp = { host: "127.0.0.1", port: server.port, from: "Shop <shop@example.com>" };
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __smtp: smtp } });
    const channel = { channel: "email", to: ["ann@example.com"] };
    await create({ name: "silent", condition: "silent", actionId: masterId, minutes: 30, ...channel });
    moved = 31 * 60_000;
    await waitForCheck();
    await server.waitForMessages(1);
    expect(server.acceptedMessages[0]!.to).to.deep.equal(["ann@example.com"]);
    expect(server.acceptedMessages[0]!.text).to.match(/^Subject: .*job: it has not/m);
    await server.stop();
    await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__smtp"] } });
  });

  it("of a removed action end without a recovery message", async () => {
    const fields = { name: "gone", triggers: [{ trigger: "manual" }] };
    const [copy] = await insertPublishedActions(service.db, service.appId, [fields]);
    await create({});
    await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at)
       VALUES ($1, $2, 'production', 'manual', '{}', 'failed', now())`,
      [service.appId, copy!.id],
    );
    await waitForCheck();
    await received(1);
    await service.db.query("DELETE FROM action WHERE id = $1 OR master_id = $1", [copy!.masterId]);
    await waitForCheck();
    expect(await rows(service.db, "SELECT FROM alert_state")).to.deep.equal([]);
    expect(hook.heard).to.have.length(1);
  });

  it("report a skipped tick with its reason, and an old queue", async () => {
    await create({ name: "ticks", condition: "skipped", actionId: masterId });
    await create({ name: "queue", condition: "queued", minutes: 5 });
    await end("skipped", { trigger: "schedule", reason: "still running" });
    await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, queued_at)
       VALUES ($1, $2, 'production', 'manual', '{}', 'queued', now() - interval '6 minutes')`,
      [service.appId, copyId],
    );
    await waitForCheck();
    const texts = await received(2);
    expect(texts.some((text) => text.endsWith("a tick was skipped: still running"))).to.equal(true);
    expect(texts.some((text) => text.endsWith("runs have waited for 5 minutes"))).to.equal(true);
    await service.db.query("DELETE FROM run WHERE state = 'queued'");
  });

  it("wait with a change of a rule for a check that has stored one of its states, without a deadlock", async () => {
    const [other] = await insertPublishedActions(service.db, service.appId, [{ name: "other", triggers: [] }]);
    const id = await create({ failures: 2, of: 2 });
    await end("failed");
    await waitForCheck();
    // The check stores the state of this action before it reports the failures of the other action.
    await end("completed");
    const sql = `INSERT INTO run (app_id, action_id, copy, trigger, payload, state, finished_at)
                 VALUES ($1, $2, 'production', 'manual', '{}', 'failed', now())`;
    for (let count = 0; count < 2; count += 1) await service.db.query(sql, [service.appId, other!.id]);
    await service.db
      .transaction(async (manager) => {
        // This timeout is shorter than the check's. So at a deadlock, PostgreSQL would end this transaction, and the test would fail.
        await manager.query("SET LOCAL deadlock_timeout = '10ms'");
        await rows(manager, "SELECT FROM alert_rule WHERE id = $1 FOR NO KEY UPDATE", [id]);
        const check = waitForCheck();
        await until(async () => (await countLockWaits(manager)) > 0);
        await rows(manager, "DELETE FROM alert_state WHERE rule_id = $1", [id]);
        return { check };
      })
      .then(({ check }) => check);
  });

  it("keep the change of another request when one of their fields is updated", async () => {
    const id = await create({});
    const { answer } = await service.db.transaction(async (manager) => {
      await rows(manager, "SELECT FROM alert_rule WHERE id = $1 FOR NO KEY UPDATE", [id]);
      const answer = service.rest("PUT", path(`/${id}`), { body: { failures: 2, of: 3 } });
      await untilLockWait(manager, answer);
      const sql =
        "UPDATE alert_rule SET name = 'renamed', updated_at = updated_at + interval '1 millisecond' WHERE id = $1";
      await rows(manager, sql, [id]);
      return { answer };
    });
    expect((await answer).body.alert).to.include({ name: "renamed", failures: 2, of: 3 });
  });

  it("keep an update that another request makes while a manifest is applied", async () => {
    const id = await create({});
    const { sent } = await service.db.transaction(async (manager) => {
      // The lock stops the update at its last write, the audit entry.
      await manager.query("LOCK TABLE audit_entry IN SHARE MODE");
      const update = service.rest("PUT", path(`/${id}`), { body: { failures: 2, of: 3 } });
      await untilLockWait(manager, update);
      const body = {
        version: MANIFEST_VERSION,
        alerts: [{ name: "job fails", condition: "failed", channel: "webhook", minutes: 5 }],
      };
      const manifest = service.rest("PUT", `/v1/apps/${service.appId}/manifest`, { body });
      await until(async () => (await countLockWaits(manager)) === 2);
      return { sent: [update, manifest] };
    });
    expect((await Promise.all(sent)).map(({ http, body }) => body.error ?? http)).to.deep.equal([200, 200]);
    const { alert } = (await service.rest("GET", path(`/${id}`))).body;
    expect(alert).to.include({ failures: 2, of: 3, minutes: 5 });
  });

  it("are tested at most ten times a minute, also by concurrent requests", async () => {
    await service.db.query("DELETE FROM alert_delivery");
    const id = await create({});
    const test = () => service.rest("POST", path(`/${id}/test`));
    for (let count = 0; count < 9; count += 1) expect((await test()).http).to.equal(202);
    const { sent } = await service.db.transaction(async (manager) => {
      // The lock stops each test of the alert at its last write, the audit entry. So both tests are in progress at once.
      await manager.query("LOCK TABLE audit_entry IN SHARE MODE");
      const sent = [test(), test()];
      await until(async () => (await countLockWaits(manager)) >= sent.length);
      return { sent };
    });
    const codes = (await Promise.all(sent)).map(({ http }) => http);
    expect(codes.sort((a, b) => a - b)).to.deep.equal([202, 429]);
  });

  it("use Slack's format, with names escaped", async () => {
    await service.db.query("UPDATE action SET name = '<!channel>' WHERE id = $1", [masterId]);
    await create({ channel: "slack", setting: "__slack" });
    await end("failed");
    await waitForCheck();
    // A message that an earlier test sent to the webhook can still arrive. So the test searches for the message to Slack.
    const sent = await until(() => hook.heard.find(({ path }) => path === "/hook/slack"));
    await service.db.query("UPDATE action SET name = 'job' WHERE id = $1", [masterId]);
    expect(Object.keys(sent.body)).to.deep.equal(["text"]);
    expect(sent.body.text).to.contain("&lt;!channel&gt;: it failed").and.not.contain("<!channel>");
    expect(sent.headers["svc-signature"]).to.equal(undefined);
  });

  it("are rejected with the field's name if they cannot work, without the value of a setting", async () => {
    const base = { name: "x", condition: "failed", channel: "webhook", setting: "__alerts" };
    const refused = async (rule: object) => (await service.rest("POST", path(), { body: { ...base, ...rule } })).body;
    for (const [rule, words] of [
      [{ name: "" }, "name must be"],
      [{ condition: "often" }, "condition must be one of failed, silent, skipped, queued"],
      [{ failures: 3, of: 2 }, "of must be a whole number from 3 to 100"],
      [{ minutes: 0 }, "minutes must be"],
      [{ channel: "email", to: ["no"] }, "to[0] must be an e-mail address"],
      [{ channel: "email", to: ["ann@example"] }, "to[0] must be an e-mail address"],
      [{ channel: "email", to: ["a@b.c\r\nBcc: d@e.f"] }, "to[0] must be an e-mail address"],
      [{ setting: "_open" }, "setting must be the key of a protected setting"],
      [{ setting: "__none" }, "the setting __none must contain {url, secret}"],
      [{ setting: "__wrong" }, 'the setting __wrong must contain "url" with an http or https URL without credentials'],
      [{ condition: "queued", actionId: masterId }, "actionId must be null"],
    ] as const) {
      const { status, error } = await refused(rule);
      expect(status).to.equal("REQUEST_INVALID");
      expect(error).to.contain(words);
      expect(error).to.not.contain("ftp");
    }
    expect((await refused({ actionId: copyId })).status).to.equal("ACTION_NOT_FOUND");
    await create({});
    expect((await refused({ name: "job fails" })).error).to.contain("another alert of this app has the same name");
  });

  it("can be muted while their setting has no value", async () => {
    const muted = { name: "muted", condition: "failed", channel: "webhook", setting: "__none", enabled: false };
    const { http, body } = await service.rest("POST", path(), { body: muted });
    expect(http).to.equal(201);
    const update = (change: object) => service.rest("PUT", `${path()}/${body.alert.id}`, { body: change });
    expect((await update({ minutes: 5 })).http).to.equal(200);
    expect((await update({ enabled: true })).body.error).to.contain("the setting __none must contain");
    expect((await service.rest("DELETE", `${path()}/${body.alert.id}`)).http).to.equal(200);
  });

  it("are changed, tested and removed over GraphQL as over REST, only by callers who edit the app", async () => {
    const id = await create({});
    const app = service.appId;
    const changed = await service.graphql(
      `mutation ($app: Int!, $id: Int!) { updateAlertRule(appId: $app, id: $id, rule: {failures: 2, of: 5}) { name failures of setting } }`,
      { app, id },
    );
    expect(changed.data.updateAlertRule).to.deep.equal({ name: "job fails", failures: 2, of: 5, setting: "__alerts" });
    const tried = await service.rest("POST", path(`/${id}/test`));
    expect([tried.http, tried.body.delivery.status]).to.deep.equal([202, "queued"]);
    expect((await received(1))[0]).to.contain("this is a test of the alert job fails");
    await until(async () => {
      const { body } = await service.rest("GET", path(`/${id}/deliveries`));
      return body.deliveries[0].status === "sent" && body.deliveries[0].detail === "HTTP 204";
    });
    for (const as of ["api", "viewer", "live"]) expect((await service.rest("GET", path(), { as })).http).to.equal(403);
    expect((await service.rest("DELETE", path(`/${id}`))).http).to.equal(200);
    expect((await service.rest("DELETE", path(`/${id}`))).http).to.equal(404);
    const { body } = await service.rest("GET", `/v1/apps/${app}/audit?limit=4`);
    const types = body.entries.map(({ type }: { type: string }) => type);
    expect(types).to.deep.equal(["app.alert.delete", "app.alert.test", "app.alert.update", "app.alert.create"]);
  });
});
