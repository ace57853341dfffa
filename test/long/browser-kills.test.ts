/** Measures how long the service takes to replace a browser that was killed, on a machine without other load. */
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import { runWhileRenderersDie, startHangingRun } from "../engine/browser/process-group.js";
import { resultOf, testBrowsers } from "../engine/browser/support.js";

/** Maximum duration of a run in milliseconds while renderers die. A run may wait for another page if its page dies while it is created. */
const PAGE_REPLACEMENT_MAX_MS = 7_000;
const BROWSER_REPLACEMENT_MAX_MS = 2_000;

describe("a browser whose processes die", () => {
  let browsers: Browsers;
  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  it("is replaced within two seconds after it is killed as a whole", async () => {
    const { run: lost, started } = startHangingRun(browsers);
    await started;
    process.kill(browsers.getBrowserPid()!, "SIGKILL");
    await lost;
    const lostAt = performance.now();
    expect(await resultOf(browsers, "const execute = async () => 3")).to.equal(3);
    expect(performance.now() - lostAt).to.be.below(BROWSER_REPLACEMENT_MAX_MS);
  });

  it("does not make a run wait for a renderer that died while its page was created", async () => {
    const { longestMs } = await runWhileRenderersDie(browsers, 40);
    expect(longestMs).to.be.below(PAGE_REPLACEMENT_MAX_MS);
  });
});
