/**
 * Tests the statements of a run's life in a service that has run for weeks: PostgreSQL opens only the partition of the run, and empty ones
 * after it. Opening the partitions of all earlier days would take longer than the rest of the statement.
 */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { listPartitions } from "../../src/data/partitions.js";
import { RunAdmission } from "../../src/operations/runs/run-admission.js";
import { insertDebouncedRun, insertOnDemandRun, insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import type { NewRun } from "../../src/operations/runs/run-types.js";
import { Partitions } from "../../src/operations/upkeep/partitions.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";
import { listOpenedTables } from "../harness/plans.js";
import { insertPublishedActions } from "../harness/published-actions.js";

const OLD_PARTITIONS = 6;
/** Claims also read the partitions of this many IDs below the newest run, because open transactions may still insert runs there. */
const CLAIMED_IDS_MARGIN = 100_000;
const HOLDER = randomUUID();
const NO_CALLER = { personId: null, credentialId: null, idempotencyKey: null };

describe("the partitions that a run's statements open", () => {
  let database: ConnectedDatabase;
  let db: Db;
  let actions: Record<"plain" | "limited" | "debounced", number>;
  /** Partitions for the IDs of earlier days. */
  let oldTables: string[];

  before(async () => {
    database = await connectedDatabase(4);
    ({ db } = database);
    await db.query(
      "INSERT INTO organization (name) VALUES ('o'); INSERT INTO app (organization_id, name) VALUES (1, 'a')",
    );
    const manual = [{ trigger: "manual" }];
    const published = await insertPublishedActions(db, 1, [
      { name: "plain", triggers: manual },
      { name: "limited", triggers: manual },
      { name: "debounced", triggers: manual },
    ]);
    actions = Object.fromEntries(published.map(({ id, name }) => [name, id])) as typeof actions;
    await db.query(`UPDATE action SET concurrency = '{"policy":"skip","limit":1}' WHERE id = $1`, [actions.limited]);
    await db.query(`UPDATE action SET debounce = '{"delayMs":1,"maxWaitMs":1}' WHERE id = $1`, [actions.debounced]);
    for (let day = 0; day < OLD_PARTITIONS; day += 1) {
      const [last] = (await listPartitions(db, "run")).slice(-1);
      await db.query("SELECT setval('run_id_seq', $1), setval('execution_log_id_seq', $1)", [last!.low! + 1_000]);
      await new Partitions({ db, days: 30 }).createPartitionsAhead();
    }
    const isOld = ({ high }: { high: number | null }, top: number) => high !== null && high <= top - CLAIMED_IDS_MARGIN;
    const [{ top }] = await db.query("SELECT nextval('run_id_seq') AS top");
    const perTable = await Promise.all(["run", "execution_log"].map((table) => listPartitions(db, table)));
    oldTables = perTable.flat().flatMap((partition) => (isOld(partition, Number(top)) ? [partition.name] : []));
    expect(oldTables.length).to.be.at.least(2 * OLD_PARTITIONS);
  });
  after(() => database.stop());

  const newRun = (actionId: number): NewRun => ({
    ...NO_CALLER,
    appId: 1,
    copy: "production",
    trigger: "manual",
    payload: "{}",
    actionId,
  });
  const ofName = (name: string) => ({
    ...NO_CALLER,
    appId: 1,
    copy: "production" as const,
    trigger: "manual" as const,
    payload: "{}",
    ref: { name },
    needsPublishedApp: false,
    access: { metRules: null, user: null, meetsRule: async () => true },
  });
  const finish = (repository: RunRepository, id: number, holder: string | null) =>
    repository.finish({ id, holder, state: "completed", data: { text: "{}", payloadAt: null } });

  async function expectNoOldTables(work: (watched: Db, repository: RunRepository) => Promise<unknown>): Promise<void> {
    const opened = await listOpenedTables(db, async (watched) => {
      const repository = new RunRepository(watched);
      await new RunRepository(db).findLongestWait(new Map(), 3);
      await work(watched, repository);
    });
    expect(opened).to.not.be.empty;
    expect(
      opened.flatMap(({ text, tables }) => {
        const old = tables.filter((table) => oldTables.includes(table));
        return old.length > 0 ? [{ text, old }] : [];
      }),
    ).to.deep.equal([]);
  }

  it("are the run's own for a run that starts at once", async () => {
    await expectNoOldTables(async (watched, repository) => {
      const started = await insertOnDemandRun(watched, ofName("plain"), HOLDER, HOLDER);
      expect(await finish(repository, started!.id, HOLDER)).to.equal(true);
      expect(await repository.isUnfinished(started!.id, 1)).to.equal(false);
    });
  });

  it("are the run's own for a queued run: when it is claimed, queued again, claimed by its ID, and ended", async () => {
    const prepared = new RunRepository(db);
    const { id } = (await insertOnDemandRun(db, ofName("plain"), HOLDER, null))!;
    await prepared.findLongestWait(new Map(), 3);
    await expectNoOldTables(async (_watched, repository) => {
      await repository.claimById(HOLDER, id);
      expect(await repository.returnClaim(id, HOLDER)).to.equal(true);
      expect((await repository.claimById(HOLDER, id))?.id).to.equal(id);
      expect(await finish(repository, id, HOLDER)).to.equal(true);
    });
  });

  it("are those of the queued runs for the claim of the next run", async () => {
    const { id } = (await insertOnDemandRun(db, ofName("plain"), HOLDER, null))!;
    const opened = await listOpenedTables(db, async (watched) => {
      const repository = new RunRepository(watched);
      await repository.findLongestWait(new Map(), 3);
      expect((await repository.claim(HOLDER, new Map(), 3))?.id).to.equal(id);
    });
    expect(opened.at(-1)!.tables.filter((table) => oldTables.includes(table))).to.deep.equal([]);
    await finish(new RunRepository(db), id, HOLDER);
  });

  it("are the run's own for a run with a concurrency limit, which is admitted or skipped", async () => {
    await expectNoOldTables(async (watched, repository) => {
      const measures = { countTicks: () => undefined };
      const admission = new RunAdmission(watched, repository, measures, { warn: () => undefined });
      const [first, second] = [
        await insertOnDemandRun(watched, ofName("limited"), HOLDER, null),
        await insertOnDemandRun(watched, ofName("limited"), HOLDER, null),
      ];
      expect((await admission.checkRun(first!.id, null))?.skipReason).to.equal(null);
      expect((await admission.checkRun(second!.id, null))?.skipReason).to.be.a("string");
      await repository.claimById(HOLDER, first!.id);
      expect(await finish(repository, first!.id, HOLDER)).to.equal(true);
    });
  });

  it("are the run's own for a debounced run that is released", async () => {
    const { id } = await db.transaction((manager) => insertDebouncedRun(manager, newRun(actions.debounced)));
    await db.query("UPDATE debounced_run SET due_at = now() - interval '1 second'");
    await expectNoOldTables(async (watched, repository) => {
      const admission = new RunAdmission(
        watched,
        repository,
        { countTicks: () => undefined },
        { warn: () => undefined },
      );
      await admission.releaseDueRuns();
    });
    expect(await db.query("SELECT waits_for FROM run WHERE id = $1", [id])).to.deep.equal([{ waits_for: null }]);
  });

  it("are the run's own for a run that is inserted with the ID of its action", async () => {
    await expectNoOldTables(async (watched, repository) => {
      const { id } = await insertRunByActionId(watched, newRun(actions.plain), HOLDER);
      await repository.finishWithoutCode({ ...(await repository.find(id))!, startedAt: new Date() }, HOLDER, {
        ok: false,
        error: { name: "Error", message: "m", stack: "s" },
      });
    });
  });
});
