/** Tests log events that one statement stores: each belongs to its app and starts only runs of this app, within the app's limit. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { type Db, openDatabase, rows } from "../../src/data/database.js";
import {
  createStoreEventsParameters,
  type NewLogEvent,
  STORE_EVENTS_SQL,
  type StoredLogEvent,
} from "../../src/operations/records/log-event-statement.js";
import { LogEventStore } from "../../src/operations/records/log-events.js";
import { parseLogEvent } from "../../src/rules/log-event-input.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { insertPublishedActions } from "../harness/published-actions.js";

const EVENTS_PER_APP = 1_000;
const UNKNOWN_APP_ID = 999_999;

describe("log events that are stored together", () => {
  let database: FreshDatabase;
  let db: Db;
  let first: number;
  let second: number;
  beforeEach(async () => {
    database = await freshDatabase();
    db = await openDatabase(database.url);
    const [{ id }] = await db.query("INSERT INTO organization (name) VALUES ('o') RETURNING id");
    const insert = "INSERT INTO app (organization_id, name) VALUES ($1, 'a'), ($1, 'b') RETURNING id";
    [first, second] = (await db.query(insert, [id])).map((app: { id: number }) => app.id);
    for (const app of [first, second]) {
      await insertPublishedActions(db, app, [
        { name: "any", triggers: [{ trigger: "log", where: { type: "t" } }] },
        { name: "of-7", triggers: [{ trigger: "log", where: { type: "t", dataSourceId: 7 } }] },
      ]);
    }
  });
  afterEach(async () => {
    await db.destroy();
    await database.drop();
  });

  const event = (appId: number, fields: Partial<NewLogEvent> = {}): NewLogEvent => ({
    appId,
    type: "t",
    openJson: `{"of":${appId}`,
    separator: null,
    receivedUserEmail: null,
    userId: null,
    dataSourceId: null,
    dataSourceEntryId: null,
    appNotificationId: null,
    sessionId: null,
    requestId: randomUUID(),
    runId: null,
    ...fields,
  });
  const store = (events: NewLogEvent[], share = EVENTS_PER_APP) =>
    rows<StoredLogEvent>(
      db,
      STORE_EVENTS_SQL,
      createStoreEventsParameters(events, { limitPerApp: share, getQueuedCount: () => 0 }),
    );

  it("are stored in their order, each with its own data, and start what matches in their own app", async () => {
    const events = [event(second, { dataSourceId: 7 }), event(first), event(second, { type: "other" })];
    await store(events);
    const stored = await db.query(
      `SELECT e.request_id, e.app_id, e.data, count(run.id) AS runs, bool_and(run.app_id = e.app_id) AS own
         FROM log_event e LEFT JOIN run ON run.event_id = e.id GROUP BY e.id ORDER BY e.id`,
    );
    const expected = [second, first, second].map((app_id, at) => {
      const runs = [2, 1, 0][at]!;
      return { request_id: events[at]!.requestId, app_id, data: { of: app_id }, runs, own: runs > 0 ? true : null };
    });
    expect(stored).to.deep.equal(expected);
  });

  it("are stored except one whose app does not exist", async () => {
    const events = [event(first), event(UNKNOWN_APP_ID), event(second)];
    const stored = await store(events);
    expect(new Set(stored.map(({ requestId }) => requestId))).to.deep.equal(
      new Set([events[0]!.requestId, events[2]!.requestId]),
    );
  });

  it("start no more runs of an app than may wait, whatever other apps have waiting", async () => {
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
       SELECT $1, 1, 'production', 'manual', '{}', 'queued' FROM generate_series(1, 17)`,
      [first],
    );
    const stored = await store([...Array.from({ length: 10 }, () => event(first)), event(second)], 20);
    expect(stored.map(({ storedRunCount }) => storedRunCount)).to.deep.equal(Array(11).fill(1));
    const counts = await db.query(
      `SELECT app_id, state, reason, count(*) FROM run WHERE event_id IS NOT NULL
        GROUP BY app_id, state, reason ORDER BY app_id, state`,
    );
    expect(counts).to.deep.equal([
      { app_id: first, state: "queued", reason: null, count: 3 },
      { app_id: first, state: "skipped", reason: "too many runs wait already", count: 7 },
      { app_id: second, state: "queued", reason: null, count: 1 },
    ]);
  });

  it("leave at most 100 skipped runs of an app with the same reason, of which the last counts all further ones", async () => {
    await db.query("UPDATE app SET published_at = NULL WHERE id = $1", [first]);
    await store([...Array.from({ length: 130 }, () => event(first)), event(second)]);
    const counts = await db.query(
      `SELECT app_id, state, tick_count, count(*) FROM run GROUP BY app_id, state, tick_count ORDER BY app_id, tick_count`,
    );
    expect(counts).to.deep.equal([
      { app_id: first, state: "skipped", tick_count: 1, count: 99 },
      { app_id: first, state: "skipped", tick_count: 31, count: 1 },
      { app_id: second, state: "queued", tick_count: 1, count: 1 },
    ]);
  });

  it("share a statement only up to about 1,000 runs, in which each app has its turn", async () => {
    const triggers = [{ trigger: "log" as const, where: { type: "many" } }];
    const actions = Array.from({ length: 200 }, (_, at) => ({ name: `many-${at}`, triggers }));
    await insertPublishedActions(db, first, actions);
    const logEvents = new LogEventStore({
      db,
      queueLimits: { getLastCount: () => ({ limitPerApp: 100_000, getQueuedCount: () => 0 }) } as never,
      receivedDataLimiter: { chargeRows: () => {} } as never,
    });
    const emitter = { kind: "api", credentialId: 1, address: undefined, personId: null, runId: null } as const;
    const add = (appId: number, type: string) => logEvents.store(emitter, appId, parseLogEvent({ type, data: {} }));
    await add(first, "many");
    const [, ...later] = await Promise.all([...Array.from({ length: 20 }, () => add(first, "many")), add(second, "t")]);
    const statements = await db.query(
      `SELECT min(e.id) AS first, count(DISTINCT e.id) AS events, count(run.id) AS runs,
              bool_or(e.app_id = $1) AS has_second
         FROM log_event e LEFT JOIN run ON run.event_id = e.id WHERE e.id > 1
        GROUP BY e.xmin::text ORDER BY 1`,
      [second],
    );
    expect(later).to.have.length(20);
    expect(statements.map(({ events }: { events: number }) => events)).to.deep.equal([6, 5, 5, 5]);
    expect(statements[0]).to.deep.include({ runs: 1_001, has_second: true });
  });
});
