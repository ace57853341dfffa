/**
 * Checks that a run that keeps the browser's own process busy is ended, that no other run is, and that neighbours wait no longer than the
 * watch needs.
 */
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import {
  besideFlood,
  CHANNEL_FLOODS,
  CHANNEL_PLACES,
  expectRefused,
  FLOOD_ENDED,
  FLOODS,
  LOCK_FLOOD,
  PLACES,
} from "../engine/browser/flood-runs.js";
import { testBrowsers } from "../engine/browser/support.js";

/**
 * Maximum wait of a neighbour: longer than detecting and pausing a flood takes, which is half a second on a machine with time for the
 * watch.
 */
const WAIT_MAX_MS = 2_000;
/** Runs without a flood show other load of the machine. The limit is this multiple of the longest of these runs. */
const SLOWER_MAX = 40;

describe("runs beside a flood of the browser's main process", () => {
  let browsers: Browsers;

  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  for (const [what, code, places] of FLOODS) {
    for (const [where, put] of PLACES.filter(([place]) => places.includes(place))) {
      it(`are not lost and wait no longer than the detection takes, which ends ${what} from ${where}`, async () => {
        const { outcome, lost, longest, quiet } = await besideFlood(browsers, put(code));
        expect(lost).to.equal(0);
        expect(outcome.ok ? "it went through" : outcome.error.message).to.match(FLOOD_ENDED);
        expect(longest).to.be.lessThan(WAIT_MAX_MS + SLOWER_MAX * quiet);
      });
    }
  }

  for (const [where, put] of CHANNEL_PLACES) {
    for (const code of CHANNEL_FLOODS) {
      it(`are not lost beside channels from ${where}, which are rejected: ${code}`, () =>
        expectRefused(browsers, put(code)));
    }
  }
  for (const [where, put] of CHANNEL_PLACES.slice(0, 2)) {
    it(`are not lost beside locks from ${where}, which are rejected`, () => expectRefused(browsers, put(LOCK_FLOOD)));
  }
});
