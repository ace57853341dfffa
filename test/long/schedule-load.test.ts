import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import type { DataSource } from "typeorm";
import { openDatabase } from "../../src/data/database.js";
import { createSchedule } from "../../src/operations/schedule.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { publishDirectly } from "../harness/production-copies.js";

const NOON = Date.parse("2026-03-02T12:00:00Z");
const LOOKS = 2_000;
const ROUNDS = 5;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe("schedules in number", () => {
  let database: FreshDatabase;
  let db: DataSource;
  let appId: number;

  beforeEach(async () => {
    database = await freshDatabase();
    db = await openDatabase(database.url);
    const [organization] = await db.query("INSERT INTO organization (name) VALUES ('o') RETURNING id");
    const made = "INSERT INTO app (organization_id, name) VALUES ($1, 'a') RETURNING id";
    appId = (await db.query(made, [organization.id]))[0].id;
  });
  afterEach(async () => {
    await db.destroy();
    await database.drop();
  });

  it("that are due at one minute are claimed within 5 s, 1,000 of them", async () => {
    const wanted = Array.from({ length: 1_000 }, (_, at) => ({
      name: `s${at}`,
      triggers: [{ trigger: "schedule" }],
      frequency: "*/2 * * * *",
    }));
    await publishDirectly(db, appId, wanted, () => NOON - 60_000);
    const begun = performance.now();
    await createSchedule({ db, now: () => NOON, defaultTimezone: "UTC" }).claimDue();
    const took = performance.now() - begun;
    process.stdout.write(`1,000 due at once were claimed in ${took.toFixed(0)} ms\n`);
    expect(took).to.be.below(5_000);
    expect((await db.query("SELECT count(*) FROM run WHERE state = 'queued'"))[0].count).to.equal(1_000);
  });

  it("that are not due add less than 5% to what a look costs, 100,000 of them, and nothing to memory", async () => {
    const schedule = createSchedule({ db, now: () => NOON, defaultTimezone: "UTC" });
    const look = async () => {
      const begun = performance.now();
      for (let count = 0; count < LOOKS; count += 1) await schedule.claimDue();
      return performance.now() - begun;
    };
    const best = async () => {
      const rounds: number[] = [];
      while (rounds.length < ROUNDS) rounds.push(await look());
      return Math.min(...rounds);
    };
    await look();
    const [empty, emptyHeap] = [await best(), heapUsed()];
    await db.query(
      `INSERT INTO action (app_id, name, code, active, environment, triggers, frequency)
       SELECT $1, 'a' || n, '', true, 'server', '[]', '0 0 1 1 *' FROM generate_series(1, 100000) n`,
      [appId],
    );
    await db.query(
      "INSERT INTO schedule SELECT id, app_id, frequency, NULL, $1::timestamptz + id * interval '1 second' FROM action",
      [new Date(NOON + 60_000)],
    );
    await db.query("ANALYZE");
    const [full, fullHeap] = [await best(), heapUsed()];
    const growth = (fullHeap - emptyHeap) / 1_048_576;
    process.stdout.write(
      `a look: ${(empty / LOOKS).toFixed(3)} ms, with 100,000 not due ${(full / LOOKS).toFixed(3)} ms\n`,
    );
    expect(full / empty).to.be.below(1.05);
    expect(growth).to.be.below(1);
  });
});
