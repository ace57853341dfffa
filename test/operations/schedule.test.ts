import { availableParallelism } from "node:os";
import { expect } from "chai";
import { type Db, openDatabase } from "../../src/data/database.js";
import { ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE } from "../../src/limits.js";
import { Scheduler } from "../../src/operations/triggers/schedule.js";
import { SchedulePause } from "../../src/operations/triggers/schedule-pause.js";
import { TriggerIndex } from "../../src/operations/triggers/trigger-index.js";
import { createScheduleWeekReader } from "../../src/operations/triggers/week.js";
import { ServiceMetrics } from "../../src/operations/watch/measures.js";
import type { Caller } from "../../src/rules/access.js";
import { computeJitterDelayMs } from "../../src/rules/ticks.js";
import { type ConnectedDatabase, connectedDatabase, emptyTables } from "../harness/connected-database.js";
import { insertPublishedActions, type LiveVersionFields } from "../harness/published-actions.js";
import { longTest, runsAll } from "../harness/samples.js";

const MINUTE = 60_000;
const NOON = Date.parse("2026-03-02T12:00:00Z");
const TABLES = ["audit_entry", "run", "execution_log", "schedule", "action", "app", "organization"];
const SCHEDULED: LiveVersionFields = { name: "nightly", triggers: [{ trigger: "schedule" }], frequency: "*/2 * * * *" };

describe("schedules", () => {
  let database: ConnectedDatabase;
  let db: Db;
  let appId: number;
  let time = NOON - MINUTE;
  let schedule: Scheduler;
  const now = () => time;

  before(async () => {
    database = await connectedDatabase(10);
    ({ db } = database);
  });
  beforeEach(async () => {
    time = NOON - MINUTE;
    await emptyTables(db, TABLES);
    const [organization] = await db.query("INSERT INTO organization (name) VALUES ('o') RETURNING id");
    const [app] = await db.query("INSERT INTO app (organization_id, name) VALUES ($1, 'a') RETURNING id", [
      organization.id,
    ]);
    appId = app.id;
    schedule = new Scheduler({ db, now, defaultTimezone: "UTC", measures: new ServiceMetrics() });
  });
  after(() => database.stop());

  const publish = (...liveVersions: LiveVersionFields[]) => insertPublishedActions(db, appId, liveVersions, now);
  const runs = () => db.query("SELECT * FROM run ORDER BY tick, id");
  const ticks = async () =>
    (await runs()).map((run: { tick: Date; state: string; reason: string | null }) => [
      run.tick.toISOString().slice(11, 16),
      run.reason ?? run.state,
    ]);
  const finish = () => db.query("UPDATE run SET state = 'completed', finished_at = now() WHERE finished_at IS NULL");

  it("write no tick before the database's clock reaches it, even if the clock of the process is ahead", async () => {
    await publish(SCHEDULED);
    const setDue = (at: string) => db.query(`UPDATE schedule SET next_tick = now() ${at}`);
    await setDue("+ interval '1 hour'");
    time = Date.now() + 2 * 60 * MINUTE;
    expect(await schedule.claimDueSchedules()).to.be.within(time, time + 1_000);
    expect(await runs()).to.deep.equal([]);
    await setDue("- interval '1 second'");
    time = Date.now();
    await schedule.claimDueSchedules();
    expect(await db.query("SELECT queued_at >= tick AS due, state FROM run")).to.deep.equal([
      { due: true, state: "queued" },
    ]);
  });

  it("start a run with jitter at a fixed offset after each tick, and count lateness from there", async () => {
    const [copy] = await publish({ ...SCHEDULED, jitterSeconds: 300 });
    const offset = computeJitterDelayMs(copy!.id, 300);
    expect(offset).to.be.within(1, 300_000);
    time = NOON + offset - 1;
    expect(await schedule.claimDueSchedules()).to.equal(NOON + offset);
    expect([await ticks(), await schedule.readLagMs(), await schedule.countDueTicks()]).to.deep.equal([[], 0, 1]);
    time = NOON + offset;
    expect(await schedule.claimDueSchedules()).to.equal(NOON + 2 * MINUTE + offset);
    expect(await ticks()).to.deep.equal([["12:00", "queued"]]);
    await finish();
    time = NOON + 2 * MINUTE + offset + 59_000;
    await schedule.claimDueSchedules();
    await finish();
    time = NOON + 4 * MINUTE + offset + 61_000;
    await schedule.claimDueSchedules();
    expect((await ticks()).slice(1)).to.deep.equal([
      ["12:02", "completed"],
      ["12:04", "down at that time"],
    ]);
  });

  it("start at the tick again if a process of the previous release has moved the tick on", async () => {
    await publish({ ...SCHEDULED, jitterSeconds: 300 });
    await db.query("UPDATE schedule SET next_tick = $1", [new Date(NOON)]);
    time = NOON;
    const [{ offset_ms: offset }] = await db.query("SELECT offset_ms FROM schedule");
    expect(await schedule.claimDueSchedules()).to.equal(NOON + 2 * MINUTE + offset);
    expect(await ticks()).to.deep.equal([["12:00", "queued"]]);
  });

  it("are spread evenly by jitter, and reported when too many start together", async () => {
    const offsets = Array.from({ length: 1_000 }, (_, at) => computeJitterDelayMs(at + 1, 60));
    for (let second = 0; second < 60; second += 10) {
      const within = offsets.filter((offset) => offset >= second * 1_000 && offset < (second + 10) * 1_000);
      expect(within.length, `from second ${second}`).to.be.within(100, 240);
    }
    expect([computeJitterDelayMs(1, 0), computeJitterDelayMs(1, null)]).to.deep.equal([0, 0]);
    const most = ESTIMATED_SCHEDULED_RUNS_PER_CORE_AND_MINUTE * availableParallelism();
    await publish(SCHEDULED, { ...SCHEDULED, name: "spread", jitterSeconds: 300 });
    const week = createScheduleWeekReader({ db, now, defaultTimezone: "UTC" });
    expect((await week(appId)).crowded).to.deep.equal([]);
    await db.query(
      `INSERT INTO action (app_id, name, code, active, environment, action_version, updated_at)
       SELECT $1, 'a' || n, '', true, 'server', 'v3', now() FROM generate_series(1, $2::int) n`,
      [appId, most],
    );
    await db.query(
      `INSERT INTO schedule (action_id, app_id, frequency, next_tick)
       SELECT id, app_id, '*/2 * * * *', $1 FROM action WHERE code = ''`,
      [new Date(NOON)],
    );
    const tick = new Date(NOON).toISOString();
    expect((await week(appId)).crowded).to.deep.equal([{ tick, count: most + 1 }]);
  });

  it("queue one run of the live version at its tick, with the payload {}", async () => {
    const [copy] = await publish(SCHEDULED);
    await schedule.claimDueSchedules();
    expect(await runs()).to.deep.equal([]);
    time = NOON;
    expect(await schedule.claimDueSchedules()).to.equal(NOON + 2 * MINUTE);
    const [run, ...more] = await runs();
    expect(more).to.deep.equal([]);
    expect(run).to.deep.include({ action_id: copy!.id, copy: "production", trigger: "schedule", state: "queued" });
    expect(run.payload).to.deep.equal({});
    expect(run.tick.getTime()).to.equal(NOON);
  });

  it("fire only for active actions with environment server or any, a schedule trigger and a frequency", async () => {
    await publish(
      { ...SCHEDULED, name: "inactive", active: false },
      { ...SCHEDULED, name: "client", environment: "client" },
      { ...SCHEDULED, name: "untriggered", triggers: [{ trigger: "manual" }] },
      { ...SCHEDULED, name: "unset", frequency: null },
      { ...SCHEDULED, name: "any", environment: "any" },
    );
    const kept = await db.query("SELECT name FROM schedule JOIN action ON action.id = action_id");
    expect(kept).to.deep.equal([{ name: "any" }]);
  });

  it("use their time zone, and the default if they have none", async () => {
    const daily = { ...SCHEDULED, frequency: "0 9 * * *" };
    await publish({ ...daily, name: "ours" }, { ...daily, name: "tokyo", timezone: "Asia/Tokyo" });
    const kept = await db.query(
      "SELECT name, next_tick FROM schedule JOIN action ON action.id = action_id ORDER BY name",
    );
    expect(kept.map((row: { next_tick: Date }) => row.next_tick.toISOString())).to.deep.equal([
      "2026-03-03T09:00:00.000Z",
      "2026-03-03T00:00:00.000Z",
    ]);
  });

  it("skip a tick while the earlier run executes, and fire again after it", async () => {
    await publish(SCHEDULED);
    for (const minute of [0, 2]) {
      time = NOON + minute * MINUTE;
      await schedule.claimDueSchedules();
    }
    await finish();
    time = NOON + 4 * MINUTE;
    await schedule.claimDueSchedules();
    expect(await ticks()).to.deep.equal([
      ["12:00", "completed"],
      ["12:02", "still running"],
      ["12:04", "queued"],
    ]);
  });

  it("list the ticks that were missed while no scheduler ran, and do not catch up", async () => {
    await publish(SCHEDULED);
    time = NOON + 5 * MINUTE;
    await schedule.claimDueSchedules();
    expect(await ticks()).to.deep.equal([
      ["12:00", "down at that time"],
      ["12:02", "down at that time"],
      ["12:04", "queued"],
    ]);
  });

  it("give the reason late, not down, to a tick that a living scheduler claimed too late", async () => {
    await publish(SCHEDULED);
    await db.query(
      `INSERT INTO instance (id, roles, started_at, lease_until)
       VALUES (gen_random_uuid(), '{scheduler}', $1, now() + interval '1 hour')`,
      [new Date(NOON + MINUTE)],
    );
    time = NOON + 3 * MINUTE + 1;
    await schedule.claimDueSchedules();
    expect(await ticks()).to.deep.equal([
      ["12:00", "down at that time"],
      ["12:02", "late by more than 60 s"],
    ]);
  });

  it("skip every tick of an app that is not published, with the reason", async () => {
    await publish(SCHEDULED);
    await db.query("UPDATE app SET published_at = NULL");
    time = NOON;
    await schedule.claimDueSchedules();
    expect(await ticks()).to.deep.equal([["12:00", "app unpublished"]]);
  });

  it("stop while the app's are paused, with a row for each tick, and continue without catching up", async () => {
    await publish(SCHEDULED);
    const pause = new SchedulePause(db);
    const editor = { personId: null, credentialId: null } as unknown as Caller;
    const since = await pause.setPaused(editor, appId, true);
    expect(await pause.setPaused(editor, appId, true)).to.deep.equal(since);
    time = NOON;
    await schedule.claimDueSchedules();
    expect(await pause.setPaused(editor, appId, false)).to.equal(null);
    expect(await pause.readPauseTime(appId)).to.equal(null);
    time = NOON + 2 * MINUTE;
    await schedule.claimDueSchedules();
    expect(await ticks()).to.deep.equal([
      ["12:00", "schedules paused"],
      ["12:02", "queued"],
    ]);
  });

  it("queue one of two ticks that are both in time, and skip the other because a run executes", async () => {
    await publish({ ...SCHEDULED, frequency: "* * * * *" });
    time = NOON;
    await schedule.claimDueSchedules();
    await finish();
    time = NOON + 2 * MINUTE;
    await schedule.claimDueSchedules();
    expect((await ticks()).slice(1)).to.deep.equal([
      ["12:01", "queued"],
      ["12:02", "still running"],
    ]);
  });

  it("have each pause and each resumption in the audit log", async () => {
    const pause = new SchedulePause(db);
    const editor = { personId: null, credentialId: null } as unknown as Caller;
    for (const isPaused of [true, false]) await pause.setPaused(editor, appId, isPaused);
    const entries = await db.query("SELECT app_id AS app, type FROM audit_entry ORDER BY id");
    expect(entries).to.deep.equal([
      { app: appId, type: "app.schedules.pause" },
      { app: appId, type: "app.schedules.resume" },
    ]);
  });

  it("limit the rows of one pause, and count the rest in one row", async () => {
    await publish(SCHEDULED);
    time = NOON + 600 * MINUTE;
    await schedule.claimDueSchedules();
    const written = await runs();
    expect(written).to.have.length(102);
    const total = written.reduce((sum: number, run: { tick_count: number }) => sum + run.tick_count, 0);
    expect(total).to.equal(301);
    expect(written.at(-1)).to.deep.include({ state: "queued", tick_count: 1 });
  });

  it("give each tick one row, for any number of concurrent schedulers", async () => {
    const count = runsAll() ? 1_000 : 100;
    const liveVersions = Array.from({ length: count }, (_, at) => ({ ...SCHEDULED, name: `s${at}` }));
    await publish(...liveVersions);
    time = NOON;
    const others = Array.from(
      { length: 3 },
      () => new Scheduler({ db, now, defaultTimezone: "UTC", measures: new ServiceMetrics() }),
    );
    await Promise.all(others.map((other) => other.claimDueSchedules()));
    const [queued] = await db.query(
      "SELECT count(*), count(DISTINCT action_id) AS distinct FROM run WHERE state = 'queued'",
    );
    expect(queued).to.deep.equal({ count, distinct: count });
    expect(await schedule.readLagMs()).to.equal(0);
  });

  it("are counted if they are due within the next minute, unless the app is unpublished or paused", async () => {
    await publish(SCHEDULED, { ...SCHEDULED, name: "b" }, { ...SCHEDULED, name: "c", frequency: "0 13 * * *" });
    expect(await schedule.countDueTicks()).to.equal(2);
    time = NOON - MINUTE - 1;
    expect(await schedule.countDueTicks()).to.equal(0);
    time = NOON + MINUTE / 2;
    expect(await schedule.countDueTicks(), "what waits already").to.equal(2);
    await db.query("UPDATE app SET schedules_paused_at = now() WHERE id = $1", [appId]);
    expect(await schedule.countDueTicks()).to.equal(0);
    await db.query("UPDATE app SET schedules_paused_at = NULL, published_at = NULL WHERE id = $1", [appId]);
    expect(await schedule.countDueTicks()).to.equal(0);
  });

  it("keep a tick that is due when the action is published again before it is claimed", async () => {
    const [copy] = await publish(SCHEDULED);
    time = NOON + 1_000;
    await new TriggerIndex({ now, defaultTimezone: "UTC" }).apply(db, { ...copy!, frequency: "0 * * * *" });
    expect(await schedule.readLagMs()).to.equal(1_000);
    expect(await schedule.claimDueSchedules()).to.equal(NOON + 60 * MINUTE);
    expect(await ticks()).to.deep.equal([["12:00", "queued"]]);
  });

  it("keep a tick whose run waits for its jitter when the action is published again", async () => {
    const [copy] = await publish({ ...SCHEDULED, frequency: "0 * * * *", jitterSeconds: 300 });
    const offset = computeJitterDelayMs(copy!.id, 300);
    time = NOON;
    await new TriggerIndex({ now, defaultTimezone: "UTC" }).apply(db, copy!);
    time = NOON + offset;
    expect(await schedule.claimDueSchedules()).to.equal(NOON + 60 * MINUTE + offset);
    expect(await ticks()).to.deep.equal([["12:00", "queued"]]);
  });

  it("end with the live version: removed, switched off or without its trigger", async () => {
    const copies = await publish(SCHEDULED, { ...SCHEDULED, name: "b" }, { ...SCHEDULED, name: "c" });
    const index = new TriggerIndex({ now, defaultTimezone: "UTC" });
    await db.query("DELETE FROM action WHERE id = $1", [copies[0]!.id]);
    await index.apply(db, { ...copies[1]!, active: false });
    await index.apply(db, { ...copies[2]!, triggers: [] });
    expect(await db.query("SELECT 1 FROM schedule")).to.deep.equal([]);
  });

  longTest("cost nothing while they are not due: a check reads only the front of the index", async () => {
    await db.query(
      `INSERT INTO action (app_id, master_id, name, code, active, environment, triggers, frequency)
       SELECT $1, NULL, 'a' || n, '', true, 'server', '[]', '0 0 1 1 *' FROM generate_series(1, 100000) n`,
      [appId],
    );
    await db.query(
      `INSERT INTO schedule SELECT id, app_id, frequency, NULL, $1::timestamptz + id * interval '1 second' FROM action`,
      [new Date(NOON + MINUTE)],
    );
    await db.query("ANALYZE schedule");
    time = NOON;
    const singleDb = await openDatabase(database.url, 1);
    const read = async () => {
      await singleDb.query("SELECT pg_stat_force_next_flush()");
      const [row] = await singleDb.query(
        "SELECT sum(seq_tup_read + idx_tup_fetch)::int AS read FROM pg_stat_user_tables WHERE relname = 'schedule'",
      );
      return row.read as number;
    };
    const single = new Scheduler({ db: singleDb, now, defaultTimezone: "UTC", measures: new ServiceMetrics() });
    const before = await read();
    for (let look = 0; look < 10; look += 1) await single.claimDueSchedules();
    expect((await read()) - before).to.be.at.most(20);
    await singleDb.destroy();
  });
});
