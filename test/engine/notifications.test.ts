import { expect } from "chai";
import pg from "pg";
import { pino } from "pino";
import { createDatabaseNotifications, type DatabaseNotifications } from "../../src/engine/notifications.js";
import { freshDatabase } from "../harness/postgres.js";
import { until } from "../harness/until.js";

const LINGER_MS = 100;
/** SQL condition for connections of this test. Other tests use the same server with other databases. */
const OWN_CONNECTIONS = "datname = current_database() AND application_name = 'svc-app-actions notices'";

describe("a PostgreSQL channel that is followed", () => {
  let database: Awaited<ReturnType<typeof freshDatabase>>;
  let notifications: DatabaseNotifications;
  let client: pg.Client;
  let received: string[];

  before(async () => {
    database = await freshDatabase();
    const channels = { channels: ["always"], followedChannels: ["now_and_then"] };
    const log = pino({ level: "silent" });
    notifications = createDatabaseNotifications({ url: database.url, ...channels, lingerMs: LINGER_MS, log });
    await notifications.start();
    client = new pg.Client(database.url);
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await notifications?.stop();
    await database?.drop();
  });
  beforeEach(() => {
    received = [];
  });

  const follow = (name: string) =>
    notifications.follow(
      "now_and_then",
      (notice) => received.push(`${name} ${notice}`),
      () => received.push(`${name} gap`),
    );
  const notify = (notice: string, channel = "now_and_then") =>
    client.query("SELECT pg_notify($1, $2)", [channel, notice]);
  /** Resolves when all earlier notifications have arrived. */
  async function waitForNotifications(): Promise<void> {
    let has = false;
    const end = notifications.listen("always", () => {
      has = true;
    });
    await notify("", "always");
    await until(() => has);
    end();
  }
  const readLastStatement = async () =>
    (await client.query(`SELECT query FROM pg_stat_activity WHERE ${OWN_CONNECTIONS}`)).rows[0]?.query;

  it("is listened to from the first follower on, who waits for that; others need not wait", async () => {
    await notify("before");
    await waitForNotifications();
    const end = follow("first");
    await until(() => received.length > 0);
    const endOther = follow("second");
    await notify("1");
    await waitForNotifications();
    expect(received).to.deep.equal(["first gap", "first 1", "second 1"]);
    end();
    await notify("2");
    await waitForNotifications();
    expect(received.slice(3)).to.deep.equal(["second 2"]);
    endOther();
    await until(async () => (await readLastStatement()) === 'UNLISTEN "now_and_then"');
  });

  it("is no longer listened to some time after its last follower has left, unless another one follows", async () => {
    const end = follow("first");
    await until(() => received.length > 0);
    end();
    follow("second")();
    const endThird = follow("third");
    await new Promise((resolve) => setTimeout(resolve, 3 * LINGER_MS));
    received = [];
    await notify("still");
    await waitForNotifications();
    expect(received).to.deep.equal(["third still"]);
    endThird();
    await until(async () => (await readLastStatement()) === 'UNLISTEN "now_and_then"');
    const endFourth = follow("fourth");
    await until(async () => (await readLastStatement()) === 'LISTEN "now_and_then"');
    endFourth();
    await until(async () => (await readLastStatement()) === 'UNLISTEN "now_and_then"');
  });

  it("is listened to again after a lost connection, of which each follower is notified", async () => {
    const end = follow("first");
    await until(() => received.length > 0);
    received = [];
    await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${OWN_CONNECTIONS}`);
    await until(() => received.length > 0);
    await notify("again");
    await waitForNotifications();
    expect(received).to.deep.equal(["first gap", "first again"]);
    end();
  });

  it("must have an allowed name", () => {
    expect(() =>
      notifications.follow(
        "always",
        () => {},
        () => {},
      ),
    ).to.throw("the PostgreSQL channel always is not in the list of channels that can be followed");
  });
});
