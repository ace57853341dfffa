/** Tests that requests with an expired session wait for a new sign-in, and that other requests do not. */
import { expect } from "chai";
import {
  onExpiry,
  renewalCount,
  resumeRequests,
  waitForRenewal,
  watchSession,
} from "../../src/web/studio/accounts/renewal.js";

describe("requests of an expired session", () => {
  const shown: boolean[] = [];
  let stop: () => void;
  before(() => {
    watchSession(true);
    stop = onExpiry((isExpired) => shown.push(isExpired));
    shown.length = 0;
  });
  after(() => {
    stop();
    watchSession(false);
  });

  it("wait for one sign-in, and are sent again at once if they are rejected only after it", async () => {
    const early = renewalCount();
    const waiting = [waitForRenewal(early), waitForRenewal(early)];
    expect(shown).to.deep.equal([true]);
    resumeRequests();
    await Promise.all(waiting);
    expect(shown).to.deep.equal([true, false]);
    await waitForRenewal(early);
    expect(shown, "a late rejection").to.deep.equal([true, false]);
    const next = waitForRenewal(renewalCount());
    expect(shown, "the next expiry").to.deep.equal([true, false, true]);
    resumeRequests();
    await next;
  });
});
