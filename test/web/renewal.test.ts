/** Tests that requests with an expired session wait for a new sign-in, and which errors count as a missing response. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import {
  fetchWithSignInRetry,
  getSessionRenewalCount,
  onSessionExpiry,
  resumePausedRequests,
  setRequestPausing,
  waitForSessionRenewal,
} from "../../src/web/studio/accounts/session-renewal.js";
import { asApiError } from "../../src/web/studio/shared/api-error.js";

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

describe("errors that Studio shows", () => {
  it("report a missing response only if a request failed, and a fault in the code of Studio as such", async () => {
    const server = createServer((request) => request.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const refusal = await fetchWithSignInRetry(new URL(`http://127.0.0.1:${port}/`)).catch((error: unknown) => error);
    server.close();
    expect(asApiError(refusal)).to.include({ status: "OFFLINE", message: "the service does not answer" });
    expect(asApiError(new TypeError("entries is not iterable"))).to.include({
      status: "STUDIO_ERROR",
      message: "an error occurred in Studio (TypeError: entries is not iterable); reload the page",
    });
  });
});
