/** Kills the browser up to 3 ms after a run's result, while its page is being renewed. No promise may then reject without a handler. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import { EVALUATION_MODES } from "../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../src/engine/egress-proxy.js";
import { resultOf, testBrowsers } from "../engine/browser/support.js";
import { until } from "../harness/until.js";

/** Milliseconds between the result and the kill. */
const DELAYS_MS = [0, 1, 2, 3];
/** Code that reads one response and leaves a request open. The page's renewal must clear the response, and wait for the request's end. */
const CODE = `async function execute({ payload: { url } }) {
  if (typeof fetch === "undefined") return "read";
  fetch(url + "/never").catch(() => {});
  return (await fetch(url + "/read")).text();
}`;

describe("a browser that is killed right after a result", function () {
  this.timeout(120_000);
  let host: Server;
  let payload: string;
  let proxy: EgressProxy;
  let browsers: Browsers;
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  let others: NodeJS.UnhandledRejectionListener[] = [];
  before(async () => {
    // Removes Mocha's own listener, which would end the test at the first unhandled rejection.
    others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
    host = createServer((request, response) => {
      response.setHeader("access-control-allow-origin", "*");
      if (request.url === "/read") response.end("read");
    });
    await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
    payload = JSON.stringify({ url: `http://127.0.0.1:${(host.address() as AddressInfo).port}` });
    proxy = createEgressProxy({ allowPrivateNetwork: true });
    browsers = testBrowsers({ openProxyPort: () => proxy.openProxyPort() });
    await browsers.start();
  });
  after(async () => {
    await browsers.stop();
    proxy.close();
    host.close();
    host.closeAllConnections();
    process.off("unhandledRejection", note);
    for (const listener of others) process.on("unhandledRejection", listener);
  });

  for (const mode of EVALUATION_MODES) {
    it(`leaves no rejection without a handler: ${mode}`, async () => {
      for (const ms of DELAYS_MS) {
        expect(await resultOf(browsers, CODE, { mode, payload })).to.equal("read");
        await delay(ms);
        const killed = browsers.getBrowserPid()!;
        process.kill(killed, "SIGKILL");
        await until(() => browsers.isReady() && browsers.getBrowserPid() !== killed, 30_000);
      }
      expect(unhandled.map(String)).to.deep.equal([]);
    });
  }
});
