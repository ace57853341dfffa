/** Tests what the service does, and what it logs, if push messages cannot be delivered. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { type Db, isDatabaseUnavailable, openDatabase, rows } from "../../src/data/database.js";
import { createAddressCheckedConnections } from "../../src/engine/checked-connections.js";
import { createLog } from "../../src/engine/log.js";
import { generateVapidKeys } from "../../src/engine/push-message.js";
import { PushFailureLog } from "../../src/operations/notifications/push-failure-log.js";
import { PushSender } from "../../src/operations/notifications/push-sender.js";
import type { ReadOrCreateVapidKeys } from "../../src/operations/notifications/vapid-keys.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { type Network, startNetwork } from "../harness/network.js";
import { type PushService, startPushService } from "../harness/push-service.js";
import { until } from "../harness/until.js";

const HOUR_MS = 3_600_000;

describe("push messages that cannot be delivered", () => {
  let database: ConnectedDatabase;
  let network: Network;
  /** Database that is connected through `network`, which the test can cut. */
  let db: Db;
  let pushService: PushService;
  let lines: Record<string, unknown>[];
  let moved = 0;
  let findCredentialsInScope: (credentialIds: readonly number[]) => Promise<Set<number>>;
  const keys = generateVapidKeys();
  const log = createLog("info", { destination: { write: (line) => void lines.push(JSON.parse(line)) } });
  const now = () => Date.now() + moved;

  before(async () => {
    database = await connectedDatabase(2);
    network = await startNetwork();
    network.setTarget(database.url);
    const url = Object.assign(new URL(database.url), { port: new URL(network.url).port }).href;
    db = await openDatabase(url, 2);
    pushService = await startPushService();
    await database.db.query(`
      INSERT INTO organization (name) VALUES ('o');
      INSERT INTO app (organization_id, name) VALUES (1, 'a')`);
  });
  beforeEach(async () => {
    lines = [];
    findCredentialsInScope = async (credentialIds) => new Set(credentialIds);
    pushService.pushed.length = 0;
    for (const table of ["push_subscription", "notification"]) await database.db.query(`DELETE FROM ${table}`);
  });
  after(async () => {
    await db.destroy();
    await network.stop();
    await database.stop();
    pushService.stop();
  });

  const startSender = (readVapidKeys: ReadOrCreateVapidKeys = async () => keys, mayReach = () => true) =>
    new PushSender({
      db,
      readVapidKeys,
      findCredentialsInScope: (_, __, credentialIds) => findCredentialsInScope(credentialIds),
      connections: createAddressCheckedConnections({ mayReach, resolve: async () => [] }),
      subject: "mailto:a@example.com",
      processId: randomUUID(),
      now,
      log,
    });

  /** Stores this number of devices, and a notification that is due for all of them. Returns the paths of the devices' endpoints. */
  async function publish(count: number): Promise<string[]> {
    const names = Array.from({ length: count }, () => `secret-${randomUUID()}`);
    for (const { subscription } of names.map((name) => pushService.device(name))) {
      const { endpoint, keys: deviceKeys } = subscription;
      await rows(
        database.db,
        "INSERT INTO push_subscription (app_id, reader, endpoint, p256dh, auth) VALUES (1, 'person:1', $1, $2, $3)",
        [endpoint, deviceKeys.p256dh, deviceKeys.auth],
      );
    }
    await rows(
      database.db,
      `INSERT INTO notification (app_id, status, data, push, push_at, published_at, cursor)
       VALUES (1, 'published', '{"title": "Hello"}', '{"payload": {}}', $1, now(), 1)`,
      [new Date(now())],
    );
    return names;
  }

  const deliveries = () =>
    rows<{ attempts: number; isClaimed: boolean }>(
      database.db,
      `SELECT attempts, holder IS NOT NULL AS "isClaimed" FROM push_delivery`,
    );
  const isSettled = async () => (await deliveries()).every(({ isClaimed }) => !isClaimed);

  it("are not sent again after a rejection, and a burst of them causes one log line, without the endpoint", async () => {
    pushService.answer = 403;
    const names = await publish(15);
    const sender = startSender();
    while (pushService.pushed.length < names.length) {
      await sender.sendDuePushes();
      await until(isSettled);
    }
    expect(await deliveries()).to.deep.equal([]);
    const [{ host }] = names.map((name) => new URL(pushService.device(name).subscription.endpoint)) as [URL];
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ level: 40, appId: 1, status: 403, host, failures: 1 });
    expect(lines[0]!["msg"]).to.contain("was rejected");
    for (const name of names) expect(JSON.stringify(lines)).to.not.contain(name);
  });

  it("are rejected and logged if the service may not connect to the push service", async () => {
    await publish(1);
    await database.db.query("UPDATE push_subscription SET endpoint = 'http://10.0.0.1/secret'");
    const sender = startSender(undefined, () => false);
    await sender.sendDuePushes();
    await until(async () => (await deliveries()).length === 0);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ host: "10.0.0.1", reason: "the host has an IP address that is not public" });
  });

  it("are logged when all attempts have failed", async () => {
    pushService.answer = 500;
    await publish(1);
    const sender = startSender();
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      expect(lines).to.deep.equal([]);
      await sender.sendDuePushes();
      await until(isSettled);
      moved += HOUR_MS;
    }
    expect(await deliveries()).to.deep.equal([]);
    expect(pushService.pushed).to.have.length(5);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ level: 40, appId: 1, status: 500 });
    expect(lines[0]!["msg"]).to.contain("every attempt");
  });

  it("are logged when the process of the last attempt has died", async () => {
    pushService.answer = 500;
    await publish(1);
    const sender = startSender();
    await sender.sendDuePushes();
    await until(isSettled);
    await database.db.query("UPDATE push_delivery SET attempts = 5, holder = gen_random_uuid()");
    await sender.recover(true);
    expect(await deliveries()).to.deep.equal([]);
    expect(lines.map(({ msg }) => msg)).to.deep.equal([
      "every attempt to send a push message failed; it is not sent again",
    ]);
  });

  it("are logged if the service fails unexpectedly, and tried again", async () => {
    pushService.answer = 201;
    await publish(1);
    let fails = true;
    const sender = startSender(async () => {
      if (fails) throw new Error("a key cannot be decrypted");
      return keys;
    });
    await sender.sendDuePushes();
    await until(isSettled);
    expect(await deliveries()).to.deep.equal([{ attempts: 1, isClaimed: false }]);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ level: 50, appId: 1 });
    expect(lines[0]!["err"]).to.include({ message: "a key cannot be decrypted" });
    fails = false;
    moved += HOUR_MS;
    await sender.sendDuePushes();
    await until(async () => (await deliveries()).length === 0);
    expect(pushService.pushed).to.have.length(1);
  });

  for (const isLong of [false, true]) {
    const title = isLong ? "and the claim cannot be given back" : "for a moment";
    it(`use no attempt while the database is away ${title}`, async () => {
      pushService.answer = 201;
      await publish(1);
      let isAway = true;
      const sender = startSender(async () => {
        if (!isAway) return keys;
        network.cut();
        const error = await rows(db, "SELECT").catch((reason: unknown) => reason);
        if (!isLong) network.restore();
        throw error;
      });
      await sender.sendDuePushes().catch(() => undefined);
      await sender.drain(new AbortController().signal);
      network.restore();
      if (isLong) {
        expect(await deliveries()).to.deep.equal([{ attempts: 1, isClaimed: true }]);
        await sender.recover(false);
      }
      expect(await deliveries()).to.deep.equal([{ attempts: 0, isClaimed: false }]);
      isAway = false;
      moved += HOUR_MS;
      const again = startSender();
      await again.sendDuePushes();
      await until(async () => (await deliveries()).length === 0);
      expect(pushService.pushed).to.have.length(1);
    });
  }

  it("use no attempt if the database is away while the service checks the scope", async () => {
    await publish(1);
    const sql =
      "INSERT INTO credential (kind, hash, app_id) VALUES ('live', uuid_send(gen_random_uuid()), 1) RETURNING id";
    const [credential] = await rows<{ id: number }>(database.db, sql);
    await rows(database.db, "UPDATE push_subscription SET credential_id = $1", [credential!.id]);
    await rows(database.db, `UPDATE notification SET scope = '{"id": 1}'`);
    const sender = startSender();
    let checks = 0;
    findCredentialsInScope = async (credentialIds) => {
      checks += 1;
      // The service checks the scope before it stores the delivery, and again before it sends the push request.
      if (checks === 2) network.cut();
      return new Set(await rows(db, "SELECT").then(() => credentialIds));
    };
    expect(await sender.sendDuePushes().catch(isDatabaseUnavailable)).to.equal(true);
    network.restore();
    expect(await deliveries()).to.deep.equal([{ attempts: 1, isClaimed: true }]);
    await sender.recover(false);
    expect(await deliveries()).to.deep.equal([{ attempts: 0, isClaimed: false }]);
  });

  it("cause a line a minute for each app, with the number of failures since the last line", () => {
    let time = 0;
    const failures = new PushFailureLog(log, () => time);
    const push = { appId: 1, endpoint: "https://push.example.com/secret" };
    for (let second = 0; second < 150; second += 1) {
      failures.logRejected(push, { status: 401 });
      time += 1_000;
    }
    failures.logRejected({ ...push, appId: 2 }, { status: 401 });
    expect(lines.map(({ appId, failures }) => [appId, failures])).to.deep.equal([
      [1, 1],
      [1, 60],
      [1, 60],
      [2, 1],
    ]);
  });
});
