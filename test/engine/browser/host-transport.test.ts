/** Tests HSTS headers of a host. They apply to the run that received them, but not to the next run in the same page. */
import { createServer, type Server } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Chromium } from "../../../src/engine/browser/browser-source.js";
import { Page } from "../../../src/engine/browser/pages/page.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { KEY_HASH, tlsServer } from "../../harness/localhost-tls.js";
import { type RemoteChromium, startRemoteChromium } from "../../harness/remote-chromium.js";
import { createRemoteSource, runOf } from "./support.js";

/** A host name that is not local. Chromium ignores HSTS headers of local names. */
const HOST = "strict.test";
const TLS_FIRST_BYTE = 0x16;

const listening = (server: Server | TlsServer): Promise<number> =>
  new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });

// HSTS has a visible effect only when a whole document navigates to http, because an https page cannot load http resources.
describe("a host that requires https (HSTS)", () => {
  let plain: Server;
  let strict: TlsServer;
  let proxy: EgressProxy;
  let remote: RemoteChromium;
  let chromium: Chromium;
  let page: Page;
  let urls: string;
  let received: string[] = [];
  let onArrival: () => void = () => {};

  const recordArrival = (arrival: string) => {
    received.push(arrival);
    onArrival();
  };

  before(async () => {
    plain = createServer((_request, response) => {
      recordArrival("plain");
      response.writeHead(204).end();
    });
    plain.on("clientError", (error: Error & { rawPacket?: Buffer }, socket) => {
      recordArrival(error.rawPacket?.[0] === TLS_FIRST_BYTE ? "TLS" : error.message);
      socket.destroy();
    });
    strict = tlsServer((_request, response) => {
      const headers = { "Access-Control-Allow-Origin": "*", "Strict-Transport-Security": "max-age=9999" };
      response.writeHead(200, headers).end();
    });
    urls = `const plain = "http://${HOST}:${await listening(plain)}/", strict = "https://${HOST}:${await listening(strict)}/";`;
    const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
    proxy = createEgressProxy({ allowPrivateNetwork: true, resolve });
    remote = await startRemoteChromium({ more: [`--ignore-certificate-errors-spki-list=${KEY_HASH}`] });
    chromium = await createRemoteSource(remote.endpoint).open(new AbortController().signal);
  });
  after(async () => {
    await chromium.stop();
    await remote.kill();
    proxy.close();
    for (const server of [plain, strict]) {
      server.close();
      server.closeAllConnections();
    }
  });

  async function open(): Promise<void> {
    do {
      await page?.discard();
      page = new Page(chromium.connection, await proxy.openProxyPort(), () => null);
      await page.open().catch(() => {});
    } while (!page.isUsable || !(await page.setUp(runOf("").origin, "document")));
  }

  /** Executes `before` in a document, and then navigates to the host's http URL. Returns the protocol of the request that arrives. */
  async function navigateToHttp(before: string): Promise<string> {
    received = [];
    const first = new Promise<void>((resolve) => {
      onArrival = resolve;
    });
    const cancel = new AbortController();
    const code = `${urls} ${before}; location.href = plain; await new Promise(() => {})`;
    const ended = page.run(runOf(`const execute = async () => { ${code} }`, { signal: cancel.signal }));
    await first;
    cancel.abort();
    await ended;
    return received[0]!;
  }

  it("gets https in the run that received the header", async () => {
    await open();
    expect(await navigateToHttp("if (!(await fetch(strict)).ok) return")).to.equal("TLS");
    await page.discard();
  });

  it("gets http in the next run, as if it had never required https", async () => {
    await open();
    // The loop repeats the run until the page was reset. A new page would not show whether a reset removes HSTS.
    for (;;) {
      const received = await page.run(
        runOf(`const execute = async () => { ${urls} return (await fetch(strict)).status }`),
      );
      expect(received).to.deep.equal({ ok: true, data: "200" });
      if (await page.resetSandbox()) break;
      await open();
    }
    expect(await navigateToHttp("")).to.equal("plain");
    await page.discard();
  });
});
