/** Tests devices that receive push messages: the maximum number for a user, for visitors at one address, and for all visitors of an app. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { PUSH_SUBSCRIPTIONS_PER_USER_MAX, VISITOR_PUSH_SUBSCRIPTIONS_PER_APP_MAX } from "../../src/limits.js";
import {
  PushSubscriptions,
  VISITOR_PUSH_SUBSCRIPTIONS_PER_ADDRESS_MAX,
} from "../../src/operations/notifications/push-subscriptions.js";
import { createNotificationReaderFinder } from "../../src/operations/notifications/reader.js";
import type { ReceivedDataLimiter } from "../../src/operations/records/received-data-limiter.js";
import { createDataRetention } from "../../src/operations/upkeep/retention.js";
import type { Caller } from "../../src/rules/access.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { longTest } from "../harness/samples.js";

describe("devices for push messages", () => {
  let database: ConnectedDatabase;
  let devices: PushSubscriptions;
  /** Maps the ID of a page's credential to the ID of the app user who is signed in to the page. */
  const users = new Map<number, number>();
  let endpoints = 0;

  before(async () => {
    database = await connectedDatabase(3);
    await database.db.query("INSERT INTO organization (name) VALUES ('o')");
    await database.db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b')");
    devices = new PushSubscriptions({
      db: database.db,
      findReader: createNotificationReaderFinder(async ({ credentialId }) => {
        const id = users.get(credentialId!);
        return (
          id === undefined ? { user: null } : { user: null, entries: { dataSource: { id, dataSourceId: 1, data: {} } } }
        ) as never;
      }),
      readVapidKeys: async () => ({ publicKey: "" }) as never,
      receivedDataLimiter: { countRows: () => {} } as unknown as ReceivedDataLimiter,
      mayConnectTo: () => true,
      allowHttp: false,
    });
  });
  after(() => database.stop());
  beforeEach(() => database.db.query("DELETE FROM push_subscription"));

  async function visit(address: string): Promise<Caller> {
    const sql = `INSERT INTO credential (kind, hash, app_id, page_session, visitor_block)
      VALUES ('live', uuid_send(gen_random_uuid()), 1, true, $1) RETURNING id`;
    const [{ id }] = (await rows<{ id: number }>(database.db, sql, [Buffer.from(address)])) as [{ id: number }];
    return {
      kind: "live",
      credentialId: Number(id),
      personId: null,
      appId: 1,
      copy: "production",
    } as unknown as Caller;
  }

  const subscription = (endpoint: string) => ({
    endpoint: `https://push.example.com/${endpoint}`,
    keys: {
      p256dh: Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]).toString("base64url"),
      auth: Buffer.alloc(16).toString("base64url"),
    },
  });

  /** Subscribes new devices on the page of the caller. Returns the ID of the last device. */
  async function subscribe(caller: Caller, count = 1): Promise<number> {
    let last = 0;
    for (let n = 0; n < count; n += 1) {
      endpoints += 1;
      last = Number((await devices.add(caller, 1, subscription(String(endpoints)))).id);
    }
    return last;
  }

  async function countDevices(condition: string): Promise<number> {
    const sql = `SELECT count(*)::int AS count FROM push_subscription WHERE ${condition}`;
    return (await rows<{ count: number }>(database.db, sql))[0]!.count;
  }

  longTest("of visitors at one address are limited, also after the sessions of the page have ended", async () => {
    const user = await visit("10.0.0.9");
    users.set(user.credentialId, 7);
    const userDevice = await subscribe(user);
    const otherDevice = await subscribe(await visit("10.0.0.2"));
    const sessions = VISITOR_PUSH_SUBSCRIPTIONS_PER_ADDRESS_MAX / PUSH_SUBSCRIPTIONS_PER_USER_MAX + 1;
    let lastDevice = 0;
    for (let session = 0; session < sessions; session += 1) {
      const visitor = await visit("10.0.0.9");
      lastDevice = await subscribe(visitor, PUSH_SUBSCRIPTIONS_PER_USER_MAX);
      await rows(database.db, "DELETE FROM credential WHERE id = $1", [visitor.credentialId]);
    }
    expect(await countDevices("reader LIKE 'credential:%'")).to.equal(VISITOR_PUSH_SUBSCRIPTIONS_PER_ADDRESS_MAX + 1);
    expect(await countDevices(`id IN (${userDevice}, ${otherDevice}, ${lastDevice})`)).to.equal(3);
  });

  it("stay subscribed if they subscribe again, although their ID is the lowest", async () => {
    const visitor = await visit("10.0.0.3");
    await rows(
      database.db,
      `INSERT INTO push_subscription (app_id, reader, endpoint, p256dh, auth, visitor_block)
       SELECT 1, 'person:1', 'https://push.example.com/again', 'k', 'a', NULL`,
    );
    const others = await visit("10.0.0.3");
    await rows(
      database.db,
      `INSERT INTO push_subscription (app_id, reader, credential_id, endpoint, p256dh, auth, visitor_block)
       SELECT 1, 'credential:' || $1::bigint, $1, 'https://push.example.com/b' || n, 'k', 'a', $2
         FROM generate_series(1, ${VISITOR_PUSH_SUBSCRIPTIONS_PER_ADDRESS_MAX}) AS n`,
      [others.credentialId, Buffer.from("10.0.0.3")],
    );
    const { id } = await devices.add(visitor, 1, subscription("again"));
    expect(await countDevices(`id = ${id}`)).to.equal(1);
    expect(await countDevices("true")).to.equal(VISITOR_PUSH_SUBSCRIPTIONS_PER_ADDRESS_MAX);
  });

  it("are one device whatever the fragment of their endpoint, and can be removed with the endpoint that was sent", async () => {
    const visitor = await visit("10.0.4.1");
    const ids = [];
    for (const endpoint of ["one", "one#", "one#part", "one#other"])
      ids.push((await devices.add(visitor, 1, subscription(endpoint))).id);
    expect(new Set(ids)).to.have.length(1);
    expect(await devices.remove(visitor, 1, { endpoint: "https://PUSH.example.com/one#other" })).to.deep.equal({
      count: 1,
    });
    expect(await countDevices("endpoint LIKE '%/one%'")).to.equal(0);
  });

  it("of one user are limited if the user signs in on pages that have devices", async () => {
    for (let page = 0; page < 3; page += 1) {
      const visitor = await visit(`10.0.1.${page}`);
      await subscribe(visitor, 10);
      users.set(visitor.credentialId, 8);
      await devices.assignToCurrentUser(visitor, 1);
    }
    expect(await countDevices("reader = 'entry:1:8'")).to.equal(PUSH_SUBSCRIPTIONS_PER_USER_MAX);
  });

  it("of a user stay, however many visitors have subscribed later, and those of visitors outlive their sessions", async () => {
    const { db } = database;
    const user = await visit("10.0.2.1");
    users.set(user.credentialId, 9);
    const userDevice = await subscribe(user);
    const visitor = await visit("10.0.2.2");
    const add = (credentialId: number | null, count: number) =>
      rows(
        db,
        `INSERT INTO push_subscription (app_id, reader, credential_id, endpoint, p256dh, auth)
         SELECT 1, 'credential:1', $1, gen_random_uuid(), 'k', 'a' FROM generate_series(1, $2::int)`,
        [credentialId, count],
      );
    await add(visitor.credentialId, VISITOR_PUSH_SUBSCRIPTIONS_PER_APP_MAX + 5);
    await add(null, 5);
    await createDataRetention({ db, days: 30, log: { warn: () => {} } }).clean();
    expect(await countDevices(`id = ${userDevice}`)).to.equal(1);
    expect(await countDevices("credential_id IS NULL")).to.equal(5);
    expect(await countDevices("reader LIKE 'credential:%'")).to.equal(VISITOR_PUSH_SUBSCRIPTIONS_PER_APP_MAX);
  });
});
