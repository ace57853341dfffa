/** Tests the order in which a process executes runs, and which runs start in nested slots. */
import { expect } from "chai";
import type { RunOutcome } from "../../src/operations/records/execution-logs.js";
import { Dispatcher } from "../../src/operations/runs/dispatcher.js";
import { LOST_OUTCOME, SERVICE_STOPPED_OUTCOME } from "../../src/operations/runs/outcomes.js";
import type { RunRepository } from "../../src/operations/runs/run-repository.js";
import type { RunRecord } from "../../src/operations/runs/run-types.js";
import { until } from "../harness/until.js";

const DONE_OUTCOME: RunOutcome = { ok: true, data: "1" };

const runOf = (id: number, appId: number): RunRecord => ({
  id,
  appId,
  actionId: 1,
  copy: "master",
  trigger: "manual",
  payload: "{}",
  personId: null,
  credentialId: null,
  startedAt: null,
});

const settled = async () => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Creates a dispatcher whose queue is a list. The test ends each run itself. `queued` has the app ID of each queued run. */
function startDispatcher(concurrency: number, queued: number[] = []) {
  let lastId = 0;
  let statements = 0;
  let claimsById = 0;
  /** Return values of the fake repository's methods that do not claim a run. */
  const answers = {
    findLongestWait: 0,
    awaited: [] as { id: number; causeRunId: number }[],
    lost: [] as number[],
    asked: [] as number[][],
  };
  const signals: AbortSignal[] = [];
  /** Hook that a test can set. The fake repository calls `onClaim` after it has read the queue, and before it returns the run. */
  const hooks = { onClaim: () => {} };
  const rows = queued.map((appId) => runOf(++lastId, appId));
  const executed: number[] = [];
  const ends: ((outcome: RunOutcome) => void)[] = [];
  const claimable = (slots: ReadonlyMap<number, number>, share: number) =>
    rows.filter(({ appId }) => (slots.get(appId) ?? 0) < share);
  const repository = {
    async claim(_holder: string, slots: ReadonlyMap<number, number>, share: number) {
      statements += 1;
      const of = ({ appId }: RunRecord) => slots.get(appId) ?? 0;
      const [run] = claimable(slots, share).sort((a, b) => of(a) - of(b) || a.id - b.id);
      if (!run) return null;
      rows.splice(rows.indexOf(run), 1);
      const after = new Map(slots).set(run.appId, of(run) + 1);
      await Promise.resolve();
      hooks.onClaim();
      return { ...run, isMoreClaimable: claimable(after, share).length > 0 };
    },
    async claimById(_holder: string, id: number) {
      claimsById += 1;
      const at = rows.findIndex((run) => run.id === id);
      return at < 0 ? null : rows.splice(at, 1)[0]!;
    },
    findLongestWait: async () => answers.findLongestWait,
    findQueuedByCause: async (ids: number[]) => {
      answers.asked.push(ids);
      return answers.awaited;
    },
    findHeldDifferences: async () => answers.lost.map((id) => ({ id, isHeld: false })),
  } as unknown as RunRepository;
  const dispatcher = new Dispatcher({
    repository,
    processId: "h",
    concurrency,
    executeRun: ({ appId }, _holder, signal) =>
      new Promise((resolve) => {
        executed.push(appId);
        signals.push(signal);
        ends.push(resolve);
      }),
  });
  /** Adds a queued run to the list, as another process would to the database. */
  function addQueuedRun(appId: number): number {
    rows.push(runOf(++lastId, appId));
    return lastId;
  }
  /** Starts a run with a caller that waits for it, as `runWithResult` does. */
  function call(appId: number): Promise<RunOutcome> {
    const slot = dispatcher.tryAcquireSlot(appId);
    if (slot) return dispatcher.execute(runOf(++lastId, appId), slot);
    const id = addQueuedRun(appId);
    dispatcher.onRunQueued(appId);
    return new Promise((resolve) => void dispatcher.addStartListener(id, resolve));
  }
  /** Ends the oldest run of the dispatcher. */
  async function endOldestRun(outcome = DONE_OUTCOME): Promise<void> {
    ends.shift()?.(outcome);
    await settled();
  }
  const counts = { statements: () => statements, claimsById: () => claimsById };
  return { dispatcher, executed, signals, answers, call, addQueuedRun, endOldestRun, hooks, ...counts };
}

describe("a dispatcher", () => {
  it("executes the runs of callers in their order as slots become free, with one statement for each that waited", async () => {
    const { executed, call, endOldestRun, statements } = startDispatcher(3);
    const answers = Array.from({ length: 30 }, () => call(1));
    for (let run = 0; run < 30; run += 1) await endOldestRun();
    expect(await Promise.all(answers)).to.deep.equal(Array(30).fill(DONE_OUTCOME));
    expect(executed).to.have.length(30);
    // Three of the 30 runs start at once, and claims find the other 27. One more claim may find the queue empty.
    expect(statements()).to.be.within(27, 28);
  });

  it("claims once for each free slot although further runs of the app are queued during the claim", async () => {
    const { dispatcher, executed, call, addQueuedRun, endOldestRun, hooks, statements } = startDispatcher(1);
    for (let more = 0; more < 3; more += 1) void call(1);
    hooks.onClaim = () => {
      addQueuedRun(1);
      dispatcher.onRunQueued(1);
    };
    await endOldestRun();
    expect(executed).to.have.length(2);
    expect(statements()).to.equal(1);
  });

  it("claims a run of another app that was queued during a claim", async () => {
    const { dispatcher, executed, call, addQueuedRun, endOldestRun, hooks } = startDispatcher(1);
    for (let more = 0; more < 3; more += 1) void call(1);
    hooks.onClaim = () => {
      hooks.onClaim = () => {};
      addQueuedRun(2);
      dispatcher.onRunQueued(2);
    };
    await endOldestRun();
    expect(executed).to.deep.equal([1, 1, 2]);
  });

  it("serves an app that arrives later before further callers of an app that uses its share", async () => {
    const { executed, call, endOldestRun } = startDispatcher(1);
    for (const app of [1, 2, 3, 4]) void call(app);
    for (let more = 0; more < 20; more += 1) void call(1);
    void call(5);
    await endOldestRun();
    await endOldestRun();
    expect(executed).to.deep.equal([1, 2, 3, 4, 1, 5]);
  });

  it("claims the runs of the app with fewer slots first", async () => {
    const { dispatcher, executed, endOldestRun } = startDispatcher(1, [7, 7, 7, 8]);
    await dispatcher.claimQueued();
    expect(executed).to.deep.equal([7, 8]);
    for (let run = 0; run < 4; run += 1) await endOldestRun();
    expect(executed).to.deep.equal([7, 8, 7, 7]);
  });

  it("claims a queued run as soon as its app may have a slot, and not before", async () => {
    const { dispatcher, executed, call, addQueuedRun, endOldestRun, statements } = startDispatcher(1);
    void call(1);
    addQueuedRun(1);
    dispatcher.onRunQueued(1);
    expect(statements()).to.equal(0);
    addQueuedRun(2);
    dispatcher.onRunQueued(2);
    await until(() => executed.length === 2);
    await endOldestRun();
    expect(executed).to.deep.equal([1, 2, 1]);
  });

  it("starts a run that an active run waits for while no slot is free, once", async () => {
    const { dispatcher, executed, call, addQueuedRun, claimsById } = startDispatcher(1);
    for (const app of [1, 2, 3, 4]) void call(app);
    const child = addQueuedRun(1);
    for (let notice = 0; notice < 3; notice += 1) dispatcher.onRunAwaited(1, child);
    dispatcher.onRunAwaited(999, addQueuedRun(1));
    await settled();
    expect(executed).to.deep.equal([1, 2, 3, 4, 1]);
    expect(claimsById()).to.equal(1);
  });

  it("claims nothing while it stops, lets active runs end, and starts the runs that they wait for", async () => {
    const { dispatcher, executed, call, addQueuedRun, endOldestRun } = startDispatcher(1);
    const running = call(1);
    addQueuedRun(2);
    const drained = dispatcher.drain(new AbortController().signal);
    dispatcher.onRunQueued(2);
    expect(dispatcher.tryAcquireSlot(2)).to.equal(null);
    dispatcher.onRunAwaited(1, addQueuedRun(1));
    await settled();
    expect(executed).to.deep.equal([1, 1]);
    await endOldestRun();
    await endOldestRun();
    await drained;
    expect(await running).to.deep.equal(DONE_OUTCOME);
  });

  it("sends no statement once it has found the queue empty, until a run is queued", async () => {
    const { dispatcher, executed, call, addQueuedRun, endOldestRun, statements } = startDispatcher(1);
    await dispatcher.claimQueued();
    expect(statements()).to.equal(1);
    void call(1);
    await endOldestRun();
    expect(statements()).to.equal(1);
    addQueuedRun(1);
    dispatcher.onRunQueued(1);
    await settled();
    expect([executed, statements()]).to.deep.equal([[1, 1], 2]);
    // The app uses its whole share, so a claim cannot find its queued runs. The next free slot causes another claim.
    await dispatcher.claimQueued();
    expect(statements()).to.equal(3);
    await endOldestRun();
    expect(statements()).to.equal(4);
    void call(1);
    await endOldestRun();
    expect(statements()).to.equal(4);
  });

  it("sends no statement for a run that a caller starts", async () => {
    const { call, endOldestRun, statements } = startDispatcher(2);
    void call(1);
    await endOldestRun();
    expect(statements()).to.equal(0);
  });

  it("claims when a slot is free a run that it found none for, and again if it is notified during a claim", async () => {
    const full = startDispatcher(1);
    for (const app of [1, 2, 3, 4]) void full.call(app);
    full.addQueuedRun(5);
    await full.dispatcher.claimQueued();
    expect(full.executed).to.have.length(4);
    await full.endOldestRun();
    expect(full.executed).to.deep.equal([1, 2, 3, 4, 5]);

    const repeated = startDispatcher(4, [1]);
    repeated.hooks.onClaim = () => {
      repeated.hooks.onClaim = () => {};
      repeated.addQueuedRun(2);
      void repeated.dispatcher.claimQueued();
    };
    await repeated.dispatcher.claimQueued();
    expect(repeated.executed).to.deep.equal([1, 2]);

    const empty = startDispatcher(1);
    const firstClaim = empty.dispatcher.claimQueued();
    empty.addQueuedRun(1);
    void empty.dispatcher.claimQueued();
    await firstClaim;
    expect(empty.executed, "a run queued after the queue was read").to.deep.equal([1]);
  });

  it("reports how long the longest run waits that it could claim: none without a free slot or while it stops", async () => {
    const { dispatcher, answers, call } = startDispatcher(1);
    answers.findLongestWait = 7_000;
    expect(await dispatcher.claimQueued()).to.equal(7_000);
    for (const app of [1, 2, 3]) void call(app);
    expect(await dispatcher.claimQueued()).to.equal(7_000);
    void call(4);
    expect(await dispatcher.claimQueued()).to.equal(0);
    const stopping = startDispatcher(1);
    stopping.answers.findLongestWait = 7_000;
    await stopping.dispatcher.drain(new AbortController().signal);
    expect([await stopping.dispatcher.claimQueued(), stopping.statements()]).to.deep.equal([0, 0]);
  });

  it("passes the result of a run to each listener, also if the run has started already, until the listener leaves", async () => {
    const { dispatcher, call, endOldestRun } = startDispatcher(1);
    const outcomes: Promise<RunOutcome>[] = [];
    const listen = (id: number) => dispatcher.addStartListener(id, (outcome) => outcomes.push(outcome));
    const leaves = [listen(5), listen(5), listen(6)];
    expect(dispatcher.getSlotUsage()).to.deep.equal({ total: 4, free: 4, waiting: 2 });
    leaves[0]!();
    expect(dispatcher.getSlotUsage().waiting).to.equal(2);
    leaves[1]!();
    leaves[2]!();
    expect(dispatcher.getSlotUsage().waiting).to.equal(0);
    void call(1);
    listen(1)();
    expect(dispatcher.getSlotUsage()).to.deep.equal({ total: 4, free: 3, waiting: 0 });
    await endOldestRun();
    expect(await Promise.all(outcomes)).to.deep.equal([DONE_OUTCOME]);
  });

  it("starts nothing after the time of its stop, and aborts active runs", async () => {
    const { dispatcher, executed, signals, answers, call, addQueuedRun, endOldestRun } = startDispatcher(2);
    void call(1);
    const slot = dispatcher.tryAcquireSlot(2)!;
    const child = addQueuedRun(1);
    expect(signals[0]!.aborted).to.equal(false);
    const drained = dispatcher.drain(AbortSignal.abort());
    expect(signals[0]!.reason).to.equal(SERVICE_STOPPED_OUTCOME);
    expect(dispatcher.tryAcquireSlot(1)).to.equal(null);
    answers.awaited = [{ id: child, causeRunId: 1 }];
    await dispatcher.startQueuedChildRuns();
    dispatcher.onRunAwaited(1, child);
    await settled();
    expect(executed).to.deep.equal([1]);
    void dispatcher.execute(runOf(99, 2), slot);
    expect(signals[1]!.reason).to.equal(SERVICE_STOPPED_OUTCOME);
    await endOldestRun();
    await endOldestRun();
    await drained;
  });

  it("aborts active runs when the time of its stop ends", async () => {
    const { dispatcher, signals, call, endOldestRun } = startDispatcher(2);
    void call(1);
    const impatience = new AbortController();
    const drained = dispatcher.drain(impatience.signal);
    expect(signals[0]!.aborted).to.equal(false);
    impatience.abort();
    expect(signals[0]!.reason).to.equal(SERVICE_STOPPED_OUTCOME);
    await endOldestRun();
    await drained;
  });

  it("finds runs that its runs wait for although their notification was lost, and aborts runs that it lost", async () => {
    const { dispatcher, executed, signals, answers, call, addQueuedRun } = startDispatcher(1);
    const child = addQueuedRun(1);
    await dispatcher.startQueuedChildRuns();
    expect(answers.asked).to.deep.equal([]);
    void call(1);
    await dispatcher.startQueuedChildRuns();
    expect(answers.asked).to.deep.equal([[2]]);
    answers.awaited = [{ id: child, causeRunId: 2 }];
    for (const app of [2, 3, 4]) void call(app);
    expect(executed).to.deep.equal([1, 2, 3, 4]);
    expect(dispatcher.tryAcquireSlot(1)).to.equal(null);
    await dispatcher.startQueuedChildRuns();
    await settled();
    expect(executed).to.deep.equal([1, 2, 3, 4, 1]);
    answers.lost = [4];
    await dispatcher.settleHeldRuns();
    expect(signals.map(({ reason }) => reason)).to.deep.equal([
      undefined,
      undefined,
      LOST_OUTCOME,
      undefined,
      undefined,
    ]);
    dispatcher.abortCancelledRun(5, null);
    expect(signals[3]!.reason).to.have.nested.property("error.name", "CancelledError");
  });

  it("starts nothing if it executes no runs", async () => {
    const { dispatcher, executed, call } = startDispatcher(0, [1]);
    void call(1);
    await dispatcher.claimQueued();
    expect(executed).to.deep.equal([]);
  });
});
