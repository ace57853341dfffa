/** Tests runs that end at the same moment: each has its state and log entry, and only the process that executes a run writes its end. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Db } from "../../src/data/database.js";
import { finishRuns, type RunEndRecord } from "../../src/operations/runs/finish.js";
import { insertRunByActionId } from "../../src/operations/runs/run-inserts.js";
import { RunRepository } from "../../src/operations/runs/run-repository.js";
import { type ConnectedDatabase, connectedDatabase, emptyTables } from "../harness/connected-database.js";
import { countLockWaits, untilLockWait } from "../harness/lock-waits.js";
import { insertPublishedActions } from "../harness/published-actions.js";

const HOLDER = randomUUID();
const TABLES = ["run", "execution_log", "schedule", "audit_entry", "action", "app", "organization"];

describe("runs that end together", () => {
  let database: ConnectedDatabase;
  let db: Db;
  let repository: RunRepository;
  let appId: number;
  let actions: number[];
  before(async () => {
    database = await connectedDatabase(10);
    ({ db } = database);
  });
  beforeEach(async () => {
    await emptyTables(db, TABLES);
    repository = new RunRepository(db);
    const [organization] = await db.query("INSERT INTO organization (name) VALUES ('o') RETURNING id");
    const insert = "INSERT INTO app (organization_id, name) VALUES ($1, 'a') RETURNING id";
    appId = (await db.query(insert, [organization.id]))[0].id;
    const actionFields = ["a", "b", "c"].map((name) => ({ name, triggers: [{ trigger: "manual" }] }));
    actions = (await insertPublishedActions(db, appId, actionFields)).map(({ id }) => id);
  });
  after(() => database.stop());

  async function start(at: number, holder: string | null = HOLDER, action?: { id: number; appId: number }) {
    const { id: actionId, appId: ofApp } = action ?? { id: actions[at % actions.length]!, appId };
    const run = { appId: ofApp, copy: "production", trigger: "manual", payload: `{"at":${at}}` } as const;
    const nobody = { personId: null, credentialId: null, idempotencyKey: null };
    return (await insertRunByActionId(db, { ...run, ...nobody, actionId }, holder)).id;
  }

  const ending = (at: number, text = `{"at":${at}}`): Omit<RunEndRecord, "id" | "holder"> => ({
    state: at % 2 === 0 ? "completed" : "failed",
    data: { text, payloadAt: null },
    hosts: at % 3 === 0 ? [`h${at}:443`, 'a "quoted", host'] : [],
    requests: at % 4 === 0 ? JSON.stringify([{ host: `h${at}:443`, status: 200 }]) : null,
  });

  it("each get their state, hosts, requests and one entry, and update their actions", async () => {
    const ids: number[] = [];
    for (let at = 0; at < 20; at += 1) ids.push(await start(at));
    const ended = await Promise.all(ids.map((id, at) => repository.finish({ id, holder: HOLDER, ...ending(at) })));
    expect(ended).to.deep.equal(Array(20).fill(true));
    const rows = await db.query(
      `SELECT run.id, run.state, run.hosts, run.requests::text AS requests, entry.type, entry.data, entry.task_id AS task
         FROM run JOIN execution_log entry ON entry.run_id = run.id ORDER BY run.id`,
    );
    expect(rows).to.deep.equal(
      ids.map((id, at) => {
        const { state, hosts, requests } = ending(at);
        const type = state === "completed" ? "app.task.completed" : "app.task.failed";
        return { id, state, hosts, requests, type, data: { at }, task: actions[at % actions.length] };
      }),
    );
    const [{ touched }] = await db.query("SELECT count(*) AS touched FROM action WHERE last_run_at IS NOT NULL");
    expect(touched).to.equal(3);
  });

  it("also end one by one, only for their holder", async () => {
    const id = await start(0, randomUUID());
    expect(await repository.finish({ id, holder: HOLDER, ...ending(0) })).to.equal(false);
    expect(await repository.finish({ id, holder: null, ...ending(1) })).to.equal(false);
    expect(await db.query("SELECT state, finished_at FROM run")).to.deep.equal([
      { state: "running", finished_at: null },
    ]);
    expect(await db.query("SELECT FROM execution_log")).to.deep.equal([]);
    const runId = await start(1);
    expect(await repository.finish({ id: runId, holder: HOLDER, ...ending(1) })).to.equal(true);
    expect(await repository.finish({ id: runId, holder: null, ...ending(1) }), "it has ended").to.equal(false);
  });

  it("end in a state that the table of transitions allows", async () => {
    const id = await start(0, null);
    const completed = await repository
      .finish({ id, holder: null, ...ending(0) })
      .catch((error: Error) => error.message);
    expect(completed).to.equal("a run in the state queued cannot change to the state completed");
    expect(await db.query("SELECT state FROM run")).to.deep.equal([{ state: "queued" }]);
  });

  it("return to the queue only for their holder, and only while they run", async () => {
    const [heldRun, foreignRun, endedRun] = [await start(0), await start(1, randomUUID()), await start(2)];
    await repository.finish({ id: endedRun, holder: HOLDER, ...ending(2) });
    const returned = [];
    for (const id of [heldRun, foreignRun, endedRun]) returned.push(await repository.returnClaim(id, HOLDER));
    expect(returned).to.deep.equal([true, false, false]);
    const states = await db.query("SELECT state FROM run ORDER BY id");
    expect(states.map(({ state }: { state: string }) => state)).to.deep.equal(["queued", "running", "completed"]);
  });

  it("are not claimed if they are scheduled runs that are too late", async () => {
    const [late, ready] = [await start(0, null), await start(1, null)];
    await db.query("UPDATE run SET trigger = 'schedule', queued_at = now() - interval '1 hour' WHERE id = $1", [late]);
    expect((await repository.claim(HOLDER, new Map(), 9))?.id).to.equal(ready);
    expect(await repository.claim(HOLDER, new Map(), 9)).to.equal(null);
  });

  it("end after another request has deleted their app: queued runs are claimed, and outcomes of active runs are stored", async () => {
    const [queued, awaited] = [await start(0, null), await start(1, null)];
    const [alone, together] = [await start(0), await start(1)];
    const [{ version }] = await db.query("SELECT secrets_version AS version FROM app WHERE id = $1", [appId]);
    await db.query("DELETE FROM app WHERE id = $1", [appId]);
    // The claimed runs have neither code nor secrets, because their app was deleted.
    const first = await repository.claim(HOLDER, new Map(), 9);
    const second = await repository.claimById(HOLDER, awaited);
    for (const run of [first, second]) expect([run?.code, run?.secretsVersion]).to.deep.equal([null, null]);
    expect([first?.id, second?.id]).to.deep.equal([queued, awaited]);
    expect(await repository.findLongestWait(new Map(), 9)).to.equal(0);
    const endOf = (id: number, at: number) => ({ id, holder: HOLDER, ...ending(at), secretsVersion: version });
    expect(await finishRuns(db, [endOf(alone, 0)])).to.deep.equal([true]);
    expect(await finishRuns(db, [endOf(queued, 1), endOf(together, 1)])).to.deep.equal([true, true]);
  });

  it("are locked in the order of their IDs, in whatever order they are passed", async () => {
    const [first, second, third] = [await start(0), await start(1), await start(2)];
    const runs = [third, first, second].map((id) => ({ id, holder: HOLDER, ...ending(0) }));
    // The update moves the first run behind the others in the table. A plan that scans the whole table then reads this run last.
    await db.query("UPDATE run SET queued_at = queued_at WHERE id = $1", [first]);
    const lock = "SELECT FROM run WHERE id = $1 FOR UPDATE NOWAIT";
    let finished: Promise<boolean[]> | null = null;
    await db.transaction(async (rival) => {
      await rival.query(lock, [first]);
      finished = db.transaction(async (manager) => {
        for (const plan of ["indexscan", "bitmapscan"]) await manager.query(`SET LOCAL enable_${plan} = off`);
        return finishRuns(manager, runs);
      });
      await untilLockWait(rival, finished);
      await rival.query(lock, [third]);
    });
    expect(await finished).to.deep.equal([true, true, true]);
  });

  it("end while another transaction changes an action, alone and with runs of other apps", async () => {
    const [{ organization }] = await db.query("SELECT organization_id AS organization FROM app");
    const insert = "INSERT INTO app (organization_id, name) VALUES ($1, 'b') RETURNING id";
    const [other] = await db.query(insert, [organization]);
    const [otherAction] = await insertPublishedActions(db, other.id, [
      { name: "d", triggers: [{ trigger: "manual" }] },
    ]);
    const locked = [await start(0), await start(3), await start(6)];
    const free = [await start(1), await start(0, HOLDER, otherAction)];
    await db.transaction(async (rival) => {
      await rival.query("SELECT FROM action WHERE id = $1 FOR NO KEY UPDATE", [actions[0]]);
      const alone = repository.finish({ id: locked[0]!, holder: HOLDER, ...ending(0) });
      await untilLockWait(rival, alone);
      expect(await countLockWaits(rival), "one run").to.equal(0);
      const together = Promise.all(
        [...locked.slice(1), ...free].map((id) => repository.finish({ id, holder: HOLDER, ...ending(0) })),
      );
      await untilLockWait(rival, together);
      expect(await countLockWaits(rival), "several runs").to.equal(0);
      expect([await alone, ...(await together)]).to.deep.equal(Array(5).fill(true));
    });
    const ran = await db.query("SELECT id FROM action WHERE last_run_at IS NOT NULL ORDER BY id");
    expect(ran).to.deep.equal([{ id: actions[1] }, { id: otherAction!.id }]);
  });

  it("read their secrets before the first end locks an action, if their process has crashed", async () => {
    const runs = [await start(0), await start(1)];
    const lockable: number[] = [];
    const readSecrets = async () => {
      lockable.push((await db.query("SELECT id FROM action FOR NO KEY UPDATE SKIP LOCKED")).length);
      return null;
    };
    expect(await new RunRepository(db, readSecrets).finishLost()).to.equal(runs.length);
    expect(lockable).to.deep.equal([2 * actions.length, 2 * actions.length]);
  });

  it("end only for their holder, and once, whichever runs end with them", async () => {
    const [heldRun, foreignRun, queuedRun] = [await start(0), await start(1, randomUUID()), await start(2, null)];
    const ended = await Promise.all([
      repository.finish({ id: heldRun, holder: HOLDER, ...ending(0) }),
      repository.finish({ id: foreignRun, holder: HOLDER, ...ending(1) }),
      repository.finish({ id: queuedRun, holder: null, ...ending(5) }),
      repository.finish({ id: heldRun, holder: HOLDER, ...ending(3) }),
      repository.finish({ id: queuedRun, holder: HOLDER, ...ending(4) }),
    ]);
    expect(ended).to.deep.equal([true, false, true, false, false]);
    const again = await Promise.all([
      repository.finish({ id: queuedRun, holder: null, ...ending(5) }),
      repository.finish({ id: heldRun, holder: HOLDER, ...ending(0) }),
    ]);
    expect(again).to.deep.equal([false, false]);
    const [{ entries }] = await db.query("SELECT count(*) AS entries FROM execution_log");
    expect(entries).to.equal(2);
    const untouched = await db.query("SELECT last_run_at FROM action WHERE id = $1", [actions[2]]);
    expect(untouched).to.deep.equal([{ last_run_at: null }]);
  });

  it("end if the app's secrets are those of the scan, alone and with others", async () => {
    const [{ version }] = await db.query("SELECT secrets_version AS version FROM app WHERE id = $1", [appId]);
    const end = (id: number, secretsVersion: number | null) =>
      repository.finish({ id, holder: HOLDER, ...ending(0), secretsVersion });
    const ids = [await start(0), await start(1), await start(2)];
    expect(await end(ids[0]!, version + 1)).to.equal(false);
    expect(await Promise.all(ids.map((id, at) => end(id, version + at)))).to.deep.equal([true, false, false]);
    expect(await Promise.all([end(ids[1]!, version), end(ids[2]!, null)])).to.deep.equal([true, true]);
    const [{ entries }] = await db.query("SELECT count(*) AS entries FROM execution_log");
    expect(entries).to.equal(3);
  });

  it("end although the database rejects the output of one of them", async () => {
    const ids = [await start(0), await start(2), await start(4)];
    const ended = await Promise.allSettled(
      ids.map((id, at) => repository.finish({ id, holder: HOLDER, ...ending(2 * at, at === 1 ? "no JSON" : "{}") })),
    );
    expect(ended.map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected", "fulfilled"]);
    const states = await db.query("SELECT state FROM run ORDER BY id");
    expect(states.map(({ state }: { state: string }) => state)).to.deep.equal(["completed", "running", "completed"]);
  });
});

describe("the statements that end runs together", () => {
  const sizesOf = async (texts: readonly string[]) => {
    const sizes: number[] = [];
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    const query = async (_text: string, [ids]: (number | number[])[]) => {
      const ended = [ids!].flat();
      sizes.push(ended.length);
      await answered;
      return ended.map((runId) => ({ runId }));
    };
    const repository = new RunRepository({ query } as unknown as Db);
    const all = texts.map((text, at) =>
      repository.finish({ id: at + 1, holder: HOLDER, state: "completed", data: { text, payloadAt: null } }),
    );
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    const atOnce = sizes.length;
    answer();
    expect(new Set(await Promise.all(all))).to.deep.equal(new Set([true]));
    return { sizes, atOnce };
  };

  it("are executed one after the other, for at most eight runs each", async () => {
    expect(await sizesOf(Array(20).fill("{}"))).to.deep.equal({ sizes: [8, 8, 4], atOnce: 1 });
  });

  it("are used for entries of up to 64 KiB: a longer one delays no other", async () => {
    expect((await sizesOf(["x".repeat(65_536), "{}", "{}"])).sizes).to.deep.equal([3]);
    expect((await sizesOf(["{}", "x".repeat(65_537), "{}"])).sizes).to.deep.equal([1, 2]);
  });
});
