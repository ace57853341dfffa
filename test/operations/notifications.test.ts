/** Tests the delivery of notifications: when they are published, and which users receive them in open pages and as push messages. */
import { expect } from "chai";
import type { Client } from "graphql-ws";
import { rows } from "../../src/data/database.js";
import { type PushService, startPushService } from "../harness/push-service.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { createNotificationCalls, type NotificationEntry } from "./notification-calls.js";

describe("notifications", function () {
  this.timeout(180_000);
  let service: TestService;
  let pushService: PushService;
  let moved = 0;
  /** Token of a live page without a signed-in person. */
  let visitor: string;
  let pushed: PushService["pushed"];
  const clients: Client[] = [];

  before(async () => {
    pushService = await startPushService();
    pushed = pushService.pushed;
    const clock = { now: () => Date.now() + moved, msUntil: (time: number) => time - Date.now() - moved };
    service = await startTestService({ ROLES: "api,scheduler", ALLOW_PRIVATE_NETWORK: "1" }, undefined, { clock });
    visitor = (await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "live" } })).body.token;
  });
  after(async () => {
    await service.stop();
    pushService.stop();
  });
  beforeEach(async () => {
    pushed.length = 0;
    pushService.answer = 201;
    await service.db.query("DELETE FROM push_subscription");
    await service.db.query("DELETE FROM notification");
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.dispose();
  });

  const { call, insert, published, titles, viewer } = createNotificationCalls(() => service);
  const wake = () => service.db.query("SELECT pg_notify('svc_notification', '0')");

  /** Subscribes as this caller, from the position `after` on. The returned array collects the events. */
  function follow(as: string, after: number | null = 0, lastSeconds: number | null = null): NotificationEntry[] {
    const client = service.socket(as);
    clients.push(client);
    const received: NotificationEntry[] = [];
    const query = `subscription ($app: Int!, $after: Int, $lastSeconds: Float) {
      notificationAdded(appId: $app, after: $after, lastSeconds: $lastSeconds) { id cursor readStatus status data }
    }`;
    client.subscribe<{ notificationAdded: NotificationEntry }>(
      { query, variables: { app: service.appId, after, lastSeconds } },
      {
        next: ({ data }) => void received.push(data!.notificationAdded),
        error: () => undefined,
        complete: () => undefined,
      },
    );
    return received;
  }

  it("are only for users in their scope, and app users cannot write them", async () => {
    const { email, id } = await viewer();
    await published("all");
    await published("mine", { scope: { email } });
    await published("my id", { scope: [id] });
    await published("others", { scope: { email: { $ne: email } } });
    expect(await titles("viewer")).to.deep.equal(["my id", "mine", "all"]);
    expect(await titles("api")).to.deep.equal(["others", "my id", "mine", "all"]);
    expect((await call("POST", "", { data: {} }, "viewer")).status).to.equal("FORBIDDEN");
    expect((await call("POST", "", { scope: { a: { $b: 1 } } })).error).to.contain("scope.a");
  });

  it("that are scheduled are published when their time comes, once", async () => {
    const orderAt = new Date(Date.now() + moved + 3_600_000).toISOString();
    const scheduled = await insert({ status: "scheduled", orderAt, data: { title: "later" } });
    expect(scheduled.status).to.equal("scheduled");
    expect((await call("POST", "", { status: "scheduled" })).error).to.contain("orderAt");
    const invalidTime = { status: "scheduled", orderAt: "2099-02-30T09:00:00Z" };
    expect((await call("POST", "", invalidTime)).error).to.contain("orderAt must be a time");
    expect((await call("PUT", `/${scheduled.id}`, { orderAt: null })).error).to.contain("orderAt");
    expect(await call("PUT", `/${scheduled.id}`, { status: "draft", orderAt: null })).to.include({
      status: "draft",
      orderAt: null,
    });
    expect(await call("PUT", `/${scheduled.id}`, { status: "scheduled", orderAt })).to.include({
      status: "scheduled",
      orderAt,
    });
    expect(await titles("viewer")).to.deep.equal([]);
    const received = follow("viewer");
    moved += 3_600_001;
    await wake();
    await until(() => received.length > 0);
    expect(received).to.have.length(1);
    expect(await titles("viewer")).to.deep.equal(["later"]);
  });

  it("of a batch are stored all or none, and an error names the first invalid one", async () => {
    for (const invalid of [{ status: "sent" }, { status: "scheduled" }, { titel: 1 }]) {
      const { status, error } = await call("POST", "/batch", [{ data: { title: "valid" } }, invalid]);
      expect([status, error.slice(0, 3)], error).to.deep.equal(["REQUEST_INVALID", "[1]"]);
    }
    expect(await service.db.query("SELECT FROM notification")).to.deep.equal([]);
  });

  it("reach followers in their order, and only those in their scope", async () => {
    const { email } = await viewer();
    const [received, others] = [follow("viewer"), follow(visitor)];
    await published("first");
    await until(() => received.length > 0 && others.length > 0);
    await Promise.all(Array.from({ length: 20 }, (_, n) => published(`n${n}`)));
    await published("mine", { scope: { email } });
    await published("last");
    await until(() => received.length === 23 && others.length === 22);
    const cursors = received.map(({ cursor }) => cursor);
    expect(cursors).to.deep.equal([...cursors].sort((a, b) => a! - b!));
    expect(others.some(({ data }) => data.title === "mine")).to.equal(false);
  });

  it("are not missed by a follower that reconnects and sends its last position", async () => {
    const received = follow("viewer");
    await published("seen");
    await until(() => received.length === 1);
    const { cursor, id } = received[0]!;
    await clients[0]!.dispose();
    for (let n = 0; n < 30; n += 1) await published(`missed ${n}`);
    await call("POST", "/read", { ids: [id + 1] }, "viewer");
    const again = follow("viewer", cursor);
    await published("live");
    await until(() => again.length === 31);
    expect(again.map(({ data }) => data.title)).to.deep.equal([
      ...Array.from({ length: 30 }, (_, n) => `missed ${n}`),
      "live",
    ]);
    expect(again.map(({ readStatus }) => readStatus).slice(0, 2)).to.deep.equal([true, false]);
  });

  it("of the last seconds reach a follower that reconnects before it has received a position", async () => {
    await published("earlier");
    await service.db.query("UPDATE notification SET published_at = published_at - interval '1 minute'");
    await published("missed");
    const received = follow("viewer", null, 30.5);
    await published("live");
    await until(() => received.length >= 2);
    expect(received.map(({ data }) => data.title)).to.deep.equal(["missed", "live"]);
  });

  const device = (name: string) => pushService.device(name);
  const devices = (method: string, body?: unknown, as = "viewer") =>
    service.rest(method, `/v1/apps/${service.appId}/push/subscriptions`, { body, as });
  const PUSH = { pushNotification: { payload: { title: "Hello", body: "There", badge: 2 } } };

  it("are sent to the devices of their users, encrypted for each, at their time", async () => {
    const { email } = await viewer();
    const [mine, other] = [device("mine"), device("other")];
    expect((await devices("POST", mine.subscription)).http).to.equal(201);
    expect((await devices("POST", other.subscription, visitor)).http).to.equal(201);
    await published("now", { ...PUSH, scope: { email } });
    await until(() => pushed.length === 1);
    expect(pushed[0]!.url).to.equal("/mine");
    expect(mine.decrypt(pushed[0]!.body)).to.include({ title: "Hello", body: "There", badge: 2 });
    const delayUntilTimestamp = Date.now() + moved + 60_000;
    await published("later", { pushNotification: { ...PUSH.pushNotification, delayUntilTimestamp } });
    await wake();
    expect(await rows(service.db, "SELECT FROM push_delivery")).to.deep.equal([]);
    expect(pushed).to.have.length(1);
    moved += 60_001;
    await wake();
    await until(() => pushed.length === 3);
    expect(pushed.map(({ url }) => url).sort()).to.deep.equal(["/mine", "/mine", "/other"]);
  });

  it("are dropped with a device that no longer exists, and tried again if the push service is busy", async () => {
    const mine = device("gone");
    await devices("POST", mine.subscription);
    pushService.answer = 503;
    await published("a", PUSH);
    const due = () => rows<{ attempts: number }>(service.db, "SELECT attempts FROM push_delivery WHERE holder IS NULL");
    await until(async () => pushed.length === 1 && (await due())[0]?.attempts === 1);
    pushService.answer = 410;
    moved += 120_000;
    await wake();
    await until(async () => (await devices("GET")).body.subscriptions.length === 0);
    expect(await rows(service.db, "SELECT FROM push_delivery")).to.deep.equal([]);
  });

  it("are given up after five attempts at a push service that stays busy", async () => {
    await devices("POST", device("full").subscription);
    pushService.answer = 503;
    await published("a", PUSH);
    const settled = async (attempts: number) => {
      const [left] = await rows<{ attempts: number; holder: string | null }>(
        service.db,
        "SELECT attempts, holder FROM push_delivery",
      );
      return pushed.length >= attempts && (left === undefined || left.holder === null);
    };
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      await until(() => settled(attempt));
      moved += 3_600_000;
      await wake();
    }
    await until(async () => (await rows(service.db, "SELECT FROM push_delivery")).length === 0);
    expect(pushed).to.have.length(5);
  });

  /** Selects deliveries with one failed attempt that no process is sending. */
  const waiting = () => rows(service.db, "SELECT FROM push_delivery WHERE attempts = 1 AND holder IS NULL");

  it("are sent by another process when theirs died, and the second message replaces the first", async () => {
    await devices("POST", device("left").subscription);
    pushService.answer = 429;
    await published("x", PUSH);
    await until(async () => (await waiting()).length === 1);
    pushService.answer = 201;
    // Sets the delivery to the state in which a process that was killed during a request leaves it.
    await service.db.query("UPDATE push_delivery SET holder = gen_random_uuid(), claimed_at = now(), due_at = now()");
    await until(() => pushed.length === 2);
    const [first, second] = pushed.map(({ headers }) => headers["topic"]);
    expect([typeof first, second]).to.deep.equal(["string", first]);
    await until(async () => (await rows(service.db, "SELECT FROM push_delivery")).length === 0);
  });

  it("are sent to no further device after they are withdrawn", async () => {
    await devices("POST", device("back").subscription);
    pushService.answer = 429;
    const { id } = await published("x", PUSH);
    await until(async () => (await waiting()).length === 1);
    await call("PUT", `/${id}`, { status: "draft" });
    expect(await rows(service.db, "SELECT FROM push_delivery")).to.deep.equal([]);
  });

  /** Creates an app user of this office, and signs the user in with a new live token. */
  async function signInUser(Office: string) {
    const app = `/v1/apps/${service.appId}`;
    const hooks = [{ type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"] } }];
    await service.rest("POST", `${app}/data-sources`, { body: { name: "Users", hooks, isUsers: true } });
    const Email = `user${Math.random()}@example.org`;
    const body = { data: { Email, Password: "a secret", Office } };
    const { id } = (await service.rest("POST", `${app}/data-sources/Users/entries`, { body })).body;
    const as = (await service.rest("POST", `${app}/tokens`, { body: { kind: "live" } })).body.token as string;
    const where = { Email, Password: "a secret" };
    const how = { passport: "dataSource", dataSourceId: "Users", where };
    const { http } = await service.rest("POST", `${app}/session`, { as, body: how });
    expect(http).to.equal(200);
    return {
      as,
      email: Email,
      changePassword: () =>
        service.rest("PUT", `${app}/data-sources/Users/entries/${id}`, { body: { Password: "another secret" } }),
      move: (to: string) => service.rest("PUT", `${app}/data-sources/Users/entries/${id}`, { body: { Office: to } }),
      signOut: () => service.rest("DELETE", `${app}/session`, { as }),
    };
  }

  it("are for the current user: in an open page and on a device, after a change of the user and after signing out", async () => {
    const user = await signInUser("Oslo");
    // Subscribes from the current position. Without a position, the subscription could start too late for the next event.
    const [{ last }] = (await rows<{ last: number }>(
      service.db,
      "SELECT coalesce(max(cursor), 0)::int AS last FROM notification",
    )) as [{ last: number }];
    const received = follow(user.as, last);
    await devices("POST", device("user").subscription, user.as);
    await published("Oslo 1", { ...PUSH, scope: { Office: "Oslo" } });
    await until(() => received.length === 1 && pushed.length === 1);
    await user.move("Rome");
    await published("Oslo 2", { ...PUSH, scope: { Office: "Oslo" } });
    await published("Rome 1", { ...PUSH, scope: { Office: "Rome" } });
    await until(() => received.length === 2 && pushed.length === 2);
    await user.signOut();
    await published("Rome 2", { ...PUSH, scope: { Office: "Rome" } });
    await published("all", PUSH);
    await until(() => received.length === 3 && pushed.length === 3);
    expect(received.map(({ data }) => data.title)).to.deep.equal(["Oslo 1", "Rome 1", "all"]);
    await until(async () => (await rows(service.db, "SELECT FROM push_delivery")).length === 0);
    expect(pushed).to.have.length(3);
  });

  /** Publishes a notification for this user, then one for everybody. Waits for `everyone` push messages, and until all are sent. */
  async function pushBoth(Email: string, everyone: number) {
    await published("for the user", { ...PUSH, scope: { Email } });
    await published("for everybody", PUSH);
    await until(() => pushed.length >= everyone);
    await until(async () => {
      const waiting = "SELECT FROM push_delivery UNION ALL SELECT FROM notification WHERE push_at IS NOT NULL";
      return (await rows(service.db, waiting)).length === 0;
    });
  }
  const endings: [title: string, end: (user: Awaited<ReturnType<typeof signInUser>>) => Promise<unknown>][] = [
    ["signed out", (user) => user.signOut()],
    ["changed the password", (user) => user.changePassword()],
  ];
  const endCredential = (set: string) =>
    service.db.query(`UPDATE credential SET ${set} WHERE id = (SELECT credential_id FROM push_subscription)`);
  endings.push(["used a page whose session has expired", () => endCredential("expires_at = now()")]);
  endings.push(["used a page whose token was revoked", () => endCredential("revoked_at = now()")]);
  endings.push([
    "used a page whose session was deleted",
    () => service.db.query("DELETE FROM credential WHERE id = (SELECT credential_id FROM push_subscription)"),
  ]);
  for (const [title, end] of endings) {
    it(`with a scope reach no device of a user who ${title}`, async () => {
      const user = await signInUser("Oslo");
      await devices("POST", device("user").subscription, user.as);
      await pushBoth(user.email, 2);
      expect(pushed).to.have.length(2);
      await end(user);
      await pushBoth(user.email, 3);
      expect(pushed).to.have.length(3);
    });
  }

  it("with a scope are not tried again after the user has signed out", async () => {
    const user = await signInUser("Oslo");
    await devices("POST", device("user").subscription, user.as);
    pushService.answer = 503;
    await published("for the user", { ...PUSH, scope: { Email: user.email } });
    await until(async () => (await waiting()).length === 1);
    await user.signOut();
    moved += 120_000;
    await wake();
    await until(async () => (await rows(service.db, "SELECT FROM push_delivery")).length === 0);
    expect(pushed).to.have.length(1);
  });

  it("with a scope do not reach an open page after the user's password was changed", async () => {
    const user = await signInUser("Oslo");
    const [{ last }] = (await rows<{ last: number }>(
      service.db,
      "SELECT coalesce(max(cursor), 0)::int AS last FROM notification",
    )) as [{ last: number }];
    const received = follow(user.as, last);
    await published("1", { scope: { Email: user.email } });
    await until(() => received.length === 1);
    await user.changePassword();
    await published("2", { scope: { Email: user.email } });
    await published("all");
    await until(() => received.at(-1)?.data.title === "all");
    expect(received.map(({ data }) => data.title)).to.deep.equal(["1", "all"]);
  });

  it("are signed by the app's own keys, and only its owner sees a device", async () => {
    const keys = await Promise.all(Array.from({ length: 4 }, async () => (await devices("GET")).body.publicKey));
    expect(new Set(keys).size).to.equal(1);
    const mine = device("a");
    await devices("POST", mine.subscription);
    expect((await devices("GET")).body.subscriptions).to.have.length(1);
    expect((await devices("GET", undefined, visitor)).body.subscriptions).to.deep.equal([]);
    expect((await devices("DELETE", { endpoint: mine.subscription.endpoint }, visitor)).body).to.deep.equal({
      count: 0,
    });
    expect((await devices("DELETE", { endpoint: mine.subscription.endpoint })).body).to.deep.equal({ count: 1 });
    const [{ sealed }] = (await rows<{ sealed: Buffer }>(service.db, "SELECT sealed FROM vapid_key")) as [
      { sealed: Buffer },
    ];
    expect(sealed.length).to.be.above(32);
  });
});
