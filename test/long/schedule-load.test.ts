import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import { Scheduler } from "../../src/operations/triggers/schedule.js";
import { ServiceMetrics } from "../../src/operations/watch/measures.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { insertPublishedActions } from "../harness/published-actions.js";

const NOON = Date.parse("2026-03-02T12:00:00Z");
const CLAIM_COUNT = 200;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

async function makeApp(db: Db): Promise<number> {
  const [organization] = await db.query("INSERT INTO organization (name) VALUES ('o') RETURNING id");
  const made = "INSERT INTO app (organization_id, name, published_at) VALUES ($1, 'a', now()) RETURNING id";
  return (await db.query(made, [organization.id]))[0].id;
}

/** Adds 100 schedules, which `claim` makes due, and `idle` others, which never become due. */
async function prepare(db: Db, idle: number): Promise<void> {
  const appId = (await db.query("SELECT id FROM app"))[0]?.id ?? (await makeApp(db));
  await db.query(
    `INSERT INTO action (app_id, name, code, active, environment, triggers, frequency)
     SELECT $1, 'a' || n, '', true, 'server', '[]', '*/2 * * * *' FROM generate_series(1, 100 + $2::int) n`,
    [appId, idle],
  );
  await db.query(
    "INSERT INTO schedule SELECT id, app_id, frequency, NULL, $1::timestamptz + id * interval '1 second' FROM action",
    [new Date(NOON + 3_600_000)],
  );
  await db.query("ANALYZE");
}

/** Makes the 100 schedules due, and returns the milliseconds until they are claimed. */
async function claim(db: Db): Promise<number> {
  await db.query("DELETE FROM run");
  await db.query(
    "UPDATE schedule SET next_tick = $1 WHERE action_id IN (SELECT action_id FROM schedule ORDER BY action_id LIMIT 100)",
    [new Date(NOON)],
  );
  const scheduler = new Scheduler({
    db,
    now: () => NOON,
    defaultTimezone: "UTC",
    measures: new ServiceMetrics(),
  });
  const startedAt = performance.now();
  await scheduler.claimDueSchedules();
  return performance.now() - startedAt;
}

const median = (samples: readonly number[]) => [...samples].sort((a, b) => a - b)[samples.length >> 1]!;

describe("many schedules", () => {
  let database: FreshDatabase;
  let db: Db;
  let appId: number;

  beforeEach(async () => {
    database = await freshDatabase();
    db = await openDatabase(database.url);
    appId = await makeApp(db);
  });
  afterEach(async () => {
    await db.destroy();
    await database.drop();
  });

  it("are claimed within 5 s if 1,000 of them are due in the same minute", async () => {
    const actionFields = Array.from({ length: 1_000 }, (_, at) => ({
      name: `s${at}`,
      triggers: [{ trigger: "schedule" }],
      frequency: "*/2 * * * *",
    }));
    await insertPublishedActions(db, appId, actionFields, () => NOON - 60_000);
    const startedAt = performance.now();
    await new Scheduler({
      db,
      now: () => NOON,
      defaultTimezone: "UTC",
      measures: new ServiceMetrics(),
    }).claimDueSchedules();
    const durationMs = performance.now() - startedAt;
    process.stdout.write(`1,000 due at once were claimed in ${durationMs.toFixed(0)} ms\n`);
    expect(durationMs).to.be.below(5_000);
    expect((await db.query("SELECT count(*) FROM run WHERE state = 'queued'"))[0].count).to.equal(1_000);
  });

  it("add less than 5 % to the time of claiming 100 others, and no memory, if 100,000 of them are not due", async () => {
    const other = await freshDatabase();
    const otherDb = await openDatabase(other.url);
    await prepare(otherDb, 0);
    await prepare(db, 100_000);
    const claims = { without: [] as number[], within: [] as number[] };
    const heaps: number[] = [];
    // The test alternates between claims in both databases and compares their medians, because the machine's speed varies.
    for (let count = 0; count < CLAIM_COUNT; count += 1) {
      claims.without.push(await claim(otherDb));
      claims.within.push(await claim(db));
      if (count === CLAIM_COUNT / 2 || count === CLAIM_COUNT - 1) heaps.push(heapUsed());
    }
    await otherDb.destroy();
    await other.drop();
    const [without, within] = [median(claims.without), median(claims.within)];
    const growth = (heaps[1]! - heaps[0]!) / 1_048_576;
    process.stdout.write(
      `100 claimed in ${without.toFixed(2)} ms, beside 100,000 not due in ${within.toFixed(2)} ms\n`,
    );
    expect(within / without).to.be.below(1.05);
    expect(growth).to.be.below(1);
  });
});
