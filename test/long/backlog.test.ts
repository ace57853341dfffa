/** Measures how much a deep queue slows down the claim of a run, and the start of another app's run. */
import { expect } from "chai";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import { connectedDatabase } from "../harness/connected-database.js";
import { startTestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const HOLDER_ID = "00000000-0000-4000-8000-000000000001";
const ROUNDS = 300;
const BACKLOG = 100_000;
/** Maximum number of runs of the deep queue that may start while a later run of another app waits. */
const AHEAD_MAX = 100;
/** For each run in $1, counts the runs of app $2 that started while this run was queued. Selects the highest count and the longest wait. */
const SELECT_RUNS_AHEAD = `
  SELECT max(ahead)::int AS ahead, max(seconds)::float8 AS seconds
    FROM (SELECT (SELECT count(*) FROM run WHERE app_id = $2 AND started_at BETWEEN later.queued_at AND later.started_at) AS ahead,
                 extract(epoch FROM later.started_at - later.queued_at) AS seconds
            FROM run AS later WHERE later.id = ANY ($1::bigint[])) AS waits`;

const median = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!;

async function createFilledQueue(depth: number) {
  const database = await connectedDatabase(4);
  const { db } = database;
  await db.query(`
    INSERT INTO organization (name) VALUES ('o');
    INSERT INTO app (organization_id, name) SELECT 1, 'a' || n FROM generate_series(1, 3) AS n`);
  await db.query(
    `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
     SELECT 1, 1, 'master', 'manual', '{}', 'queued' FROM generate_series(1, $1::int)`,
    [depth],
  );
  await db.query("VACUUM ANALYZE run");
  return { ...database, repository: new RunRepository(db) };
}

describe("a queue of 100,000 runs", () => {
  it("makes a claim at most one and a half times as slow as with a queue of 400 runs", async () => {
    const small = await createFilledQueue(ROUNDS + 100);
    const deep = await createFilledQueue(BACKLOG);
    const times = new Map([
      [small, [] as number[]],
      [deep, [] as number[]],
    ]);
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [{ repository }, durations] of times) {
        const start = performance.now();
        expect(await repository.claim(HOLDER_ID, new Map([[2, 1]]), 3)).to.not.equal(null);
        durations.push(performance.now() - start);
      }
    }
    const [before, after] = [median(times.get(small)!), median(times.get(deep)!)];
    process.stdout.write(
      `      median ${before.toFixed(2)} ms, ${after.toFixed(2)} ms: ${(after / before).toFixed(2)} times\n`,
    );
    await small.stop();
    await deep.stop();
    expect(after).to.be.below(before * 1.5);
  });

  it(`lets a run of another app start before ${AHEAD_MAX} runs that were queued earlier`, async () => {
    const service = await startTestService();
    const create = async (app: number, name: string, code: string) =>
      (
        await service.rest("POST", `/v3/apps/${app}/actions`, {
          as: "admin",
          body: { name, code, active: true, triggers: [{ trigger: "manual" }] },
        })
      ).body.action.id as number;
    const other = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "Other" } })).body.app.id;
    const id = await create(service.appId, "work", "async function execute() { return 1 }");
    await create(other, "one", "async function execute() { return 2 }");
    await service.db.query(
      `INSERT INTO run (app_id, action_id, copy, trigger, payload, state)
       SELECT $1, $2, 'master', 'manual', '{}', 'queued' FROM generate_series(1, ${BACKLOG})`,
      [service.appId, id],
    );
    await until(
      async () => (await service.db.query("SELECT FROM run WHERE finished_at IS NOT NULL LIMIT 1")).length > 0,
    );
    const ids: number[] = [];
    for (let round = 0; round < 20; round += 1) {
      const { body } = await service.rest("POST", `/v3/apps/${other}/actions/one/run`, { as: "admin" });
      ids.push(body.runId);
      const ended = "SELECT FROM run WHERE id = $1 AND finished_at IS NOT NULL";
      await until(async () => (await service.db.query(ended, [body.runId])).length > 0);
    }
    const [most] = await service.db.query(SELECT_RUNS_AHEAD, [ids, service.appId]);
    process.stdout.write(
      `      of 20 runs, the last to start had ${most.ahead} ahead and waited ${most.seconds.toFixed(2)} s\n`,
    );
    expect(most.ahead).to.be.below(AHEAD_MAX);
    const start = performance.now();
    let cancelled = 0;
    let more = true;
    while (more) {
      const { body } = await service.rest("POST", `/v3/apps/${service.appId}/backlog/cancel`);
      cancelled += body.cancelled;
      ({ more } = body);
    }
    process.stdout.write(`      ${cancelled} cancelled in ${((performance.now() - start) / 1_000).toFixed(1)} s\n`);
    const left = "SELECT count(*)::int AS n FROM run WHERE app_id = $1 AND state = 'queued'";
    expect((await service.db.query(left, [service.appId]))[0].n).to.equal(0);
    await service.stop();
  });
});
