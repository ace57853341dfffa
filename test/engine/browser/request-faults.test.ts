/** Tests the reasons of failed requests. No error may describe a failure of the network as a refusal by the host. */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { EVALUATION_MODES, modeHasNetwork } from "../../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { sampleOf } from "../../harness/samples.js";
import { failureOf, resultOf, sharedBrowsers } from "./support.js";

/** Time limits of a connection in milliseconds: for the silent host, and for all other hosts. */
const [SHORT_CONNECT_TIMEOUT_MS, LONG_CONNECT_TIMEOUT_MS] = [400, 60_000];

/** Starts a host that accepts no connections. Its queue is full, so further connections wait forever. */
async function startSilentHost(): Promise<{ port: number; stop(): void }> {
  const code = `const server = require("node:net").createServer();
    server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
      require("node:fs").writeSync(1, server.address().port + "\\n");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const [chunk] = await once(child.stdout, "data");
  const port = Number(chunk);
  const queued: Socket[] = [];
  for (let count = 0; count < 4; count += 1) queued.push(connect(port, "127.0.0.1").on("error", () => {}));
  await Promise.race(queued.map((socket) => once(socket, "connect")));
  return {
    port,
    stop() {
      child.kill("SIGKILL");
      for (const socket of queued) socket.destroy();
    },
  };
}

/** Returns a free port below 32,000, because the operating system gives higher ports to other tests. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    const server = createTcpServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
}

for (const [index, mode] of EVALUATION_MODES.filter(modeHasNetwork).entries())
  describe(`a request that fails in mode ${mode}`, () => {
    let browsers: Browsers;
    let strict: Browsers;
    let proxies: EgressProxy[] = [];
    let server: Server;
    let disconnectingHost: ReturnType<typeof createTcpServer>;
    let silent: Awaited<ReturnType<typeof startSilentHost>>;
    let closedPort: number;
    let connectTimeoutMs = LONG_CONNECT_TIMEOUT_MS;

    const portOf = (listening: { address(): unknown }) => (listening.address() as AddressInfo).port;

    before(async () => {
      server = createServer((_request, response) => response.end("not for everybody"));
      server.listen(0, "127.0.0.1");
      // This host reads the request, and disconnects.
      disconnectingHost = createTcpServer((socket) =>
        socket.on("error", () => {}).once("data", () => socket.destroy()),
      );
      disconnectingHost.listen(0, "127.0.0.1");
      await Promise.all([once(server, "listening"), once(disconnectingHost, "listening")]);
      [silent, closedPort] = await Promise.all([startSilentHost(), freePort()]);
      const resolve = async (name: string) => {
        if (name.startsWith("gone")) throw Object.assign(new Error("no"), { code: "ENOTFOUND" });
        if (name.startsWith("broken")) throw Object.assign(new Error("no"), { code: "EAI_AGAIN" });
        return [{ address: "127.0.0.1", family: 4 }];
      };
      const open = createEgressProxy({
        allowPrivateNetwork: true,
        resolve,
        get connectTimeoutMs() {
          return connectTimeoutMs;
        },
      });
      const shut = createEgressProxy({ allowPrivateNetwork: false, resolve });
      proxies = [open, shut];
      browsers = sharedBrowsers({ openProxyPort: () => open.openProxyPort() });
      strict = sharedBrowsers({ openProxyPort: () => shut.openProxyPort() });
      await Promise.all([browsers.start(), strict.start()]);
    });
    afterEach(() => {
      connectTimeoutMs = LONG_CONNECT_TIMEOUT_MS;
    });
    after(async () => {
      await Promise.all([browsers.stop(), strict.stop()]);
      for (const proxy of proxies) proxy.close();
      silent.stop();
      server.close();
      disconnectingHost.close();
    });

    const fetchCode = (address: string) => `const execute = () => fetch("${address}/a?b=c")`;
    const readErrorMessage = async (where: Browsers, address: string) =>
      (await failureOf(where, fetchCode(address), { mode })).error.message;

    for (const scheme of sampleOf(["http", "https"], index, 2)) {
      describe(`over ${scheme}`, () => {
        const at = (port: number, host = "127.0.0.1") => `${scheme}://${host}:${port}`;

        it("reports that the host refused the connection", async () => {
          const address = at(closedPort);
          expect(await readErrorMessage(browsers, address)).to.equal(
            `Failed to fetch ${address}: the host refused the connection (ECONNREFUSED)`,
          );
        });

        it("reports that the host did not respond in time", async () => {
          connectTimeoutMs = SHORT_CONNECT_TIMEOUT_MS;
          const address = at(silent.port);
          expect(await readErrorMessage(browsers, address)).to.equal(
            `Failed to fetch ${address}: the host did not take the connection within 0.4 s (ETIMEDOUT)`,
          );
        });

        it("reports that the name does not exist, or that no DNS server answered", async () => {
          const gone = at(8080, "gone.localhost");
          expect(await readErrorMessage(browsers, gone)).to.equal(
            `Failed to fetch ${gone}: the host name does not exist (ENOTFOUND)`,
          );
          const broken = at(8080, "broken.localhost");
          expect(await readErrorMessage(browsers, broken)).to.equal(
            `Failed to fetch ${broken}: the IP address of the host name could not be found (EAI_AGAIN)`,
          );
        });

        it("reports that a run may not reach the address", async () => {
          const address = `${scheme}://127.0.0.1`;
          expect(await readErrorMessage(strict, address)).to.equal(
            `Failed to fetch ${address}: 127.0.0.1 is not a public address: runs can connect only to public addresses`,
          );
        });
      });
    }

    it("over http reports that another origin is not allowed, and only then", async () => {
      const address = `http://127.0.0.1:${portOf(server)}`;
      expect(await readErrorMessage(browsers, address)).to.equal(
        `Failed to fetch ${address}: blocked by CORS, because the host does not allow this request from https://app-1.actions.internal (MissingAllowOriginHeader)`,
      );
    });

    it("forgets a refused connection when the host accepts one", async () => {
      const address = `http://127.0.0.1:${closedPort}`;
      const code = `const execute = async () => {
      await fetch("${address}").catch(() => console.log("refused"));
      while (await fetch("${address}/ready").then(() => false, () => true));
      await fetch("${address}");
    }`;
      // Only /ready allows other origins. So the loop ends at a response of the host, not at the proxy's response to a refused connection.
      const late = createServer((request, response) => {
        if (request.url === "/ready") response.setHeader("access-control-allow-origin", "*");
        response.end();
      });
      const onConsole = () => void (late.listening || late.listen(closedPort, "127.0.0.1"));
      const { error } = await failureOf(browsers, code, { onConsole, mode });
      late.close();
      late.closeAllConnections();
      expect(error.message).to.include("blocked by CORS");
    });

    it("over http reports that the host closed the connection without a response", async () => {
      const address = `http://127.0.0.1:${portOf(disconnectingHost)}`;
      expect(await readErrorMessage(browsers, address)).to.equal(
        `Failed to fetch ${address}: the host closed the connection without an answer`,
      );
    });

    it("over https reports that TLS failed", async () => {
      const address = `https://127.0.0.1:${portOf(server)}`;
      expect(await readErrorMessage(browsers, address)).to.equal(
        `Failed to fetch ${address}: TLS with the host failed (ERR_SSL_PROTOCOL_ERROR)`,
      );
    });

    it("does not affect successful requests", async () => {
      const code = `const execute = async () => (await fetch("http://127.0.0.1:${portOf(server)}", { mode: "no-cors" })).type`;
      expect(await resultOf(browsers, code, { mode })).to.equal("opaque");
    });
  });
