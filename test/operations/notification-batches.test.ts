/** Tests how many users the service reads at once for a notification, and the order in which it sends notifications of several apps. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { type Logger, pino } from "pino";
import { type Db, rows, type SqlClient } from "../../src/data/database.js";
import { createNotificationFeed } from "../../src/operations/notifications/notification-feed.js";
import { PushSender } from "../../src/operations/notifications/push-sender.js";
import { createScopeMatcher, type NotificationReader } from "../../src/operations/notifications/reader.js";
import type { Caller } from "../../src/rules/access.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

describe("notifications for many users", () => {
  let database: ConnectedDatabase;
  before(async () => {
    database = await connectedDatabase(3);
    await database.db.query("INSERT INTO organization (name) VALUES ('o')");
    await database.db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b')");
    await database.db.query("INSERT INTO data_source (app_id, organization_id, name) VALUES (1, 1, 'users')");
  });
  after(() => database.stop());

  /** Creates credentials of pages, and returns their IDs. With `signsIn`, an app user is signed in to each page. */
  async function createCredentials(count: number, signsIn: boolean): Promise<number[]> {
    const { db } = database;
    const credentials = await rows<{ id: number }>(
      db,
      `INSERT INTO credential (kind, hash, app_id)
       SELECT 'live', uuid_send(gen_random_uuid()), 1 FROM generate_series(1, $1::int) RETURNING id`,
      [count],
    );
    const ids = credentials.map(({ id }) => id);
    if (signsIn) {
      const sql = `INSERT INTO app_user_session (credential_id, app_id, data_source_id, entry_id, columns, proof)
        SELECT id, 1, 1, id, '[]', '' FROM unnest($1::bigint[]) AS id`;
      await rows(db, sql, [ids]);
    }
    return ids;
  }

  function countStatements(db: Db): { client: SqlClient; count: () => number } {
    let count = 0;
    const client: SqlClient = {
      query: (...statement: Parameters<SqlClient["query"]>) => {
        count += 1;
        return db.query(...statement);
      },
    };
    return { client, count: () => count };
  }

  it("read only a few users at a time", async () => {
    const { db } = database;
    const ids = await createCredentials(100, true);
    const reads: number[] = [];
    const findCredentialsInScope = createScopeMatcher(async (_, __, credentialIds) => {
      reads.push(credentialIds.length);
      return new Map(credentialIds.map((id) => [id, { id, dataSourceId: 1, data: { even: id % 2 === 0 } }]));
    });
    const found = await findCredentialsInScope(db, 1, ids, { even: true });
    expect([...found]).to.have.members(ids.filter((id) => id % 2 === 0));
    expect(reads).to.deep.equal([32, 32, 32, 4]);
    expect((await findCredentialsInScope(db, 1, ids, null)).size, "for all").to.equal(100);
    expect(reads, "for all").to.have.length(4);
  });

  it("read no user of the devices of anonymous visitors, and each user once", async () => {
    const { client, count } = countStatements(database.db);
    const reads: (readonly number[])[] = [];
    const findCredentialsInScope = createScopeMatcher(async (executor, _, credentialIds) => {
      reads.push(credentialIds);
      await executor.query("SELECT");
      return new Map(credentialIds.map((id) => [id, { id: 1, dataSourceId: 1, data: {} }]));
    });
    const visitors = await createCredentials(1_000, false);
    expect([...(await findCredentialsInScope(client, 1, visitors, { id: 1 }))]).to.deep.equal([]);
    expect(count()).to.be.at.most(3);
    expect(reads, "of visitors").to.deep.equal([]);
    const [user] = (await createCredentials(1, true)) as [number];
    const found = await findCredentialsInScope(client, 1, Array<number>(20).fill(user), { id: 1 });
    expect([...found]).to.deep.equal([user]);
    expect(reads, "of one session with 20 devices").to.deep.equal([[user]]);
  });

  it("that were published before a subscription are only for the user who is signed in when they are read", async () => {
    const { db } = database;
    await db.query(
      `INSERT INTO notification (app_id, status, data, scope, published_at, cursor) VALUES
         (2, 'published', '{"title": "of the user"}', '{"id": 7}', now(), 1), (2, 'published', '{"title": "all"}', NULL, now(), 2)`,
    );
    const gate = Promise.withResolvers<void>();
    const gatedDb = new Proxy(db, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        if (name !== "query") return value.bind(target);
        return async (...statement: Parameters<Db["query"]>) => {
          await gate.promise;
          return db.query(...statement);
        };
      },
    });
    let user: NotificationReader["user"] = { id: 7 };
    const feed = createNotificationFeed({
      db: gatedDb,
      notices: { listen: () => {}, onGap: () => {} } as never,
      findReader: async () => ({ key: "entry:1:7", user, isVisitor: false, canReadAll: false }),
      findCredentialsInScope: async () => new Set(),
      log: {} as Logger,
    });
    const titles: unknown[] = [];
    const all = Promise.withResolvers<void>();
    // The first subscription starts a read of the database, which the test holds back. The second subscription uses the same read.
    const caller = { credentialId: 1 } as Caller;
    const stops = [
      (await feed.follow(2, caller, null)).listen(
        () => {},
        () => {},
      ),
    ];
    const { listen } = await feed.follow(2, caller, 0);
    const receive = ({ data }: { data: Record<string, unknown> }) => {
      titles.push(data["title"]);
      if (data["title"] === "all") all.resolve();
    };
    stops.push(listen(receive, () => {}));
    user = null;
    gate.resolve();
    await all.promise;
    for (const stop of stops) stop();
    await db.query("DELETE FROM notification");
    expect(titles).to.deep.equal(["all"]);
  });

  it("are pushed in turns of the apps, and each before the devices of the next are listed", async () => {
    const { db } = database;
    for (const appId of [1, 2])
      await db.query(
        "INSERT INTO push_subscription (app_id, reader, endpoint, p256dh, auth) VALUES ($1, 'person:1', 'e', 'k', 'a')",
        [appId],
      );
    await db.query(
      `INSERT INTO notification (app_id, status, data, push_at, published_at, cursor)
       SELECT CASE WHEN n = 3 THEN 2 ELSE 1 END, 'published', '{}', to_timestamp(n), now(), n FROM generate_series(1, 3) AS n`,
    );
    const sent: [appId: number, expanded: number][] = [];
    let expanded = 0;
    const insertsCounted = new Proxy(db, {
      get: (target, name) => {
        if (name === "transaction") expanded += 1;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const sender = new PushSender({
      db: insertsCounted,
      readVapidKeys: (appId) => {
        sent.push([appId, expanded]);
        return Promise.reject(new Error("no keys"));
      },
      findCredentialsInScope: createScopeMatcher(async () => new Map()),
      connections: {} as never,
      subject: "mailto:a@example.com",
      processId: randomUUID(),
      now: () => Date.UTC(2026, 0, 1),
      log: pino({ level: "silent" }),
    });
    await sender.sendDuePushes();
    await sender.drain(AbortSignal.timeout(60_000));
    expect(sent).to.deep.equal([
      [1, 1],
      [2, 2],
      [1, 4],
    ]);
    expect(await rows(db, "SELECT FROM notification WHERE push_at IS NOT NULL")).to.have.length(0);
  });
});
