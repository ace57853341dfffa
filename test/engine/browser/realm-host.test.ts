/** The page around a thread of realms: when it has the next run's realm made, and what it hears of the last run by then. */
import { setImmediate as turn } from "node:timers/promises";
import { createContext, runInContext } from "node:vm";
import { expect } from "chai";
import { pageTexts } from "../../../src/engine/browser/pages/in-page/page-texts.js";
import { realmHost } from "../../../src/engine/browser/pages/in-page/realm-host.js";

const BOUNDS = { readyWithinMs: 500, pauseMs: 2, threadRuns: 100, lookAfter: 10 };

interface Host {
  listen(bindingName: string): boolean;
  begin(): Promise<void>;
  run(payload: string, settings: string, forget: string[], scripts: unknown[], trialOf: null): Promise<string>;
  replaceThread(): Promise<void>;
}

/** A host whose worker and clock are the test's. */
async function hosted() {
  const timers = new Map<object, { then: () => void; ms: number }>();
  const printed: string[] = [];
  let realms = 0;
  let isHeld = false;
  const worker = {
    terminate() {},
    onmessage: null as ((event: { data: string }) => void) | null,
    /** Makes realms at once, and runs nothing. */
    postMessage(message: unknown) {
      if (message !== null || isHeld) return;
      realms += 1;
      this.onmessage?.({ data: "r" });
    },
    say: (data: string) => worker.onmessage?.({ data }),
  };
  const context = createContext({
    Worker: function makeWorker() {
      return worker;
    },
    navigator: {},
    print: (line: string) => void printed.push(line),
    setTimeout(then: () => void, ms: number) {
      const timer = {};
      timers.set(timer, { then, ms });
      return timer;
    },
    clearTimeout: (timer: object) => void timers.delete(timer),
  });
  const source = `globalThis.self = globalThis; (${realmHost})("", (${pageTexts})(), [], {}, false, ${JSON.stringify(BOUNDS)})`;
  const host: Host = runInContext(source, context);
  host.listen("print");
  await host.begin();
  return {
    worker,
    printed,
    realms: () => realms,
    /** From here on, or no longer, no realm is made. */
    hold(held: boolean) {
      isHeld = held;
    },
    replaceThread: () => host.replaceThread(),
    begin: () => host.run("{}", "{}", [], [["action.js", "", "", false]], null),
    pass(ms: number) {
      for (const [timer, one] of timers) if (one.ms <= ms && timers.delete(timer)) one.then();
    },
  };
}

/** One run to its answer. */
async function answered(host: Awaited<ReturnType<typeof hosted>>, answer: string): Promise<string> {
  const run = host.begin();
  await turn();
  host.worker.say(`a1 ${answer}`);
  return run;
}

describe("The next run's realm on a thread of them", () => {
  it("is made when the answer has had a moment to go its way", async () => {
    const host = await hosted();
    expect(await answered(host, "d1")).to.equal("d1");
    expect(host.realms()).to.equal(1);
    host.pass(BOUNDS.pauseMs);
    expect(host.realms()).to.equal(2);
    expect(await answered(host, "d2")).to.equal("d2");
  });

  it("is made at once where the next run comes before, and once", async () => {
    const host = await hosted();
    await answered(host, "d1");
    expect(await answered(host, "d2")).to.equal("d2");
    expect(host.realms()).to.equal(2);
    host.pass(BOUNDS.pauseMs);
    host.pass(BOUNDS.pauseMs);
    expect(host.realms()).to.equal(3);
  });

  it("is made at once where the thread is to be looked at, or another is begun", async () => {
    const host = await hosted();
    for (let count = 1; count < BOUNDS.lookAfter / 2; count += 1) expect(await answered(host, "d1")).to.equal("d1");
    expect(await answered(host, "d1")).to.equal("ld1");
    expect(host.realms()).to.equal(1 + BOUNDS.lookAfter / 2);
  });

  it("is not late on a thread that was replaced meanwhile", async () => {
    const host = await hosted();
    for (let count = 1; count < BOUNDS.lookAfter / 2; count += 1) await answered(host, "d1");
    host.pass(BOUNDS.pauseMs);
    host.hold(true);
    expect(await answered(host, "d1")).to.equal("ld1");
    host.hold(false);
    await host.replaceThread();
    host.pass(BOUNDS.readyWithinMs);
    expect(host.printed).to.deep.equal([]);
    expect(await answered(host, "d2")).to.equal("d2");
  });

  it("comes after a run of which nothing more is printed", async () => {
    const host = await hosted();
    const run = host.begin();
    await turn();
    host.worker.say("cits own");
    host.worker.say("a1 d1");
    await run;
    host.worker.say("clate");
    const next = host.begin();
    host.worker.say("clater");
    await turn();
    host.worker.say("a1 d2");
    await next;
    expect(host.printed).to.deep.equal(["its own"]);
  });
});
