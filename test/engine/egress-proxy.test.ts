/** Tests the egress proxy without a browser: which addresses count as public, and that it connects to no others. */

import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { expect } from "chai";
import { createSocketAgent } from "../../src/engine/egress-proxy/outgoing.js";
import {
  createEgressProxy,
  type EgressProxy,
  type EgressProxyOptions,
  type EgressProxyPort,
  isPublicAddress,
} from "../../src/engine/egress-proxy.js";

function connectThroughProxy(proxyPort: EgressProxyPort, target: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(proxyPort.proxyServer).port), "127.0.0.1");
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
    socket.once("data", (data) => {
      resolve(Number(data.toString().split(" ")[1]));
      socket.destroy();
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(0));
  });
}

function get(proxyPort: EgressProxyPort, url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(proxyPort.proxyServer);
    const call = request({ host: "127.0.0.1", port, path: url, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    call.once("error", reject).end();
  });
}

describe("the egress proxy", () => {
  let proxy: EgressProxy | undefined;
  let server: Server;
  let port: number;
  let arrived = 0;

  async function openProxyPort(options: Partial<EgressProxyOptions> = {}): Promise<EgressProxyPort> {
    proxy = createEgressProxy({ allowPrivateNetwork: false, ports: [80, 443, port], ...options });
    const proxyPort = await proxy.openProxyPort();
    proxyPort.startRun({ onHost: () => {} });
    return proxyPort;
  }

  before((done) => {
    server = createServer((_request, response) => {
      arrived += 1;
      response.end("here");
    });
    server.on("connection", () => {
      arrived += 1;
    });
    server.listen(0, "127.0.0.1", () => {
      port = (server.address() as AddressInfo).port;
      done();
    });
  });
  beforeEach(() => {
    arrived = 0;
  });
  afterEach(() => proxy?.close());
  after(() => server.close());

  for (const address of ["93.184.216.34", "1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:800::200e"]) {
    it(`regards ${address} as public`, () => {
      expect(isPublicAddress(address)).to.equal(true);
    });
  }

  for (const address of [
    ..."0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.254 127.0.0.1 127.255.255.254 169.254.169.254".split(" "),
    ..."172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255".split(" "),
    ..."198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255".split(" "),
    ..."::1 :: ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:0:127.0.0.1".split(" "),
    ..."64:ff9b::7f00:1 64:ff9b::169.254.169.254 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1::".split(" "),
    ..."2002:a9fe:a9fe::1 fc00::1 fd12:3456::1 fe80::1 fe80::1%lo fec0::1 ff02::1 5f00::1".split(" "),
    ..."localhost 127.1 0x7f.1 2130706433 017700000001 127.0.0.1.".split(" "),
  ]) {
    it(`does not regard ${address} as public`, () => {
      expect(isPublicAddress(address)).to.equal(false);
    });
  }

  it("rejects private addresses, by CONNECT and by plain request, and connects to nothing", async () => {
    const proxyPort = await openProxyPort();
    const hosts = [
      "127.0.0.1",
      "localhost",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "0.0.0.0",
      "127.1",
      "0x7f000001",
      "2130706433",
    ];
    for (const host of hosts) {
      expect(await connectThroughProxy(proxyPort, `${host}:${port}`), host).to.be.oneOf([403, 502]);
      expect(await get(proxyPort, `http://${host}:${port}/`), host).to.be.oneOf([403, 502]);
    }
    expect(arrived).to.equal(0);
  });

  it("rejects a name if any of its addresses is private", async () => {
    const resolve = async () => [
      { address: "93.184.216.34", family: 4 },
      { address: "127.0.0.1", family: 4 },
    ];
    const proxyPort = await openProxyPort({ resolve });
    expect(await connectThroughProxy(proxyPort, `mixed.example:${port}`)).to.equal(403);
    expect(arrived).to.equal(0);
  });

  it("resolves a name once and connects to the checked address, so that rebinding has no effect", async () => {
    const answers = ["93.184.216.34", "127.0.0.1"];
    let lookups = 0;
    const resolve = async () => [{ address: answers[Math.min(lookups++, 1)]!, family: 4 }];
    const proxyPort = await openProxyPort({ resolve });
    const contacted = new Promise<string>((done) => proxyPort.startRun({ onHost: done }));
    void connectThroughProxy(proxyPort, `rebind.example:${port}`).catch(() => 0);
    expect(await contacted).to.equal(`rebind.example:${port}`);
    expect(lookups).to.equal(1);
    expect(await connectThroughProxy(proxyPort, `rebind.example:${port}`)).to.equal(403);
    expect(arrived).to.equal(0);
  });

  it("rejects ports other than 80 and 443", async () => {
    const proxyPort = await openProxyPort({ ports: [80, 443] });
    expect(await connectThroughProxy(proxyPort, "1.1.1.1:22")).to.equal(403);
    expect(await get(proxyPort, "http://1.1.1.1:25/")).to.equal(403);
  });

  it("reaches a configured endpoint, and nothing else there", async () => {
    const proxyPort = await openProxyPort({ endpoints: () => new Map([[`api.internal:${port}`, "127.0.0.1"]]) });
    expect(await get(proxyPort, `http://api.internal:${port}/`)).to.equal(200);
    expect(await connectThroughProxy(proxyPort, `api.internal:${port}`)).to.equal(200);
    expect(await get(proxyPort, `http://127.0.0.1:${port}/`)).to.equal(403);
  });

  it("is closed before a run starts and after it has ended, and ends connections in progress", async () => {
    const proxyPort = await openProxyPort({ allowPrivateNetwork: true });
    const tunnel = connect(Number(new URL(proxyPort.proxyServer).port), "127.0.0.1");
    tunnel.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`);
    await once(tunnel, "data");
    proxyPort.endRun();
    await once(tunnel, "close");
    expect([
      await connectThroughProxy(proxyPort, `127.0.0.1:${port}`),
      await get(proxyPort, `http://127.0.0.1:${port}/`),
    ]).to.deep.equal([403, 403]);
    const next = await proxy!.openProxyPort();
    expect(await get(next, `http://127.0.0.1:${port}/`)).to.equal(403);
    next.startRun({ onHost: () => {} });
    expect(await get(next, `http://127.0.0.1:${port}/`)).to.equal(200);
  });

  it("reaches private addresses and any port if that is allowed", async () => {
    const proxyPort = await openProxyPort({ allowPrivateNetwork: true, ports: [80] });
    expect(await get(proxyPort, `http://127.0.0.1:${port}/`)).to.equal(200);
  });

  it("uses the configured local address for outgoing connections", async () => {
    const proxyPort = await openProxyPort({ allowPrivateNetwork: true, localAddress: "127.0.0.9" });
    const from = new Promise((resolve) => server.once("connection", (socket) => resolve(socket.remoteAddress)));
    expect(await get(proxyPort, `http://127.0.0.1:${port}/`)).to.equal(200);
    expect(await from).to.equal("127.0.0.9");
  });

  it("reports each host once for a run, and whether it was used at all", async () => {
    const proxyPort = await openProxyPort({ allowPrivateNetwork: true });
    const hosts: string[] = [];
    proxyPort.startRun({ onHost: (host) => hosts.push(host) });
    expect(proxyPort.wasUsed()).to.equal(false);
    await get(proxyPort, `http://127.0.0.1:${port}/`);
    await get(proxyPort, `http://127.0.0.1:${port}/`);
    expect(hosts).to.deep.equal([`127.0.0.1:${port}`]);
    expect(proxyPort.wasUsed()).to.equal(true);
    proxyPort.startRun({ onHost: () => {} });
    expect(proxyPort.wasUsed()).to.equal(false);
  });
});

describe("a connection that ends before the first byte of the response", () => {
  const ways: Record<string, (socket: Socket) => void> = {
    "in order": (socket) => socket.end(),
    "with a reset": (socket) => socket.resetAndDestroy(),
  };
  for (const [title, endSocket] of Object.entries(ways)) {
    it(`is reported once, before the request fails: ${title}`, async () => {
      const server = createTcpServer((socket) => socket.once("data", () => endSocket(socket))).listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      const socket = connect(port, "127.0.0.1");
      const events: string[] = [];
      const agent = createSocketAgent(socket, () => events.push("silence"));
      const call = request({ host: "127.0.0.1", port, agent });
      call.once("error", () => events.push("failure")).end();
      await new Promise<void>((resolve) => socket.once("close", () => resolve()));
      server.close();
      expect(events).to.deep.equal(["silence", "failure"]);
    });
  }
});
