/**
 * Tests the thread that executes each run in a new ShadowRealm (a separate set of globals). The tests cover when it creates the next realm,
 * and its messages.
 */
import { setImmediate as turn } from "node:timers/promises";
import { createContext, runInContext } from "node:vm";
import { expect } from "chai";
import { createRealmWorker } from "../../../src/engine/browser/pages/in-page/realm-worker.js";
import { createWorkerThreadManager } from "../../../src/engine/browser/pages/in-page/worker-thread-manager.js";

const BOUNDS = { pauseMs: 2, readyWithinMs: 500, threadRuns: 100, measureAfter: 10, messageCharacters: 30 };

interface RealmThread {
  begin(bindingName: string): void;
  run(payload: string, settings: string, scripts: unknown[], standInsJson: null, base: string): string;
  part(from: number, to: number): string;
}

/** Runs the thread's script in a simulated worker. The test moves the clock. */
function createRealmThread() {
  const timers = new Map<object, { then: () => void; ms: number }>();
  const printed: string[] = [];
  const answers: ((answer: string | number) => void)[] = [];
  const heard: ((text: string) => void)[] = [];
  let now = 0;
  let realms = 0;
  let postedMessages = 0;
  const context = createContext({
    ShadowRealm: class {
      evaluate() {
        realms += 1;
        return () => (hear: (text: string) => void) => {
          heard.push(hear);
          return () => {};
        };
      }
    },
    navigator: {},
    performance: { now: () => now },
    print(line: string) {
      const [tag = ""] = line.split(" ");
      const content = line.slice(tag.length + 1);
      if (tag === "answer") answers.shift()?.(content);
      else if (tag === "long-answer") answers.shift()?.(Number(content));
      else printed.push(line);
    },
    postMessage() {
      postedMessages += 1;
    },
    setTimeout(then: () => void, ms: number) {
      const timer = {};
      timers.set(timer, { then, ms });
      return timer;
    },
    clearTimeout: (timer: object) => void timers.delete(timer),
  });
  const given = `"", null, null, [], ${JSON.stringify(BOUNDS)}`;
  const thread: RealmThread = runInContext(`globalThis.self = globalThis; (${createRealmWorker})(${given})`, context);
  thread.begin("print");
  return {
    thread,
    printed,
    heard,
    realms: () => realms,
    postedMessages: () => postedMessages,
    begin: () =>
      new Promise<string | number>((resolve) => {
        answers.push(resolve);
        const refusal = thread.run("{}", "{}", [["action.js", "", ""]], null, "");
        if (refusal !== "") resolve(refusal);
      }),
    async completeRun(answer: string) {
      const run = this.begin();
      now += 1;
      heard.at(-1)?.(`answer ${answer}`);
      return run;
    },
    pass(ms: number) {
      now += ms;
      for (const [timer, one] of timers) if (one.ms <= ms && timers.delete(timer)) one.then();
    },
  };
}

describe("the realm for the next run on a thread", () => {
  it("is created a moment after the result was sent, and reported to the page", async () => {
    const one = createRealmThread();
    expect(one.postedMessages()).to.equal(1);
    expect(await one.completeRun("data 1")).to.equal("reuse data 1");
    expect(one.realms()).to.equal(1);
    one.pass(BOUNDS.pauseMs);
    expect([one.realms(), one.postedMessages()]).to.deep.equal([2, 2]);
    expect(await one.completeRun("data 2")).to.equal("reuse data 2");
  });

  it("is created at once if the next run comes earlier, and only once", async () => {
    const one = createRealmThread();
    await one.completeRun("data 1");
    expect(await one.completeRun("data 2")).to.equal("reuse data 2");
    expect(one.realms()).to.equal(2);
    one.pass(BOUNDS.pauseMs);
    one.pass(BOUNDS.pauseMs);
    expect(one.realms()).to.equal(3);
  });

  it("is created at once while runs follow each other closely", async () => {
    const one = createRealmThread();
    await one.completeRun("data 1");
    one.pass(BOUNDS.pauseMs - 1);
    await one.completeRun("data 2");
    expect(one.realms()).to.equal(2);
    one.pass(0);
    expect([one.realms(), one.postedMessages()]).to.deep.equal([3, 3]);
    one.pass(BOUNDS.pauseMs);
    await one.completeRun("data 3");
    one.pass(BOUNDS.pauseMs - 1);
    expect(one.realms()).to.equal(3);
    one.pass(BOUNDS.pauseMs);
    expect([one.realms(), one.postedMessages()]).to.deep.equal([4, 4]);
  });

  it("is created at once if the thread is to be measured", async () => {
    const one = createRealmThread();
    for (let count = 1; count < BOUNDS.measureAfter / 2; count += 1)
      expect(await one.completeRun("data 1")).to.equal("reuse data 1");
    expect(await one.completeRun("data 1")).to.equal("measure data 1");
    one.pass(0);
    expect(one.realms()).to.equal(1 + BOUNDS.measureAfter / 2);
  });

  it("is not created after the thread's last run", async () => {
    const one = createRealmThread();
    for (let count = 1; count < BOUNDS.threadRuns; count += 1) await one.completeRun("data 1");
    expect(await one.completeRun("data 1")).to.equal("replace data 1");
    one.pass(BOUNDS.pauseMs);
    expect([one.realms(), one.postedMessages()]).to.deep.equal([BOUNDS.threadRuns, BOUNDS.threadRuns]);
  });

  it("is not created if that is too late, and the next run never starts", async () => {
    const one = createRealmThread();
    await one.completeRun("data 1");
    one.pass(BOUNDS.pauseMs + BOUNDS.readyWithinMs + 1);
    expect(await one.begin()).to.equal("late");
    expect([one.realms(), one.postedMessages(), one.heard.length]).to.deep.equal([1, 1, 1]);
  });

  it("may be created as late as that, and may wait for long", async () => {
    const one = createRealmThread();
    await one.completeRun("data 1");
    one.pass(BOUNDS.pauseMs + BOUNDS.readyWithinMs);
    one.pass(60_000);
    expect(await one.completeRun("data 2")).to.equal("reuse data 2");
  });

  it("is created after a run that sends nothing more", async () => {
    const one = createRealmThread();
    const run = one.begin();
    const [first] = one.heard;
    first!("console its own");
    first!("answer data 1");
    first!("console late");
    first!("answer data 3");
    expect(await run).to.equal("reuse data 1");
    const next = one.begin();
    first!("console later");
    first!("answer data 4");
    one.heard[1]!("answer data 2");
    expect(await next).to.equal("reuse data 2");
    expect(one.printed).to.deep.equal(["console its own"]);
  });

  it("is created after a long result, of which the host gets the length first", async () => {
    const one = createRealmThread();
    const long = `data "${"x".repeat(BOUNDS.messageCharacters)}"`;
    const answer = `reuse ${long}`;
    expect(await one.completeRun(long)).to.equal(answer.length);
    expect(one.thread.part(0, 10) + one.thread.part(10, answer.length)).to.equal(answer);
  });
});

describe("the page around a thread of realms", () => {
  it("gets a new thread when the worker's own script has run, and counts only its realms", async () => {
    const workers: { onmessage: (() => void) | null; ended: boolean }[] = [];
    const context = createContext({
      Worker: class {
        onmessage = null;
        ended = false;
        constructor() {
          workers.push(this);
        }
        terminate() {
          this.ended = true;
        }
      },
    });
    const page = runInContext(`globalThis.self = globalThis; (${createWorkerThreadManager})(false)`, context);
    for (const last of [0, 1]) {
      let isThere = false;
      const replaced = page.replaceThread().then(() => {
        isThere = true;
      });
      await turn();
      expect(isThere).to.equal(false);
      workers[last]!.onmessage!();
      await replaced;
      expect(page.hasCreatedRealms(1)).to.equal(false);
      workers[last]!.onmessage!();
      expect([page.hasCreatedRealms(1), page.hasCreatedRealms(2)]).to.deep.equal([true, false]);
    }
    expect(workers.map(({ ended }) => ended)).to.deep.equal([true, false]);
  });
});
