/** Whose run a process executes next, and which runs start in nested slots. */
import { expect } from "chai";
import type { RunOutcome } from "../../src/operations/records/execution-logs.js";
import { Dispatcher } from "../../src/operations/runs/dispatcher.js";
import type { RunRepository } from "../../src/operations/runs/run-repository.js";
import type { HeldRun } from "../../src/operations/runs/run-types.js";
import { until } from "../harness/until.js";

const DONE: RunOutcome = { ok: true, data: "1" };

const runOf = (id: number, appId: number): HeldRun => ({
  id,
  appId,
  actionId: 1,
  copy: "master",
  trigger: "manual",
  payload: "{}",
  personId: null,
  credentialId: null,
  replayOf: null,
  versionId: null,
  startedAt: null,
});

const settled = async () => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** A dispatcher whose queue is a list, and whose runs end on demand. `queued` holds the app of each run. */
function startDispatcher(concurrency: number, queued: number[] = []) {
  let lastId = 0;
  let statements = 0;
  /** Called after the queue was read, before the answer is here. */
  const moment = { isLooking: () => {}, isClaiming: () => {} };
  const rows = queued.map((appId) => runOf(++lastId, appId));
  const executed: number[] = [];
  const ends: ((outcome: RunOutcome) => void)[] = [];
  const claimable = (slots: ReadonlyMap<number, number>, share: number) =>
    rows.filter(({ appId }) => (slots.get(appId) ?? 0) < share);
  const repository = {
    async claim(_holder: string, slots: ReadonlyMap<number, number>, share: number) {
      statements += 1;
      const of = ({ appId }: HeldRun) => slots.get(appId) ?? 0;
      const [run] = claimable(slots, share).sort((a, b) => of(a) - of(b) || a.id - b.id);
      if (!run) return null;
      rows.splice(rows.indexOf(run), 1);
      const after = new Map(slots).set(run.appId, of(run) + 1);
      await Promise.resolve();
      moment.isClaiming();
      return { ...run, isMoreClaimable: claimable(after, share).length > 0 };
    },
    async claimById(_holder: string, id: number) {
      const at = rows.findIndex((run) => run.id === id);
      return at < 0 ? null : rows.splice(at, 1)[0]!;
    },
    async isAnyQueued() {
      statements += 1;
      const any = rows.length > 0;
      moment.isLooking();
      return any;
    },
    longestWait: async () => 0,
  } as unknown as RunRepository;
  const dispatcher = new Dispatcher({
    repository,
    holder: "h",
    concurrency,
    executor: {
      execute: ({ appId }) =>
        new Promise((resolve) => {
          executed.push(appId);
          ends.push(resolve);
        }),
    },
  });
  /** Writes a queued run, as another process does. */
  function write(appId: number): number {
    rows.push(runOf(++lastId, appId));
    return lastId;
  }
  /** As a caller of runWithResult does. */
  function call(appId: number): Promise<RunOutcome> {
    const slot = dispatcher.slotFor(appId, null);
    if (slot) return dispatcher.execute(runOf(++lastId, appId), slot);
    const id = write(appId);
    dispatcher.expectQueued(appId);
    return new Promise((resolve) => void dispatcher.onStart(id, resolve));
  }
  /** Ends the longest run. */
  async function endOne(outcome = DONE): Promise<void> {
    ends.shift()?.(outcome);
    await settled();
  }
  return { dispatcher, executed, call, write, endOne, moment, statements: () => statements };
}

describe("a dispatcher", () => {
  it("executes the runs of callers in their order as slots come free, with one statement for each that waited", async () => {
    const { executed, call, endOne, statements } = startDispatcher(4);
    const answers = Array.from({ length: 30 }, () => call(1));
    for (let run = 0; run < 30; run += 1) await endOne();
    expect(await Promise.all(answers)).to.deep.equal(Array(30).fill(DONE));
    expect(executed).to.have.length(30);
    // 27 wait. The last claim finds the queue empty.
    expect(statements()).to.be.within(27, 28);
  });

  it("claims once for each freed slot although further runs of the app are queued during the claim", async () => {
    const { dispatcher, executed, call, write, endOne, moment, statements } = startDispatcher(2);
    for (let more = 0; more < 3; more += 1) void call(1);
    moment.isClaiming = () => {
      write(1);
      dispatcher.expectQueued(1);
    };
    await endOne();
    expect(executed).to.have.length(2);
    expect(statements()).to.equal(1);
  });

  it("claims a run of another app that was queued during a claim", async () => {
    const { dispatcher, executed, call, write, endOne, moment } = startDispatcher(2);
    for (let more = 0; more < 3; more += 1) void call(1);
    moment.isClaiming = () => {
      moment.isClaiming = () => {};
      write(2);
      dispatcher.expectQueued(2);
    };
    await endOne();
    expect(executed).to.deep.equal([1, 1, 2]);
  });

  it("answers a large result at once, and delays only the next run of its app", async () => {
    const { executed, call, endOne } = startDispatcher(2);
    const answer = call(1);
    void call(1);
    await endOne({ ok: true, data: `"${"x".repeat(3 * 2 ** 20)}"` });
    expect(await answer).to.include({ ok: true });
    expect(executed).to.deep.equal([1]);
    void call(2);
    expect(executed).to.deep.equal([1, 2]);
    await until(() => executed.length === 3);
    expect(executed).to.deep.equal([1, 2, 1]);
  });

  it("serves an app that comes later before the further callers of one that holds its share", async () => {
    const { executed, call, endOne } = startDispatcher(1);
    for (const app of [1, 2, 3, 4]) void call(app);
    for (let more = 0; more < 20; more += 1) void call(1);
    void call(5);
    await endOne();
    await endOne();
    expect(executed).to.deep.equal([1, 2, 3, 4, 1, 5]);
  });

  it("claims the runs of the app first that has fewer slots", async () => {
    const { dispatcher, executed, endOne } = startDispatcher(2, [7, 7, 7, 8]);
    await dispatcher.claimQueued();
    expect(executed).to.deep.equal([7, 8]);
    for (let run = 0; run < 4; run += 1) await endOne();
    expect(executed).to.deep.equal([7, 8, 7, 7]);
  });

  it("claims a run that was queued as soon as its app may have a slot, and not before", async () => {
    const { dispatcher, executed, call, write, endOne, statements } = startDispatcher(2);
    void call(1);
    write(1);
    dispatcher.expectQueued(1);
    expect(statements()).to.equal(0);
    write(2);
    dispatcher.expectQueued(2);
    await until(() => executed.length === 2);
    await endOne();
    expect(executed).to.deep.equal([1, 2, 1]);
  });

  it("looks again for a run that was queued while it looked", async () => {
    const { dispatcher, executed, call, write, endOne, moment } = startDispatcher(2);
    void call(1);
    moment.isLooking = () => {
      moment.isLooking = () => {};
      write(1);
      dispatcher.expectQueued(1);
    };
    await dispatcher.claimQueued();
    await endOne();
    expect(executed).to.deep.equal([1, 1]);
  });

  it("starts a run that an active run waits for while no slot is free, once", async () => {
    const { dispatcher, executed, call, write } = startDispatcher(1);
    for (const app of [1, 2, 3, 4]) void call(app);
    const child = write(1);
    for (let notice = 0; notice < 3; notice += 1) dispatcher.expectRun(1, child);
    dispatcher.expectRun(999, write(1));
    await settled();
    expect(executed).to.deep.equal([1, 2, 3, 4, 1]);
  });

  it("claims nothing while it stops, lets active runs end, and starts the runs that they wait for", async () => {
    const { dispatcher, executed, call, write, endOne } = startDispatcher(1);
    const running = call(1);
    write(2);
    const drained = dispatcher.drain(new AbortController().signal);
    dispatcher.expectQueued(2);
    expect(dispatcher.slotFor(2, null)).to.equal(null);
    dispatcher.expectRun(1, write(1));
    await settled();
    expect(executed).to.deep.equal([1, 1]);
    await endOne();
    await endOne();
    await drained;
    expect(await running).to.deep.equal(DONE);
  });

  it("starts nothing where it executes no runs", async () => {
    const { dispatcher, executed, call } = startDispatcher(0, [1]);
    void call(1);
    await dispatcher.claimQueued();
    expect(executed).to.deep.equal([]);
  });
});
