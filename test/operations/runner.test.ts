/** Whose run a process performs next, of those that are queued and those whose callers wait in it. */
import { expect } from "chai";
import type { RunOutcome } from "../../src/operations/records/execution-logs.js";
import type { Ledger } from "../../src/operations/runs/ledger.js";
import type { HeldRun } from "../../src/operations/runs/run-facts.js";
import { createRunner } from "../../src/operations/runs/runner.js";
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

/** A runner whose ledger is a list, whose runs end when they are let go. */
function startRunner(concurrency: number, queued: number[] = []) {
  let lastId = 0;
  let claims = 0;
  /** After the ledger has looked, before its answer is here. */
  const moment = { isLooking: () => {} };
  const performed: number[] = [];
  const ends: ((outcome: RunOutcome) => void)[] = [];
  const ledger = {
    async claim(_holder: string, places: ReadonlyMap<number, number>, share: number) {
      claims += 1;
      const few = queued.filter((app) => (places.get(app) ?? 0) < share);
      const app = few.sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0))[0];
      if (app === undefined) return null;
      queued.splice(queued.indexOf(app), 1);
      return runOf(++lastId, app);
    },
    async anyQueued() {
      const any = queued.length > 0;
      moment.isLooking();
      return any;
    },
    longestWait: async () => 0,
  } as unknown as Ledger;
  const runner = createRunner({
    ledger,
    holder: "h",
    concurrency,
    execute: ({ appId }) =>
      new Promise((resolve) => {
        performed.push(appId);
        ends.push(resolve);
      }),
  });
  /** As a caller of runWithResult does. */
  async function call(appId: number, gone?: AbortSignal): Promise<RunOutcome | "queue"> {
    const place = runner.placeFor(appId, null) ?? (await runner.waitForPlace(appId, 2, gone));
    return place ? runner.perform(runOf(++lastId, appId), place) : "queue";
  }
  /** Lets the longest run end, and all that follows from it happen. */
  async function endOne(outcome = DONE): Promise<void> {
    ends.shift()?.(outcome);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }
  return { runner, performed, call, endOne, queued, moment, claims: () => claims };
}

describe("a runner", () => {
  it("performs what its callers wait for as places come free, and asks the ledger nothing while nothing is queued", async () => {
    const { performed, call, endOne, claims } = startRunner(4);
    const answers = Array.from({ length: 30 }, () => call(1));
    for (let run = 0; run < 30; run += 1) await endOne();
    expect(await Promise.all(answers)).to.deep.equal(Array(30).fill(DONE));
    expect(performed).to.have.length(30);
    expect(claims()).to.equal(0);
  });

  it("answers a large result at once, and has its app's next run wait for it: nobody else's", async () => {
    const { runner, performed, call, endOne } = startRunner(2);
    const answer = call(1);
    void call(1);
    await endOne({ ok: true, data: `"${"x".repeat(3 * 2 ** 20)}"` });
    expect(await answer).to.include({ ok: true });
    expect([performed, runner.places().waiting]).to.deep.equal([[1], 1]);
    void call(2);
    expect(performed).to.deep.equal([1, 2]);
    await until(() => performed.length === 3);
    expect(performed).to.deep.equal([1, 2, 1]);
  });

  it("lets an app that comes later in before the further callers of one that holds its share", async () => {
    const { performed, call, endOne } = startRunner(1);
    for (const app of [1, 2, 3, 4]) void call(app);
    for (let more = 0; more < 20; more += 1) void call(1);
    void call(5);
    await endOne();
    await endOne();
    expect(performed).to.deep.equal([1, 2, 3, 4, 1, 5]);
  });

  it("takes queued runs and callers' in turn, and the app first that has fewer places", async () => {
    const { runner, performed, call, endOne } = startRunner(1, [7, 7, 7, 8]);
    for (const app of [1, 2, 3, 4]) void call(app);
    for (let more = 0; more < 4; more += 1) void call(5);
    await runner.look();
    for (let run = 0; run < 12; run += 1) await endOne();
    const later = performed.slice(4);
    expect(later.slice(0, 3).sort()).to.deep.equal([5, 7, 8]);
    expect(later.filter((app) => app === 7)).to.have.length(3);
    expect(later.filter((app) => app === 5)).to.have.length(4);
    // Neither has to wait for all of the other's.
    expect(later.slice(0, 6).filter((app) => app === 7).length).to.be.within(2, 3);
    expect(later.slice(0, 6).filter((app) => app === 5).length).to.be.within(2, 3);
  });

  it("looks at the queue for a run that was queued here as soon as it may have a place, and not before", async () => {
    const { runner, performed, call, endOne, queued, claims } = startRunner(2);
    void call(1);
    queued.push(1, 2);
    runner.expectQueued(1);
    expect(claims()).to.equal(0);
    runner.expectQueued(2);
    await until(() => performed.length === 2);
    await endOne();
    expect(performed).to.deep.equal([1, 2, 1]);
  });

  it("looks again for a run that was queued here while it looked", async () => {
    const { runner, performed, call, endOne, queued, moment } = startRunner(2);
    void call(1);
    moment.isLooking = () => {
      moment.isLooking = () => {};
      queued.push(1);
      runner.expectQueued(1);
    };
    await runner.look();
    await endOne();
    expect(performed).to.deep.equal([1, 1]);
  });

  it("performs nothing for a caller who has gone while he waited", async () => {
    const { performed, call, endOne } = startRunner(1);
    const gone = new AbortController();
    for (const app of [1, 2, 3, 4]) void call(app);
    const left = call(5, gone.signal).catch((error: Error) => error.message);
    gone.abort();
    expect(await left).to.contain("nobody waits");
    await endOne();
    expect(performed).to.deep.equal([1, 2, 3, 4]);
  });

  it("refuses who waits when it stops, and lets what runs end", async () => {
    const { runner, call, endOne } = startRunner(1);
    const running = call(1);
    const waiting = call(1).catch((error: Error) => error.message);
    const drained = runner.drain(new AbortController().signal);
    expect(await waiting).to.contain("the action was not run");
    await endOne();
    await drained;
    expect(await running).to.deep.equal(DONE);
    expect(await call(1).catch((error: Error) => error.message)).to.contain("the action was not run");
  });

  it("lets nobody wait where it performs nothing", async () => {
    const { call } = startRunner(0);
    expect(await call(1)).to.equal("queue");
  });
});
