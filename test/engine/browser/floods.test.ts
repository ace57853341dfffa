/** A run that keeps the browser's own process busy is ended, and every run beside it completes. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { resultOf, runOf, testBrowsers } from "./support.js";

/** Longer than a flood takes to be noticed and paused, which is half a second on a machine that has time for the watch. */
const WAIT_MAX_MS = 2_000;
/** What else a machine is busy with shows in runs beside no flood: so many times the longest of these may come on top. */
const SLOWER_MAX = 40;
const QUIET_RUNS = 20;

const inWorker = (code: string) =>
  `new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}]))); await new Promise(() => {});`;
const inFrame = (code: string) =>
  `const frame = document.createElement("iframe"); document.body.append(frame); frame.contentWindow.eval(${JSON.stringify(code)});`;

const PLACES: [string, (code: string) => string][] = [
  ["the page", (code) => code],
  ["a frame", inFrame],
  ["a worker", inWorker],
];

/** What is told to the browser's processes without waiting for an answer. */
const FLOODS: [string, string, string[]][] = [
  ["requests", "for (;;) fetch(`https://host.example/`).catch(() => {});", ["a worker"]],
  ["requests that are blocked", "for (;;) fetch('/x').catch(() => {});", ["the page", "a frame"]],
  ["beacons", "for (;;) navigator.sendBeacon('/x', 'y');", ["the page", "a frame"]],
  ["reported errors", "for (;;) reportError(new Error('x'));", ["the page", "a frame", "a worker"]],
];

describe("a flood of the browser's own process", function () {
  this.timeout(60_000);
  let browsers: Browsers;

  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  /** The outcome of the flood, how many of its neighbour's runs failed while it lasted, and whether one waited too long. */
  async function beside(code: string) {
    const other = { isolationKey: "2:master", origin: "https://app-2.actions.internal", timeoutMs: 30_000 };
    let longest = 0;
    const neighbour = async () => {
      const begun = performance.now();
      const outcome = await browsers.run(runOf("const execute = async () => 1", other));
      longest = Math.max(longest, performance.now() - begun);
      return outcome;
    };
    for (let count = 0; count < QUIET_RUNS; count += 1) await neighbour();
    const bound = WAIT_MAX_MS + SLOWER_MAX * longest;
    longest = 0;
    let over = false;
    const flood = browsers.run(runOf(`const execute = async () => { ${code} }`, { timeoutMs: 40_000 })).finally(() => {
      over = true;
    });
    let lost = 0;
    while (!over) if (!(await neighbour()).ok) lost += 1;
    expect((await neighbour()).ok).to.equal(true);
    expect(longest, "a neighbour's longest run").to.be.lessThan(bound);
    return { outcome: await flood, lost };
  }

  for (const [what, code, places] of FLOODS) {
    for (const [where, put] of PLACES.filter(([place]) => places.includes(place))) {
      it(`by ${what} from ${where} ends the run that made it, and no other`, async () => {
        const { outcome, lost } = await beside(put(code));
        expect(lost).to.equal(0);
        // What waits to be sent counts as the run's memory.
        const reason =
          /asked the browser for so much at once that other runs had to wait|used more than 512 MB of memory/;
        expect(outcome.ok ? "it went through" : outcome.error.message).to.match(reason);
      });
    }
  }

  const refusal =
    /^(Uncaught RangeError: )?An action may (open 8 BroadcastChannels|send 1000 messages over|ask for 1000 locks)/;
  const bounded = [
    "for (;;) new BroadcastChannel('x').postMessage(1);",
    "const c = new BroadcastChannel('x'); for (;;) c.postMessage(1);",
    "const Own = Object.getPrototypeOf(new BroadcastChannel('x')).constructor; for (;;) new Own('x').close();",
    "for (;;) Reflect.construct(BroadcastChannel, ['x'], Object).close?.();",
  ];
  for (const code of bounded) {
    for (const [where, put] of PLACES.slice(0, 2)) {
      it(`cannot be made by channels from ${where}: ${code}`, async () => {
        const { outcome, lost } = await beside(put(code));
        expect(lost).to.equal(0);
        if (outcome.ok) throw new Error("it went through");
        expect(outcome.error.message).to.match(refusal);
      });
    }
    it(`cannot be made by channels from a worker: ${code}`, async () => {
      const waiting = `const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}])));
        await new Promise((_, reject) => { worker.onerror = (event) => reject(new Error(event.message)) });`;
      const { outcome, lost } = await beside(waiting);
      expect(lost).to.equal(0);
      if (outcome.ok) throw new Error("it went through");
      expect(outcome.error.message).to.match(refusal);
    });
  }

  for (const [where, put] of PLACES.slice(0, 2)) {
    it(`cannot be made by locks from ${where}`, async () => {
      const { outcome, lost } = await beside(put("for (;;) navigator.locks.request('a' + Math.random(), () => {});"));
      expect(lost).to.equal(0);
      expect(outcome.ok ? "it went through" : outcome.error.message).to.match(refusal);
    });
  }

  for (const [title, element] of [
    ["an empty frame", "{}"],
    ["a frame of its own document", "{ srcdoc: '<p>' }"],
    ["a frame of a blob", "{ src: URL.createObjectURL(new Blob(['<p>'], { type: 'text/html' })) }"],
    ["a frame of the page's origin", "{ src: '/x' }"],
  ] as const) {
    it(`cannot be made by the channels of ${title}, before its document is there nor afterwards`, async () => {
      const code = `const execute = async () => {
        const frame = Object.assign(document.createElement("iframe"), ${element});
        const loaded = new Promise((resolve) => { frame.onload = resolve });
        document.body.append(frame);
        const opened = () => { let n = 0; try { for (; n < 100; n += 1) new frame.contentWindow.BroadcastChannel("x"); } catch {} return n };
        const early = opened();
        await loaded;
        frame.contentWindow.console.log("nobody reads this");
        return [early, opened() <= 8];
      }`;
      expect(await resultOf(browsers, code)).to.deep.equal([8, true]);
    });
  }

  it("is not seen in a run that only computes, or fills much memory", async () => {
    const { outcome, lost } = await beside(`
      const kept = new Uint8Array(1e8);
      for (const end = performance.now() + 1_500; performance.now() < end; ) kept.fill(1);
      return 1`);
    expect([outcome, lost]).to.deep.equal([{ ok: true, data: "1" }, 0]);
  });

  it("still lets a page talk to its frames and workers over a channel", async () => {
    const worker = "new BroadcastChannel('x').onmessage = ({ data }) => postMessage(data); postMessage('on')";
    const code = `const execute = async () => {
      const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(worker)}])));
      const heard = () => new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data) });
      await heard();
      const channel = new BroadcastChannel("x");
      const answer = heard();
      channel.postMessage({ a: 1 });
      return [await answer, channel instanceof BroadcastChannel, BroadcastChannel.name, channel.name];
    }`;
    expect(await resultOf(browsers, code)).to.deep.equal([{ a: 1 }, true, "BroadcastChannel", "x"]);
  });
});
