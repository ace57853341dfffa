/** What bounds a run that would keep the browser's own process busy, and what a run may do that is no flood. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { besideFlood, PLACES } from "./flood-runs.js";
import { resultOf, testBrowsers } from "./support.js";

describe("a flood of the browser's own process", function () {
  this.timeout(300_000);
  let browsers: Browsers;

  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

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
        const { outcome, lost } = await besideFlood(browsers, put(code));
        expect(lost).to.equal(0);
        if (outcome.ok) throw new Error("it went through");
        expect(outcome.error.message).to.match(refusal);
      });
    }
    it(`cannot be made by channels from a worker: ${code}`, async () => {
      const waiting = `const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}])));
        await new Promise((_, reject) => { worker.onerror = (event) => reject(new Error(event.message)) });`;
      const { outcome, lost } = await besideFlood(browsers, waiting);
      expect(lost).to.equal(0);
      if (outcome.ok) throw new Error("it went through");
      expect(outcome.error.message).to.match(refusal);
    });
  }

  for (const [where, put] of PLACES.slice(0, 2)) {
    it(`cannot be made by locks from ${where}`, async () => {
      const { outcome, lost } = await besideFlood(
        browsers,
        put("for (;;) navigator.locks.request('a' + Math.random(), () => {});"),
      );
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
    const { outcome, lost } = await besideFlood(
      browsers,
      `
      const kept = new Uint8Array(1e8);
      for (const end = performance.now() + 1_500; performance.now() < end; ) kept.fill(1);
      return 1`,
    );
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
      // Again and again: the browser may hear of the worker's channel after the worker's word.
      const again = setInterval(() => channel.postMessage({ a: 1 }), 50);
      const data = await answer;
      clearInterval(again);
      return [data, channel instanceof BroadcastChannel, BroadcastChannel.name, channel.name];
    }`;
    expect(await resultOf(browsers, code)).to.deep.equal([{ a: 1 }, true, "BroadcastChannel", "x"]);
  });
});
