/** Tests runs with network access: scripts from other hosts, and the reasons of failed requests. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { ConsoleLine } from "../../../src/engine/browser/run.js";
import { createEgressProxy, type EgressProxy } from "../../../src/engine/egress-proxy.js";
import { failureOf, resultOf, sharedBrowsers } from "./support.js";

const ANSWERS: Record<string, string> = {
  "/one.js": "const order = ['one'];",
  "/two.js": "order.push('two'); globalThis.two = () => order;",
  "/throws.js": "null.thing;",
  "/syntax.js": "const = ;",
};

describe("a run with a network", () => {
  let open: Browsers;
  let shut: Browsers;
  let proxies: EgressProxy[] = [];
  let server: Server;
  let url: string;

  before(async () => {
    server = createServer((request, response) => {
      const body = ANSWERS[request.url ?? ""];
      response.writeHead(body === undefined ? 404 : 200, {
        "Content-Type": request.url?.endsWith(".js") ? "text/javascript" : "text/html",
      });
      response.end(body);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const lifted = createEgressProxy({ allowPrivateNetwork: true });
    const strict = createEgressProxy({ allowPrivateNetwork: false });
    proxies = [lifted, strict];
    open = sharedBrowsers({ openProxyPort: () => lifted.openProxyPort() });
    shut = sharedBrowsers({ openProxyPort: () => strict.openProxyPort() });
    await Promise.all([open.start(), shut.start()]);
  });
  after(async () => {
    await Promise.all([open.stop(), shut.stop()]);
    for (const proxy of proxies) proxy.close();
    server.close();
  });

  describe("scripts from other hosts", () => {
    const at = (path: string) => ({ name: url + path, url: url + path });

    it("run before the code, in the listed order, between the packages of this service", async () => {
      const ownPackage = { name: "own.js", source: "order.push('own')" };
      const source = "order.push('action'); const execute = async () => [two(), document.scripts.length]";
      for (const mayRequest of [undefined, () => true]) {
        const packages = [at("/one.js"), ownPackage, at("/two.js")];
        const value = await resultOf(open, source, { packages, ...(mayRequest && { mayRequest }) });
        expect(value).to.deep.equal([["one", "own", "two", "action"], 0]);
      }
    });

    for (const [path, reason] of [
      ["/missing.js", "could not be loaded"],
      ["/throws.js", "failed: Script error."],
      ["/syntax.js", "failed: Script error."],
    ] as const) {
      it(`fail the run with their address: ${path} ${reason}`, async () => {
        const packages = [at("/one.js"), at(path)];
        const { cause, error } = await failureOf(open, "const execute = async () => 1", { packages });
        expect(cause).to.equal("script");
        expect(error.message).to.equal(`The dependency ${url}${path} ${reason}`);
      });
    }

    it("fail the run if the connection to them is rejected", async () => {
      const packages = [at("/one.js")];
      const { error } = await failureOf(shut, "const execute = async () => 1", { packages });
      expect(error.message).to.equal(`The dependency ${url}/one.js could not be loaded`);
    });
  });

  describe("errors", () => {
    const cors = () =>
      `${url}: blocked by CORS, because the host does not allow this request from https://app-1.actions.internal (MissingAllowOriginHeader)`;

    it("report that another origin did not allow the request, and which, without its path and query", async () => {
      const { error } = await failureOf(open, `const execute = () => fetch("${url}/one.js?key=value")`);
      expect(error.name).to.equal("TypeError");
      expect(error.message).to.equal(`Failed to fetch ${cors()}`);
      expect(error.stack.split("\n")).to.deep.equal([`TypeError: ${error.message}`, "    at execute (action.js:1:23)"]);
    });

    it("are also on the console, for code that catches them", async () => {
      const lines: ConsoleLine[] = [];
      const code = `const execute = async () => { for (let i = 0; i < 3; i += 1) await fetch("${url}/one.js").catch(() => {}) }`;
      await resultOf(open, code, { onConsole: (line) => lines.push(line) });
      expect(lines.map(({ level, text }) => [level, text])).to.deep.equal([["error", `A request failed: ${cors()}`]]);
    });

    for (const [address, reason] of [
      ["http://127.0.0.1", "127.0.0.1 is not a public address: runs can connect only to public addresses"],
      ["https://[::1]", "::1 is not a public address: runs can connect only to public addresses"],
      ["https://localhost:8443", "port 8443 is not allowed: runs can connect only to the ports 80 and 443"],
    ]) {
      it(`report that ${address} may not be reached, and why`, async () => {
        const { error } = await failureOf(shut, `const execute = () => fetch("${address}/a?b=c")`);
        expect(error.message).to.equal(`Failed to fetch ${address}: ${reason}`);
      });
    }

    it("contain nothing of an earlier run", async () => {
      await failureOf(open, `const execute = () => fetch("${url}/one.js")`);
      const { error } = await failureOf(open, `const execute = async () => { throw new TypeError("Failed to fetch") }`);
      expect(error.message).to.equal("Failed to fetch");
    });
  });
});
