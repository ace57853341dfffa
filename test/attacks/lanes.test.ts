import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { createEgressProxy, type EgressProxy } from "../../src/engine/egress-proxy.js";

/** Program of a separate process: sends a request through a proxy and prints the HTTP status. */
const REQUEST_PROGRAM = `
  const [proxy, url] = process.argv.slice(1);
  const { port, hostname } = new URL(proxy);
  const host = hostname.replace(/[[\\]]/g, "");
  require("node:http").get({ host, port, path: url, agent: false }, ({ statusCode }) => {
    console.log(statusCode);
    process.exit();
  });`;

describe("a proxy port that another user of the machine has found", () => {
  let server: Server;
  let proxy: EgressProxy;
  let url: string;
  let arrived = 0;

  before(async () => {
    server = createServer((_request, response) => {
      arrived += 1;
      response.end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  after(() => server.close().closeAllConnections());
  beforeEach(() => {
    arrived = 0;
  });
  afterEach(() => proxy.close());

  async function ask(proxyServer: string, uid: number): Promise<string> {
    const asking = spawn(process.execPath, ["-e", REQUEST_PROGRAM, proxyServer, url], {
      cwd: "/",
      uid,
      env: {},
      stdio: ["ignore", "pipe", "inherit"],
    });
    return (await text(asking.stdout!)).trim();
  }

  for (const host of ["127.0.0.1", "::1"]) {
    it(`serves only the intended users, on ${host}`, async () => {
      const ownUid = process.getuid!();
      let servedUid = ownUid;
      proxy = createEgressProxy({ allowPrivateNetwork: true, host, acceptsUid: (uid) => uid === servedUid });
      const proxyPort = await proxy.openProxyPort();
      proxyPort.startRun({ onHost: () => undefined });
      expect(await ask(proxyPort.proxyServer, ownUid)).to.equal("200");
      expect([arrived, proxyPort.wasUsed()]).to.deep.equal([1, true]);
      proxyPort.startRun({ onHost: () => undefined });
      servedUid = ownUid + 1;
      expect(await ask(proxyPort.proxyServer, ownUid)).to.equal("403");
      expect([arrived, proxyPort.wasUsed()]).to.deep.equal([1, false]);
    });
  }
});
