/** Tests the queue in which long tasks take turns on the main thread. */
import { expect } from "chai";
import { createFairTaskQueue } from "../../src/api/fair-task-queue.js";
import type { ActionError } from "../../src/errors.js";

/** Clock whose time advances only when a task calls `pass` or the queue waits. */
function createClock() {
  let at = 0;
  const waits: { until: number; then: () => void }[] = [];
  return {
    now: () => at,
    wait: (ms: number, then: () => void) => void waits.push({ until: at + Math.max(0, ms), then }),
    pass: (ms: number) => {
      at += ms;
    },
    /** Ends all waits in the order of their times, until the queue waits no more. */
    async run() {
      for (;;) {
        await new Promise(setImmediate);
        waits.sort((a, b) => a.until - b.until);
        const next = waits.shift();
        if (!next) return;
        at = Math.max(at, next.until);
        next.then();
      }
    },
  };
}

describe("turns on the main thread", () => {
  it("give one sender at most a tenth of the time, however much it requests", async () => {
    const clock = createClock();
    const queue = createFairTaskQueue(clock);
    const pieces = Array.from({ length: 20 }, () => queue.runInTurn("a", () => clock.pass(5)));
    await clock.run();
    await Promise.all(pieces);
    expect((20 * 5) / clock.now()).to.be.within(0.09, 0.12);
  });

  it("leave half of the time to all other work, however many senders there are", async () => {
    const clock = createClock();
    const queue = createFairTaskQueue(clock);
    const pieces = Array.from({ length: 200 }, (_, n) => queue.runInTurn(`sender ${n}`, () => clock.pass(5)));
    await clock.run();
    await Promise.all(pieces);
    expect((200 * 5) / clock.now()).to.be.at.most(0.51);
  });

  it("rotate over senders, however often each one asks", async () => {
    const clock = createClock();
    const queue = createFairTaskQueue(clock);
    const done: string[] = [];
    const ask = (key: string) =>
      queue.runInTurn(key, () => {
        clock.pass(1);
        done.push(key);
      });
    const all = ["a", "a", "a", "b", "b", "c"].map(ask);
    await clock.run();
    await Promise.all(all);
    expect(done).to.deep.equal(["a", "b", "c", "a", "b", "a"]);
  });

  it("count work that was done outside of them", async () => {
    const clock = createClock();
    const queue = createFairTaskQueue(clock);
    queue.extendPause("a", 10);
    const outcomes = await Promise.all([queue.runInTurn("a", clock.now), clock.run()]);
    expect(outcomes[0]).to.equal(90);
  });

  it("count the limit of bounded work, and not a pause that falls into it", async () => {
    const clock = createClock();
    const queue = createFairTaskQueue(clock);
    await Promise.all([queue.runInTurn("a", () => clock.pass(30), 8), clock.run()]);
    const outcomes = await Promise.all([queue.runInTurn("a", clock.now), clock.run()]);
    expect(outcomes[0]).to.equal(30 + 8 * 9);
  });

  it("start at once for a sender with few requests, and return or throw what the work does", async () => {
    const queue = createFairTaskQueue(createClock());
    expect(await queue.runInTurn("a", () => 7)).to.equal(7);
    const fault = new Error("no");
    const thrown = await queue
      .runInTurn("a", () => {
        throw fault;
      })
      .catch((error: unknown) => error);
    expect(thrown).to.equal(fault);
  });

  it("are rejected if too much work of one sender waits; another sender still gets turns", async () => {
    const clock = createClock();
    const queue = createFairTaskQueue(clock);
    const results = Promise.allSettled(Array.from({ length: 300 }, () => queue.runInTurn("a", () => clock.pass(1))));
    const other = queue.runInTurn("b", () => "served");
    await clock.run();
    const refused = (await results)
      .filter((result) => result.status === "rejected")
      .map(({ reason }) => reason as ActionError);
    expect(refused.length).to.be.within(30, 60);
    expect(refused[0]!.status).to.equal("RATE_LIMIT_EXCEEDED");
    expect(refused[0]!.details.retryAfter).to.equal(2);
    expect(await other).to.equal("served");
  });
});
