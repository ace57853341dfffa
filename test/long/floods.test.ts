/** How long a neighbour waits beside a run that floods the browser's own process. */
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import { besideFlood, FLOODS, PLACES } from "../engine/browser/flood-runs.js";
import { testBrowsers } from "../engine/browser/support.js";

/** Longer than a flood takes to be noticed and paused, which is half a second on a machine that has time for the watch. */
const WAIT_MAX_MS = 2_000;
/** What else a machine is busy with shows in runs beside no flood: so many times the longest of these may come on top. */
const SLOWER_MAX = 40;

describe("the neighbour of a flood of the browser's own process", () => {
  let browsers: Browsers;

  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  for (const [what, code, places] of FLOODS) {
    for (const [where, put] of PLACES.filter(([place]) => places.includes(place))) {
      it(`waits no longer than the watch takes, beside ${what} from ${where}`, async () => {
        const { longest, quiet } = await besideFlood(browsers, put(code));
        expect(longest).to.be.lessThan(WAIT_MAX_MS + SLOWER_MAX * quiet);
      });
    }
  }
});
