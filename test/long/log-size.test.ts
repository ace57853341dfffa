/** What lists of a log cost where it has grown a thousandfold: both sizes in one run, call by call, so that only their ratio counts. */
import { expect } from "chai";
import { createLogs } from "../../src/operations/records/execution-logs.js";
import { createRunWords } from "../../src/operations/records/run-words.js";
import { createPartitions } from "../../src/operations/upkeep/partitions.js";
import { cursorOf } from "../../src/rules/page.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

const SMALL = 10_000;
/** Fewer for a quick look: LOG_ENTRIES=1000000. */
const LARGE = Number(process.env["LOG_ENTRIES"] ?? 10_000_000);
const DAYS = 30;
const ROUNDS = 200;
const ACTIONS = 20;

interface Sized extends ConnectedDatabase {
  size: number;
  logs: ReturnType<typeof createLogs>;
  words: ReturnType<typeof createRunWords>;
}

/** Runs of the last 30 days with their entries and words; one of fifty failed, one of 10,000 says `rare`. */
async function grown(size: number): Promise<Sized> {
  const database = await connectedDatabase(10);
  const { db } = database;
  await db.query(
    "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a')",
  );
  const chunk = Math.ceil(size / DAYS);
  const patient = db.createQueryRunner();
  await patient.query("SET statement_timeout = 0; SET synchronous_commit = off");
  for (const table of ["run", "console_line", "run_search", "execution_log"]) {
    // Before the first one lie the rows of before, of which there are none; each day has its own partition.
    await patient.query(`DROP TABLE ${table}_p1, ${table}_rest`);
    for (let day = 0; day < DAYS; day += 1) {
      const low = day === 0 ? "MINVALUE" : day * chunk + 1;
      const high = (day + 1) * chunk + 1;
      await patient.query(`CREATE TABLE ${table}_d${day} PARTITION OF ${table} FOR VALUES FROM (${low}) TO (${high})`);
    }
    await patient.query(
      `CREATE TABLE ${table}_rest PARTITION OF ${table} FOR VALUES FROM (${DAYS * chunk + 1}) TO (MAXVALUE)`,
    );
  }
  for (let day = 0; day < DAYS; day += 1) {
    const numbers = `generate_series(${day * chunk + 1}, ${Math.min((day + 1) * chunk, size)}) AS n`;
    const at = `now() - ${DAYS - day} * interval '1 day' + (n - ${day * chunk}) * interval '86000 seconds' / ${chunk}`;
    await patient.query(`
      INSERT INTO run (id, app_id, action_id, copy, trigger, payload, state, queued_at, finished_at, log_id)
        SELECT n, 1, n % ${ACTIONS}, 'production', 'manual', '{"order":1}', CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END,
               ${at}, ${at}, n FROM ${numbers};
      INSERT INTO execution_log (id, app_id, task_id, run_id, type, data, payload_at, created_at)
        SELECT n, 1, n % ${ACTIONS}, n, CASE WHEN n % 50 = 0 THEN 'app.task.failed' ELSE 'app.task.completed' END,
               '{"payload":null,"result":{"data":{"order":1},"success":true}}', 12, ${at} FROM ${numbers};
      INSERT INTO run_search (run_id, words)
        SELECT n, array_to_tsvector(ARRAY['@1', 'order', 'result', 'n' || n] ||
               CASE WHEN n % 10000 = 0 THEN ARRAY['rare'] ELSE '{}' END) FROM ${numbers}`);
  }
  for (const table of ["run", "execution_log"]) {
    await patient.query(`SELECT setval('${table}_id_seq', ${size})`);
    await patient.query(`VACUUM ANALYZE ${table}`);
  }
  await patient.query("VACUUM ANALYZE run_search");
  await patient.release();
  return { ...database, size, logs: createLogs(db), words: createRunWords(db) };
}

const p95 = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length * 0.95)]!;

describe(`a log of ${LARGE} entries beside one of ${SMALL}`, () => {
  let small: Sized;
  let large: Sized;

  before(async () => {
    small = await grown(SMALL);
    large = await grown(LARGE);
  });
  after(async () => {
    await small.stop();
    await large.stop();
  });

  const lists: Record<string, (of: Sized) => Promise<number>> = {
    "the first page": async ({ logs }) => (await logs.list(1, {})).logs.length,
    "the last page by its cursor": async ({ logs }) => (await logs.list(1, { cursor: cursorOf(51) })).logs.length,
    "one action": async ({ logs }) => (await logs.list(1, { id: 7 })).logs.length,
    failures: async ({ logs }) => (await logs.list(1, { where: { type: "app.task.failed" } })).logs.length,
    "a word of every run": async ({ words }) => (await words.find(1, "order", { most: 50 })).length,
    "a word of one run": async ({ words, size }) => (await words.find(1, `n${size / 2}`, { most: 50 })).length,
    "a rare word": async ({ words }) => Math.min(1, (await words.find(1, "rare", { most: 50 })).length),
  };

  for (const [name, list] of Object.entries(lists)) {
    it(`costs at most twice as much: ${name}`, async () => {
      const times = new Map<Sized, number[]>([
        [small, []],
        [large, []],
      ]);
      for (let round = 0; round < ROUNDS + 20; round += 1) {
        const found: number[] = [];
        for (const [sized, taken] of times) {
          const start = performance.now();
          found.push(await list(sized));
          // The first of them plan.
          if (round >= 20) taken.push(performance.now() - start);
        }
        expect(found[0], "both find as much").to.equal(found[1]);
      }
      const [before, after] = [p95(times.get(small)!), p95(times.get(large)!)];
      process.stdout.write(
        `      p95 ${before.toFixed(2)} ms, ${after.toFixed(2)} ms: ${(after / before).toFixed(2)} times\n`,
      );
      expect(after).to.be.below(before * 2);
    });
  }

  it("is dropped in under ten seconds", async () => {
    const start = performance.now();
    // All of them are too old for it.
    expect(await createPartitions({ db: large.db, days: -2 }).dropOld()).to.be.at.least(2 * (DAYS - 1));
    const seconds = (performance.now() - start) / 1_000;
    process.stdout.write(`      dropped in ${seconds.toFixed(1)} s\n`);
    expect(seconds).to.be.below(10);
    expect((await large.db.query("SELECT count(*)::int AS n FROM execution_log"))[0].n).to.be.below(LARGE / DAYS + 1);
  });
});
