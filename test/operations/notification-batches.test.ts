/** Tests how many users the service reads at once for a notification, and the order in which it sends notifications of several apps. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Logger } from "pino";
import { rows } from "../../src/data/database.js";
import { PushSender } from "../../src/operations/notifications/push-sender.js";
import { createScopeMatcher } from "../../src/operations/notifications/reader.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

describe("notifications for many users", () => {
  let database: ConnectedDatabase;
  before(async () => {
    database = await connectedDatabase(3);
    await database.db.query("INSERT INTO organization (name) VALUES ('o')");
    await database.db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b')");
  });
  after(() => database.stop());

  it("read only a few users at a time", async () => {
    const { db } = database;
    const credentials: { id: number }[] = await db.query(
      "INSERT INTO credential (kind, hash, app_id) SELECT 'live', int4send(n), 1 FROM generate_series(1, 100) AS n RETURNING id",
    );
    const ids = credentials.map(({ id }) => id);
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
      log: {} as Logger,
    });
    await sender.sendDue();
    await sender.drain(AbortSignal.timeout(60_000));
    expect(sent).to.deep.equal([
      [1, 1],
      [2, 2],
      [1, 4],
    ]);
    expect(await rows(db, "SELECT FROM notification WHERE push_at IS NOT NULL")).to.have.length(0);
  });
});
