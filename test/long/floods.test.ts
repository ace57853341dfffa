/**
 * Checks that the service ends only the run that floods the browser's main process with work. Runs of other apps (neighbours) wait only
 * until the service has paused the flood.
 */
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import {
  CHANNEL_FLOODS,
  CHANNEL_PLACES,
  expectFloodRefused,
  FLOOD_ENDED,
  FLOODS,
  LOCK_FLOOD,
  PLACES,
  runNeighbourDuringFlood,
} from "../engine/browser/flood-runs.js";
import { testBrowsers } from "../engine/browser/support.js";

/** Maximum time in milliseconds until the service has paused a flood. Without other load, it takes at most half a second. */
const WAIT_MAX_MS = 2_000;
/** Maximum additional time of a neighbour's run, as a multiple of its longest run before the flood. Other load lengthens both runs. */
const SLOWDOWN_MAX = 40;

describe("runs beside a flood of the browser's main process", () => {
  let browsers: Browsers;

  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  for (const [title, code, places] of FLOODS) {
    for (const [where, put] of PLACES.filter(([place]) => places.includes(place))) {
      it(`are not lost, and wait only until the service has paused ${title} from ${where}`, async () => {
        const { outcome, lost, longest, quiet } = await runNeighbourDuringFlood(browsers, put(code));
        expect(lost).to.equal(0);
        expect(outcome.ok ? "it went through" : outcome.error.message).to.match(FLOOD_ENDED);
        expect(longest).to.be.lessThan(WAIT_MAX_MS + SLOWDOWN_MAX * quiet);
      });
    }
  }

  for (const [where, put] of CHANNEL_PLACES) {
    for (const code of CHANNEL_FLOODS) {
      it(`are not lost beside channels from ${where}, which are rejected: ${code}`, () =>
        expectFloodRefused(browsers, put(code)));
    }
  }
  for (const [where, put] of CHANNEL_PLACES.slice(0, 2)) {
    it(`are not lost beside locks from ${where}, which are rejected`, () =>
      expectFloodRefused(browsers, put(LOCK_FLOOD)));
  }
});
