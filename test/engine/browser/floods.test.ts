/** Tests the limits that stop a run from keeping the browser's main process busy. Also tests that normal use stays within them. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { longTest } from "../../harness/samples.js";
import { runNeighbourDuringFlood } from "./flood-runs.js";
import { resultOf, testBrowsers } from "./support.js";

describe("a flood of the browser's main process", function () {
  this.timeout(300_000);
  let browsers: Browsers;

  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  for (const [title, element] of [
    ["an empty frame", "{}"],
    ["a frame of its own document", "{ srcdoc: '<p>' }"],
    ["a frame of a blob", "{ src: URL.createObjectURL(new Blob(['<p>'], { type: 'text/html' })) }"],
    ["a frame of the page's origin", "{ src: '/x' }"],
  ] as const) {
    it(`cannot be made with the channels of ${title}, before its document exists and afterwards`, async () => {
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

  longTest("is not detected in a run that only computes, or fills much memory", async () => {
    const { outcome, lost } = await runNeighbourDuringFlood(
      browsers,
      `
      const kept = new Uint8Array(1e8);
      for (const end = performance.now() + 1_500; performance.now() < end; ) kept.fill(1);
      return 1`,
    );
    expect([outcome, lost]).to.deep.equal([{ ok: true, data: "1" }, 0]);
  });

  it("does not include messages that a page exchanges with its frames and workers over a channel", async () => {
    const worker = "new BroadcastChannel('x').onmessage = ({ data }) => postMessage(data); postMessage('on')";
    const code = `const execute = async () => {
      const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(worker)}])));
      const heard = () => new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data) });
      await heard();
      const channel = new BroadcastChannel("x");
      const answer = heard();
      // The browser may connect the worker's channel late, and the worker then misses the first messages. So the code repeats the message.
      const again = setInterval(() => channel.postMessage({ a: 1 }), 50);
      const data = await answer;
      clearInterval(again);
      return [data, channel instanceof BroadcastChannel, BroadcastChannel.name, channel.name];
    }`;
    expect(await resultOf(browsers, code)).to.deep.equal([{ a: 1 }, true, "BroadcastChannel", "x"]);
  });
});
