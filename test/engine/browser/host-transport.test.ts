/** Tests HSTS headers of a host: they apply in the run that received them, and not in the next run of the same page. */
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

/** A host name that is not local, because Chromium ignores HSTS headers of local names. */
const HOST = "strict.test";
const TLS_FIRST_BYTE = 0x16;

const listening = (server: Server | TlsServer): Promise<number> =>
  new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });

// A page of https loads resources by https or not at all. So only a navigation of the whole document shows the effect of HSTS, and only the
// document sandbox can navigate.
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

  const recordArrival = (what: string) => {
    received.push(what);
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
    chromium = await createRemoteSource(remote.endpoint).open();
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
      const opened = await Page.open(chromium.connection, await proxy.openProxyPort(), () => null).catch(() => null);
      if (opened !== null) page = opened;
    } while (!page?.isUsable || !(await page.setUp(runOf("").origin, "document")));
  }

  /** Navigates a document to the host's http URL in the middle of a run. Returns the protocol with which the request arrived. */
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

  it("gets the next run's request like a first one", async () => {
    await open();
    // If a busy machine was late and the page was replaced, the attempt proves nothing about renewal. The loop then tries again.
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
