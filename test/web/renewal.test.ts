/** Tests that requests with an expired session wait for a new sign-in, and that other requests do not. */
import { expect } from "chai";
import {
  getSessionRenewalCount,
  onSessionExpiry,
  resumePausedRequests,
  setRequestPausing,
  waitForSessionRenewal,
} from "../../src/web/studio/accounts/session-renewal.js";

describe("requests of an expired session", () => {
  const shown: boolean[] = [];
  let stop: () => void;
  before(() => {
    setRequestPausing(true);
    stop = onSessionExpiry((isExpired) => shown.push(isExpired));
    shown.length = 0;
  });
  after(() => {
    stop();
    setRequestPausing(false);
  });

  it("wait for one sign-in, and are sent again at once if they are rejected only after it", async () => {
    const early = getSessionRenewalCount();
    const waiting = [waitForSessionRenewal(early), waitForSessionRenewal(early)];
    expect(shown).to.deep.equal([true]);
    resumePausedRequests();
    await Promise.all(waiting);
    expect(shown).to.deep.equal([true, false]);
    await waitForSessionRenewal(early);
    expect(shown, "a late rejection").to.deep.equal([true, false]);
    const next = waitForSessionRenewal(getSessionRenewalCount());
    expect(shown, "the next expiry").to.deep.equal([true, false, true]);
    resumePausedRequests();
    await next;
  });
});
