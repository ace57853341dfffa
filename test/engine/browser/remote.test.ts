/**
 * Tests browsers that another process has started. They work like the service's own browsers, can start and end at any time, and are
 * unchanged after use.
 */

import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { networkInterfaces } from "node:os";
import { expect } from "chai";
import pino from "pino";
import { WebSocket, WebSocketServer } from "ws";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { createBrowserFlags } from "../../../src/engine/browser/chromium-flags.js";
import { createEgressProxy } from "../../../src/engine/egress-proxy.js";
import { type RemoteChromium, type RemoteChromiumOptions, startRemoteChromium } from "../../harness/remote-chromium.js";
import { longTest } from "../../harness/samples.js";
import { until } from "../../harness/until.js";
import { createRemoteSource, failureOf, resultOf, runOf, testBrowsers } from "./support.js";

const READ_USER_AGENT = "const execute = async () => navigator.userAgent";
const UNREACHABLE_URL = "ws://127.0.0.1:9";
const SECRET = "s3cretToken";
const outerAddress =
  Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find((networkInterface) => !networkInterface.internal && networkInterface.family === "IPv4")?.address ??
  "127.0.0.2";

/** Starts a broker that connects clients with the right token to the browser. It rejects one method, and repeats the token in the error. */
async function startBroker(
  socketUrl: string,
  rejectedMethod = "SystemInfo.getInfo",
): Promise<{ endpoint: string; stop(): void }> {
  const server = new WebSocketServer({
    port: 0,
    host: "127.0.0.1",
    verifyClient: ({ req }: { req: { url?: string } }) => req.url === `/?token=${SECRET}`,
  });
  server.on("connection", (near) => {
    const browserSocket = new WebSocket(socketUrl);
    const ready = new Promise((resolve) => browserSocket.once("open", resolve));
    near.on("message", async (data) => {
      const { id, method } = JSON.parse(String(data));
      await ready;
      const isRejected = method === rejectedMethod;
      if (isRejected) near.send(JSON.stringify({ id, error: { code: -32_601, message: `not by ${SECRET}` } }));
      else browserSocket.send(String(data));
    });
    browserSocket.on("message", (data) => near.send(String(data)));
    near.on("close", () => browserSocket.close());
    browserSocket.on("close", () => near.close());
  });
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    endpoint: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/?token=${SECRET}`,
    stop() {
      for (const client of server.clients) client.terminate();
      server.close();
    },
  };
}

describe("browsers that were started elsewhere", () => {
  const remotes: RemoteChromium[] = [];
  const started: Browsers[] = [];
  let lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => lines.push(line) });

  async function remote(options: RemoteChromiumOptions = {}): Promise<RemoteChromium> {
    const chromium = await startRemoteChromium(options);
    remotes.push(chromium);
    return chromium;
  }
  const named = (name: string, port = 0) => remote({ port, more: [`--user-agent=${name}`] });

  function browsersOf(endpoints: string[], changes: Parameters<typeof testBrowsers>[0] = {}): Browsers {
    const sources = endpoints.map((endpoint) => createRemoteSource(endpoint, { log }));
    const browsers = testBrowsers({ sources, log, ...changes });
    started.push(browsers);
    return browsers;
  }

  async function startFault(endpoints: string[]): Promise<string> {
    try {
      await browsersOf(endpoints).start();
      return "it started";
    } catch (error) {
      expect((error as Error).name).to.equal("StartError");
      return (error as Error).message;
    }
  }

  /** Starts a run that prints the user agent of its browser and never ends. */
  function startHangingRun(browsers: Browsers, key: string, signal?: AbortSignal) {
    const source = "async function execute() { console.log(navigator.userAgent); await new Promise(() => {}) }";
    let onConsole = (_line: { text: string }) => {};
    const where = new Promise<string>((resolve) => {
      onConsole = ({ text }) => resolve(text);
    });
    const changes = { isolationKey: key, onConsole, ...(signal && { signal }) };
    return { where, outcome: browsers.run(runOf(source, changes)) };
  }

  afterEach(async () => {
    await Promise.all(started.splice(0).map((browsers) => browsers.stop()));
    await Promise.all(remotes.splice(0).map((chromium) => chromium.kill()));
    lines = [];
  });

  longTest("end a loop at the time limit and a run that is cancelled, and serve the next", async () => {
    const browsers = browsersOf([(await remote()).endpoint]);
    await browsers.start();
    const late = await failureOf(browsers, "async function execute() { while (true); }", { timeoutMs: 300 });
    expect(late.cause).to.equal("timeout");
    const abort = new AbortController();
    const { where, outcome } = startHangingRun(browsers, "1:master", abort.signal);
    await where;
    abort.abort();
    expect(await outcome).to.deep.include({ ok: false, cause: "cancelled" });
    expect(await resultOf(browsers, "const execute = async () => 1")).to.equal(1);
  });

  longTest("end a run at V8's memory limit, the only one there", async () => {
    const browsers = browsersOf([(await remote()).endpoint]);
    await browsers.start();
    const flood = "async function execute() { const kept = []; for (;;) kept.push(new Array(1e7).fill(1.5)); }";
    expect((await failureOf(browsers, flood, { timeoutMs: 25_000 })).error.message).to.include("crashed");
    expect([browsers.getBrowserPid(), await browsers.waitForProcessSandboxStates()]).to.deep.equal([null, null]);
  });

  longTest("get runs by load, the least busy first", async () => {
    const browsers = browsersOf([(await named("one")).endpoint, (await named("two")).endpoint]);
    await browsers.start();
    const abort = new AbortController();
    const runs: ReturnType<typeof startHangingRun>[] = [];
    for (const key of ["a", "b", "c", "d"]) {
      runs.push(startHangingRun(browsers, key, abort.signal));
      await runs.at(-1)!.where;
    }
    const where = await Promise.all(runs.map((hanging) => hanging.where));
    expect(where.sort()).to.deep.equal(["one", "one", "two", "two"]);
    abort.abort();
    await Promise.all(runs.map(({ outcome }) => outcome));
  });

  longTest("lose only their own runs, while the other continues, and are used again when they are back", async () => {
    const [first, second] = [await named("one"), await named("two")];
    const browsers = browsersOf([first.endpoint, second.endpoint]);
    await browsers.start();
    const abort = new AbortController();
    const runs = [startHangingRun(browsers, "a", abort.signal), startHangingRun(browsers, "b", abort.signal)];
    const where = await Promise.all(runs.map((run) => run.where));
    const lost = runs[where.indexOf("one")]!;
    const unaffected = runs[where.indexOf("two")]!;
    await first.kill();
    expect(await lost.outcome).to.deep.include({ ok: false, cause: "browser" });
    for (let i = 0; i < 3; i += 1) expect(await resultOf(browsers, READ_USER_AGENT)).to.equal("two");
    expect(browsers.isReady()).to.equal(true);
    abort.abort();
    expect(await unaffected.outcome).to.deep.include({ ok: false, cause: "cancelled" });
    await named("one", first.port);
    await until(async () => (await resultOf(browsers, READ_USER_AGENT)) === "one");
  });

  longTest("are found after a restart although the address pointed to the last process", async () => {
    const first = await named("one");
    const browsers = browsersOf([first.socketUrl]);
    await browsers.start();
    await first.kill();
    await until(() => !browsers.isReady());
    await named("again", first.port);
    await until(() => browsers.isReady());
    expect(await resultOf(browsers, READ_USER_AGENT)).to.equal("again");
  });

  it("stay alive when the service stops, without any of its contexts", async () => {
    const chromium = await remote();
    const browsers = browsersOf([chromium.endpoint]);
    await browsers.start();
    await resultOf(browsers, READ_USER_AGENT);
    expect(await chromium.contexts()).to.be.greaterThan(0);
    await browsers.stop();
    await until(async () => (await chromium.contexts()) === 0);
    expect(chromium.running()).to.equal(true);
  });

  longTest("need at least one at the start; a missing one is reported and used when it is available", async () => {
    const gone = await named("late");
    await gone.kill();
    const browsers = browsersOf([gone.endpoint, (await named("up")).endpoint]);
    await browsers.start();
    expect(lines.join()).to.include(`${gone.endpoint} (BROWSER_WS_ENDPOINTS) cannot be used: connect ECONNREFUSED`);
    expect(await resultOf(browsers, READ_USER_AGENT)).to.equal("up");
    await named("late", gone.port);
    await until(async () => (await resultOf(browsers, READ_USER_AGENT)) === "late");
  });

  it("are all named in one error if none is available", async () => {
    const message = await startFault([UNREACHABLE_URL, "ws://127.0.0.1:10"]);
    expect(message).to.include("127.0.0.1:9 (BROWSER_WS_ENDPOINTS) cannot be used: connect ECONNREFUSED");
    expect(message).to.include("127.0.0.1:10 (BROWSER_WS_ENDPOINTS) cannot be used: connect ECONNREFUSED");
  });

  longTest(
    "are reported only by host and port, and serve if the browser does not report how it was started",
    async () => {
      const chromium = await named("one");
      const broker = await startBroker(chromium.socketUrl);
      const browsers = browsersOf([broker.endpoint, `ws://user:${SECRET}@127.0.0.1:9/${SECRET}?a=${SECRET}`]);
      await browsers.start();
      expect(await resultOf(browsers, READ_USER_AGENT)).to.equal("one");
      broker.stop();
      await until(() => !browsers.isReady());
      const refused: string[] = [];
      for (const method of ["Target.setAutoAttach", "Browser.getVersion"]) {
        const rejecting = await startBroker(chromium.socketUrl, method);
        const wrong = await startFault([rejecting.endpoint.replace(SECRET, `not${SECRET}`)]);
        expect(wrong).to.include("Unexpected server response: 401");
        refused.push(wrong, await startFault([rejecting.endpoint]));
        expect(refused.at(-1)).to.include("it rejected a command");
        rejecting.stop();
      }
      const received = lines.join();
      expect(received).to.include("does not report its command line").and.to.include("the browser ended unexpectedly");
      expect(received + refused.join()).to.not.include(SECRET);
    },
  );

  longTest(
    "are rejected if their command line would not contain actions, and the error names what is missing",
    async () => {
      const bare = await remote({ flags: ["--no-startup-window"], more: ["--no-sandbox"] });
      const message = await startFault([bare.endpoint]);
      for (const flag of [...createBrowserFlags("127.0.0.1").slice(0, 5), "--host-resolver-rules=MAP * ~NOTFOUND"]) {
        expect(message).to.include(`lacks ${flag}`);
      }
      expect(message).to.include("has --no-sandbox");
      expect(await bare.contexts()).to.equal(0);
      const more = await remote({ more: ["--disable-features=Other"] });
      expect(await startFault([more.endpoint])).to.include("lacks --disable-features=BackForwardCache");
      for (const requiredFlag of ["--no-incremental-marking", "--no-concurrent-sweeping", "--initial-heap-size=96"]) {
        const flags = createBrowserFlags("127.0.0.1").map((flag) => flag.replace(` ${requiredFlag}`, ""));
        const { endpoint } = await remote({ flags });
        expect(await startFault([endpoint])).to.include(`lacks --js-flags=${requiredFlag}`);
      }
    },
  );

  describe("the egress proxy at an address that others can reach", () => {
    let server: Server;
    let url: string;
    before(async () => {
      server = createServer((_request, response) => {
        response.setHeader("Access-Control-Allow-Origin", "*").end("reached");
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    });
    after(() => server.close());

    it("serves the browsers", async () => {
      const chromium = await remote({ egressHost: outerAddress });
      const source = createRemoteSource(chromium.endpoint, { egressHost: outerAddress });
      const peers = new Set<boolean>();
      const recordPeer = (peer: string) => {
        peers.add(source.mayConnectFrom(peer));
        return source.mayConnectFrom(peer);
      };
      const proxy = createEgressProxy({ allowPrivateNetwork: true, host: outerAddress, acceptsAddress: recordPeer });
      const browsers = browsersOf([], { sources: [source], openProxyPort: proxy.openProxyPort });
      await browsers.start();
      expect(await resultOf(browsers, `const execute = async () => (await fetch("${url}")).text()`)).to.equal(
        "reached",
      );
      expect([...peers]).to.deep.equal([true]);
      expect(source.mayConnectFrom("198.51.100.7")).to.equal(false);
      await browsers.stop();
      proxy.close();
    });

    it("rejects all others before anything is read", async () => {
      const proxy = createEgressProxy({
        allowPrivateNetwork: true,
        host: "127.0.0.2",
        acceptsAddress: (peer) => peer === "127.0.0.3",
      });
      const proxyPort = await proxy.openProxyPort();
      proxyPort.startRun({ onHost: () => {} });
      const { hostname, port } = new URL(proxyPort.proxyServer);
      const answerTo = (localAddress: string) =>
        new Promise<string>((resolve) => {
          let answer = "";
          const socket = connect({ host: hostname, port: Number(port), localAddress });
          socket.on("data", (data) => {
            answer += String(data);
          });
          socket.on("error", () => {});
          socket.on("close", () => resolve(answer));
          socket.write(`GET ${url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
        });
      expect(await answerTo("127.0.0.1")).to.equal("");
      expect(proxyPort.wasUsed()).to.equal(false);
      expect(await answerTo("127.0.0.3")).to.include("reached");
      proxy.close();
    });
  });
});
