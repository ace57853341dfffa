/**
 * Tests the thread that executes each run in a new ShadowRealm (a separate set of globals): the creation of realms, and the messages.
 */
import { setImmediate as turn } from "node:timers/promises";
import { createContext, runInContext } from "node:vm";
import { expect } from "chai";
import { createRealmWorker } from "../../../src/engine/browser/pages/in-page/realm-worker.js";
import { replaceThread } from "../../../src/engine/browser/pages/in-page/replace-thread.js";

const LIMITS = { runsMax: 100, measureAtCost: 10, messageMaxCharacters: 30 };

interface RealmThread {
  initialize(bindingName: string): void;
  run(payload: string, settings: string, scripts: unknown[], standInsJson: null, base: string): Promise<string>;
  readAnswerPart(from: number, to: number): string;
}

/** Runs the thread's script in a simulated worker. Each run takes a millisecond. */
function createRealmThread() {
  const sent: string[] = [];
  const receivers: ((text: string) => void)[] = [];
  let now = 0;
  let realms = 0;
  let endedRealms = 0;
  const context = createContext({
    ShadowRealm: class {
      evaluate() {
        realms += 1;
        return () => (receive: (text: string) => void) => {
          receivers.push(receive);
          return () => {
            endedRealms += 1;
          };
        };
      }
    },
    navigator: {},
    performance: { now: () => now },
    send: (text: string) => sent.push(text),
  });
  const parameters = `"", null, null, [], ${JSON.stringify(LIMITS)}`;
  const thread: RealmThread = runInContext(
    `globalThis.self = globalThis; (${createRealmWorker})(${parameters})`,
    context,
  );
  thread.initialize("send");
  return {
    thread,
    sent,
    receivers,
    countRealms: () => [realms, endedRealms],
    start: () => thread.run("{}", "{}", [["action.js", "", ""]], null, ""),
    /** Executes a run with this answer. Resolves when the thread is ready for the next run. */
    completeRun(answer: string) {
      const threadUse = this.start();
      now += 1;
      receivers.at(-1)!(`answer ${answer}`);
      return threadUse;
    },
  };
}

describe("the realm for the next run on a thread", () => {
  it("is created once for each run, after the last run was removed", async () => {
    const realmThread = createRealmThread();
    expect(realmThread.countRealms()).to.deep.equal([1, 0]);
    const threadUse = realmThread.completeRun("data 1");
    expect([realmThread.countRealms(), realmThread.sent]).to.deep.equal([[1, 0], ["answer data 1"]]);
    expect(await threadUse).to.equal("reuse");
    expect(realmThread.countRealms()).to.deep.equal([2, 1]);
    expect(await realmThread.completeRun("data 2")).to.equal("reuse");
    expect(realmThread.countRealms()).to.deep.equal([3, 2]);
    expect(realmThread.sent).to.deep.equal(["answer data 1", "answer data 2"]);
  });

  it("is created also if the memory of the thread is to be measured", async () => {
    const thread = createRealmThread();
    const uses: string[] = [];
    for (let count = 0; count < LIMITS.measureAtCost; count += 1) uses.push(await thread.completeRun("data 1"));
    expect(uses.flatMap((use, index) => (use === "measure" ? [index + 1] : []))).to.deep.equal([5, 10]);
    expect(thread.countRealms()).to.deep.equal([LIMITS.measureAtCost + 1, LIMITS.measureAtCost]);
  });

  it("is not created after the thread's last run", async () => {
    const thread = createRealmThread();
    for (let count = 1; count < LIMITS.runsMax; count += 1) await thread.completeRun("data 1");
    expect(await thread.completeRun("data 1")).to.equal("replace");
    expect(thread.countRealms()).to.deep.equal([LIMITS.runsMax, LIMITS.runsMax]);
  });

  it("receives nothing of the run before", async () => {
    const { sent, receivers, start } = createRealmThread();
    const threadUse = start();
    const [first] = receivers;
    first!("console its own");
    first!("answer data 1");
    first!("console late");
    first!("answer data 3");
    await threadUse;
    const nextThreadUse = start();
    first!("console later");
    first!("answer data 4");
    receivers[1]!("answer data 2");
    await nextThreadUse;
    expect(sent).to.deep.equal(["console its own", "answer data 1", "answer data 2"]);
  });

  it("is created after a long result, of which the service gets the length first", async () => {
    const { thread, sent, ...rest } = createRealmThread();
    const long = `data "${"x".repeat(LIMITS.messageMaxCharacters)}"`;
    const threadUse = rest.start();
    rest.receivers[0]!(`answer ${long}`);
    expect(sent).to.deep.equal([`long-answer ${long.length}`]);
    expect(await threadUse).to.equal("reuse");
    expect(thread.readAnswerPart(0, 10) + thread.readAnswerPart(10, long.length)).to.equal(long);
  });
});

describe("the page around a thread of realms", () => {
  it("gets a new thread when the worker's own script has run", async () => {
    const workers: { onmessage: (() => void) | null; ended: boolean }[] = [];
    const context = createContext({
      ShadowRealm: class {},
      Uint8Array: { fromBase64() {} },
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
    for (const last of [0, 1]) {
      let isThere = false;
      const replaced = runInContext(`globalThis.self = globalThis; (${replaceThread})(false)`, context).then(() => {
        isThere = true;
      });
      await turn();
      expect(isThere).to.equal(false);
      workers[last]!.onmessage!();
      await replaced;
    }
    expect(workers.map(({ ended }) => ended)).to.deep.equal([true, false]);
  });
});
