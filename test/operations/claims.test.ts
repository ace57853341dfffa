/** Tests the claim of the next queued run: which run is claimed, with any queue and with several processes that claim at once. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import { type ConnectedDatabase, connectedDatabase, emptyTables } from "../harness/connected-database.js";
import { countReadings } from "../harness/plans.js";

const HOLDER = randomUUID();
const APPS = [1, 2, 3, 4, 5];
const SLOT_LIMIT = 3;
const ROUNDS = 40;
const PROCESSES = 4;
const ENDED_RUNS = 30_000;
const READ_ROWS_MAX = 60;

interface QueuedRow {
  id: number;
  appId: number;
  isClaimable: boolean;
}

/** Values of a row that decide whether the run can be claimed. */
const ROW_KINDS = [
  { isClaimable: true, columns: { state: "queued", trigger: "manual" } },
  { isClaimable: true, columns: { state: "queued", trigger: "schedule" } },
  { isClaimable: false, columns: { state: "queued", trigger: "schedule", queued_at: "2020-01-01" } },
  { isClaimable: false, columns: { state: "queued", trigger: "manual", waits_for: "debounce" } },
  { isClaimable: false, columns: { state: "running", trigger: "manual", holder: HOLDER } },
  { isClaimable: false, columns: { state: "completed", trigger: "manual", finished_at: "2020-01-01" } },
] as const;

/** Returns pseudorandom integers below `max`, the same in each run of the test. */
function createRandom(seed: number): (max: number) => number {
  let state = seed;
  return (max) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % max;
  };
}

describe("the claim of the next queued run", () => {
  let database: ConnectedDatabase;
  let db: Db;

  before(async () => {
    database = await connectedDatabase(PROCESSES + 1);
    ({ db } = database);
    // The triggers would turn runs that wait for a limit of their action into runs that wait for nothing, because no action exists.
    await db.query("ALTER TABLE run DISABLE TRIGGER USER");
  });
  beforeEach(() => emptyTables(db, ["run"]));
  after(() => database.stop());

  async function insertRun(appId: number, { isClaimable, columns }: (typeof ROW_KINDS)[number]): Promise<QueuedRow> {
    const values = { app_id: appId, action_id: 1, copy: "master", payload: "{}", ...columns };
    const [{ id }] = await db.query(
      `INSERT INTO run (${Object.keys(values).join()}) VALUES (${Object.keys(values).map((_, at) => `$${at + 1}`)}) RETURNING id`,
      Object.values(values),
    );
    return { id: Number(id), appId, isClaimable };
  }
  const queueRuns = async (appId: number, count: number) => {
    const runs: QueuedRow[] = [];
    for (let at = 0; at < count; at += 1) runs.push(await insertRun(appId, ROW_KINDS[0]));
    return runs;
  };

  it("takes the oldest run of an app with the fewest used slots, whatever runs and apps there are", async () => {
    const random = createRandom(42);
    for (let round = 0; round < ROUNDS; round += 1) {
      await emptyTables(db, ["run"]);
      const queue: QueuedRow[] = [];
      for (let at = random(12); at > 0; at -= 1)
        queue.push(await insertRun(APPS[random(APPS.length)]!, ROW_KINDS[random(ROW_KINDS.length)]!));
      const usedSlots = new Map(APPS.slice(0, random(APPS.length + 1)).map((appId) => [appId, random(SLOT_LIMIT + 1)]));
      const slotsOf = (appId: number) => usedSlots.get(appId) ?? 0;
      const repository = new RunRepository(db);
      for (;;) {
        const claimable = queue.filter(({ appId, isClaimable }) => isClaimable && slotsOf(appId) < SLOT_LIMIT);
        const fewest = Math.min(...claimable.map(({ appId }) => slotsOf(appId)));
        const ofFewest = claimable.filter(({ appId }) => slotsOf(appId) === fewest);
        const claimed = await repository.claim(HOLDER, usedSlots, SLOT_LIMIT);
        expect(claimed === null).to.equal(ofFewest.length === 0);
        if (claimed === null) break;
        const { id, appId } = claimed;
        const ofApp = ofFewest.filter((run) => run.appId === appId);
        expect(id).to.equal(ofApp[0]?.id, JSON.stringify({ round, queue, usedSlots: [...usedSlots] }));
        queue.splice(
          queue.findIndex((run) => run.id === id),
          1,
        );
        usedSlots.set(appId, slotsOf(appId) + 1);
        const isMore = queue.some((run) => run.isClaimable && slotsOf(run.appId) < SLOT_LIMIT);
        if (isMore) expect(claimed.isMoreClaimable).to.equal(true);
      }
    }
  });

  it("takes the app whose oldest run is the oldest, if apps use the same number of slots", async () => {
    const [first] = await queueRuns(5, 1);
    const [second] = await queueRuns(1, 2);
    const repository = new RunRepository(db);
    const slots = new Map([[3, 1]]);
    expect((await repository.claim(HOLDER, slots, SLOT_LIMIT))!.id).to.equal(first!.id);
    expect((await repository.claim(HOLDER, slots, SLOT_LIMIT))!.id).to.equal(second!.id);
  });

  it("skips runs that another transaction has locked, and then takes the next run of the app, or of another app", async () => {
    const runs = await queueRuns(1, 21);
    const [other] = await queueRuns(2, 1);
    const repository = new RunRepository(db);
    await db.transaction(async (manager) => {
      await manager.query("SELECT FROM run WHERE id < $1 FOR UPDATE", [runs[20]!.id]);
      expect((await repository.claim(HOLDER, new Map(), SLOT_LIMIT))!.id).to.equal(runs[20]!.id);
      expect((await repository.claim(HOLDER, new Map(), SLOT_LIMIT))!.id).to.equal(other!.id);
      expect(await repository.claim(HOLDER, new Map(), SLOT_LIMIT)).to.equal(null);
    });
    expect((await repository.claim(HOLDER, new Map(), SLOT_LIMIT))!.id).to.equal(runs[0]!.id);
  });

  it("gives each run to one of several processes, in the order of each app's runs", async () => {
    const queued = [...(await queueRuns(1, 60)), ...(await queueRuns(2, 60))];
    const claimAll = async () => {
      const [holder, repository] = [randomUUID(), new RunRepository(db)];
      const claimed: { id: number; appId: number }[] = [];
      for (;;) {
        const run = await repository.claim(holder, new Map(), SLOT_LIMIT);
        if (run === null) return claimed;
        claimed.push(run);
      }
    };
    const claimedByProcess = await Promise.all(Array.from({ length: PROCESSES }, claimAll));
    const ids = claimedByProcess.flat().map(({ id }) => id);
    expect(ids.toSorted((a, b) => a - b)).to.deep.equal(queued.map(({ id }) => id));
    for (const claimed of claimedByProcess)
      for (const appId of [1, 2]) {
        const ofApp = claimed.filter((run) => run.appId === appId).map(({ id }) => id);
        expect(ofApp).to.deep.equal(ofApp.toSorted((a, b) => a - b));
      }
  });

  it("reads few rows, however many runs have ended, with and without statistics about the table", async () => {
    await db.query(
      `INSERT INTO run (app_id, action_id, copy, payload, state, trigger, finished_at)
       SELECT 1 + n % 3, 1, 'master', '{}', 'completed', 'manual', now() FROM generate_series(1, $1::int) AS n`,
      [ENDED_RUNS],
    );
    for (const statement of ["SELECT", "ANALYZE run"]) {
      await db.query(statement);
      for (const appId of [1, 2, 3]) await queueRuns(appId, 5);
      const readings = await countReadings(db, async (watched) => {
        const repository = new RunRepository(watched);
        await repository.findLongestWait(new Map(), SLOT_LIMIT);
        expect(await repository.claim(HOLDER, new Map(), SLOT_LIMIT)).to.not.equal(null);
      });
      expect(readings).to.have.length(2);
      for (const { text, read } of readings) expect(read, text).to.be.below(READ_ROWS_MAX);
    }
  });
});
