import { EventEmitter } from "node:events";
import { expect } from "chai";
import type { CDPSession } from "puppeteer";
import { PageNetwork } from "../../src/engine/browser/network/page-network.js";
import { BLOCKED_REQUEST_TEXT } from "../../src/engine/browser/network/run-requests.js";
import { runOf } from "../engine/browser/support.js";

const ORIGIN = "https://app-1.actions.internal";
const HOST = "abcdefghijklmnopqrs0123.invalid";

describe("a request that was blocked for a secret in its host", () => {
  const session = new EventEmitter();
  const consoleTexts: string[] = [];
  const send = async () => {};
  const fakeSession = Object.assign(session, { send }) as unknown as CDPSession;
  const network = new PageNetwork({ session: fakeSession, origin: ORIGIN, proxyPort: null, waitForSentEvents: send });
  void network.watch(fakeSession);
  beforeEach(() => {
    consoleTexts.length = 0;
    return network.startRun(runOf("", { onConsole: ({ text }) => consoleTexts.push(text) }));
  });

  const fail = (url: string, more: object) => {
    session.emit("Network.requestWillBeSent", { requestId: "1", request: { url } });
    session.emit("Network.loadingFailed", { requestId: "1", errorText: "net::ERR_FAILED", canceled: false, ...more });
  };
  const explainFailedFetch = () => {
    const error = { name: "TypeError", message: "Failed to fetch", stack: "TypeError: Failed to fetch" };
    return JSON.stringify(network.requests.explainFailure({ ok: false, cause: "script", error }));
  };

  it("is reported without the host, in the console and in the error", () => {
    fail(`https://${HOST}/`, { blockedReason: "inspector" });
    network.requests.recordFailure(new URL(`http://${HOST}:4000/x`), BLOCKED_REQUEST_TEXT);
    expect(consoleTexts).to.deep.equal([`A request failed: an address: ${BLOCKED_REQUEST_TEXT}`]);
    expect(explainFailedFetch()).to.include(BLOCKED_REQUEST_TEXT).and.not.include(HOST);
  });

  it("differs from a failed request, whose host is reported", () => {
    fail(`https://${HOST}/`, {});
    expect(consoleTexts).to.deep.equal([`A request failed: https://${HOST}: net::ERR_FAILED`]);
    expect(explainFailedFetch()).to.include(HOST);
  });
});
