/** Tests the database notifications of queued runs: each statement that queues runs sends one notification for each app. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import pg from "pg";
import { type Db, rows } from "../../src/data/database.js";
import { createStoreEventsParameters, STORE_EVENTS_SQL } from "../../src/operations/records/log-event-statement.js";
import { QUEUED_RUN_CHANNEL } from "../../src/operations/records/queue-limits.js";
import { insertOnDemandRun, insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { Scheduler } from "../../src/operations/triggers/schedule.js";
import { ServiceMetrics } from "../../src/operations/watch/measures.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { insertPublishedActions } from "../harness/published-actions.js";

const END = "end of the test";

describe("a queued run", () => {
  let database: ConnectedDatabase;
  let db: Db;
  let listener: pg.Client;
  let received: string[] = [];
  let ended = () => {};

  before(async () => {
    database = await connectedDatabase(2);
    ({ db } = database);
    await db.query("INSERT INTO organization (name) VALUES ('o')");
    await db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b')");
    listener = new pg.Client(database.url);
    await listener.connect();
    await listener.query(`LISTEN ${QUEUED_RUN_CHANNEL}`);
    listener.on("notification", ({ payload }) => (payload === END ? ended() : received.push(payload!)));
  });
  after(async () => {
    await listener.end();
    await database.stop();
  });

  /** Returns the notifications that `work` sends. Waits for a last notification, which arrives after all others. */
  async function collectNotices(work: () => Promise<unknown>): Promise<string[]> {
    received = [];
    await work();
    const last = new Promise<void>((resolve) => (ended = resolve));
    await db.query("SELECT pg_notify($1, $2)", [QUEUED_RUN_CHANNEL, END]);
    await last;
    return received;
  }

  const run = {
    appId: 1,
    copy: "production",
    payload: "{}",
    personId: null,
    credentialId: null,
    idempotencyKey: null,
  } as const;

  it("is announced with its app if there is another runner, and not before it can start", async () => {
    const stored = { ...run, actionId: 1, trigger: "manual" } as const;
    expect(await collectNotices(() => insertRunByActionId(db, stored, null))).to.deep.equal(["1"]);
    expect(await collectNotices(() => insertRunByActionId(db, stored, randomUUID()))).to.deep.equal([]);
    const concurrency = { limit: 1, policy: "queue", key: null } as const;
    await insertPublishedActions(db, 2, [
      { name: "n", triggers: [{ trigger: "manual" }] },
      { name: "limited", triggers: [{ trigger: "manual" }], concurrency },
    ]);
    const processId = randomUUID();
    const access = { metRules: null, user: null, meetsRule: async () => true };
    const accept = (name: string, holder: string | null) => {
      const accepted = { ...run, appId: 2, ref: { name }, trigger: "manual", needsPublishedApp: true, access } as const;
      return insertOnDemandRun(db, accepted, processId, holder);
    };
    const addRunner = (id: string) =>
      db.query("INSERT INTO instance (id, roles, lease_until) VALUES ($1, '{runner}', now() + interval '1 hour')", [
        id,
      ]);
    await addRunner(processId);
    expect(await collectNotices(() => accept("n", null))).to.deep.equal([]);
    await addRunner(randomUUID());
    expect(await collectNotices(() => accept("n", null))).to.deep.equal(["2"]);
    expect(await collectNotices(() => accept("n", randomUUID()))).to.deep.equal([]);
    expect(await collectNotices(() => accept("limited", null))).to.deep.equal([]);
  });

  it("of a tick is announced once it is written", async () => {
    await insertPublishedActions(db, 1, [{ name: "s", triggers: [{ trigger: "schedule" }], frequency: "*/2 * * * *" }]);
    await db.query("UPDATE schedule SET next_tick = now() - interval '1 second'");
    const schedule = new Scheduler({ db, now: Date.now, defaultTimezone: "UTC", measures: new ServiceMetrics() });
    expect(await collectNotices(() => schedule.claimDueSchedules())).to.deep.equal(["1"]);
  });

  it("of a log event is announced, once for each app for any number of runs", async () => {
    for (const app of [1, 2])
      await insertPublishedActions(db, app, [{ name: "l", triggers: [{ trigger: "log", where: { type: "t" } }] }]);
    const event = (appId: number) => ({
      ...{
        appId,
        type: "t",
        openJson: `{"of":${appId}`,
        separator: null,
        receivedUserEmail: null,
        userId: null,
        dataSourceId: null,
      },
      ...{ dataSourceEntryId: null, appNotificationId: null, sessionId: null, requestId: randomUUID(), runId: null },
    });
    const values = createStoreEventsParameters([1, 2, 1, 2].map(event), { limitPerApp: 100, getQueuedCount: () => 0 });
    expect((await collectNotices(() => rows(db, STORE_EVENTS_SQL, values))).sort()).to.deep.equal(["1", "2"]);
  });

  it("of a process of the previous release is announced for any app", async () => {
    expect(await collectNotices(() => db.query("SELECT svc_wake(1)"))).to.deep.equal([""]);
    expect(await collectNotices(() => db.query("SELECT svc_wake_all('{1,2}')"))).to.deep.equal([""]);
    expect(await collectNotices(() => db.query("SELECT svc_wake_all('{}')"))).to.deep.equal([]);
  });
});
