/** Scripts at addresses elsewhere: fetched once at save, kept by content, told when they change. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("Scripts at addresses elsewhere", () => {
  let service: TestService;
  let untrust: () => void;
  let content = "";
  let status = 200;
  let location: string | null = null;
  let asked = 0;
  const server = tlsServer((_request, response) => {
    asked += 1;
    response.writeHead(location === null ? status : 302, {
      "content-type": "text/plain",
      ...(location !== null && { location }),
    });
    response.end(content);
  });
  let origin: string;
  const folder = mkdtempSync(join(tmpdir(), "svc-packages-"));

  before(async () => {
    untrust = trustLocalhost();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `https://localhost:${(server.address() as AddressInfo).port}`;
    const file = join(folder, "packages.json");
    writeFileSync(file, JSON.stringify([{ name: "house-rules", url: `${origin}/rules.js` }]));
    service = await startTestService({ ALLOW_PRIVATE_NETWORK: "1", PACKAGES_FILE: file });
  });
  beforeEach(() => {
    status = 200;
    location = null;
  });
  after(async () => {
    untrust?.();
    await service?.stop();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const actions = () => `/v3/apps/${service.appId}/actions`;
  let count = 0;
  function create(dependency: string) {
    count += 1;
    const code = "async function execute() { return said }";
    const data = {
      name: `a-${count}`,
      code,
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: [dependency],
    };
    return service.rest("POST", actions(), { body: data });
  }
  const run = async (id: number) =>
    (await service.rest("POST", `${actions()}/${id}/runWithResult`, { body: {} })).body.result;
  const integrityOf = (text: string) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

  it("are fetched once, and every run has what was fetched then", async () => {
    content = "globalThis.said = 'first'";
    const { body } = await create(`${origin}/said.js`);
    const [asset] = body.action.assets;
    expect(asset).to.deep.include({
      name: `${origin}/said.js`,
      integrity: integrityOf(content),
      bytes: content.length,
    });
    expect(asset.url).to.equal(service.url + asset.path);
    content = "globalThis.said = 'second'";
    asked = 0;
    expect([await run(body.action.id), await run(body.action.id)]).to.deep.equal(["first", "first"]);
    expect(asked).to.equal(0);
  });

  it("are fetched once, kept and told as changed where an operator's file gives them a name", async () => {
    content = "globalThis.said = 'of the house'";
    asked = 0;
    const { id, dependencies, assets } = (await create("house-rules")).body.action;
    expect(dependencies).to.deep.equal(["house-rules"]);
    const [asset] = assets;
    expect(asset).to.include({ name: "house-rules", integrity: integrityOf(content), bytes: content.length });
    expect(asset.url).to.equal(service.url + asset.path);
    expect(await (await fetch(asset.url)).text()).to.equal(content);
    expect(await run(id)).to.equal("of the house");
    expect(asked).to.equal(1);
    const kept = content;
    content = "globalThis.said = 'of another'";
    const saved = await service.rest("PUT", `${actions()}/${id}`, { body: { dependencies, description: "again" } });
    expect(saved.body.action.assets).to.deep.equal([{ ...asset, changed: true }]);
    expect(await run(id)).to.equal("of the house");
    expect(await (await fetch(asset.url)).text()).to.equal(kept);
  });

  it("that serve something else at a later save are told as changed, and stay what they were", async () => {
    content = "globalThis.said = 'kept'";
    const dependencies = [`${origin}/kept.js`];
    const { id, assets } = (await create(dependencies[0]!)).body.action;
    const save = async (body: object) => (await service.rest("PUT", `${actions()}/${id}`, { body })).body.action.assets;
    expect(await save({ dependencies })).to.deep.equal(assets);
    content = "globalThis.said = 'other'";
    expect(await save({ dependencies })).to.deep.equal([{ ...assets[0], changed: true }]);
    expect(await run(id)).to.equal("kept");
    await save({ dependencies: [] });
    const [anew] = await save({ dependencies });
    expect(anew.integrity).to.equal(integrityOf(content));
    expect(await run(id)).to.equal("other");
  });

  it("are refused where the host refuses them, where they are too large, and where they lead to an address without TLS", async () => {
    const refusal = async () => {
      const { http, body } = await create(`${origin}/refused.js`);
      expect({ http, status: body.status }).to.deep.equal({ http: 400, status: "DEPENDENCY_UNRESOLVED" });
      return body.error;
    };
    status = 404;
    expect(await refusal()).to.match(/answers 404/);
    status = 200;
    content = " ".repeat(5 * 1024 * 1024 + 1);
    expect(await refusal()).to.match(/larger than 5 MB/);
    content = "";
    location = "http://127.0.0.1:1/x.js";
    expect(await refusal()).to.match(/without TLS/);
  });

  it("that are away are told so, loaded from there, and kept by the next save that reaches them", async () => {
    const away = "https://nowhere.invalid/x.js";
    const { http, body } = await create(away);
    expect(http).to.equal(201);
    expect(body.action.assets).to.deep.equal([{ name: away, url: away, path: "/x.js", unreached: true }]);
  });
});

describe("Scripts at addresses that are not public", () => {
  it("are refused at save", async () => {
    const service = await startTestService({ ROLES: "api" });
    try {
      for (const host of ["127.0.0.1", "localhost", "169.254.169.254", "[::1]", "10.0.0.1", "0x7f.1"]) {
        const data = { name: "inside", code: "async function execute() {}", dependencies: [`https://${host}/x.js`] };
        const { http, body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data });
        expect({ http, status: body.status }, host).to.deep.equal({ http: 400, status: "DEPENDENCY_UNRESOLVED" });
        expect(body.error).to.match(/no public address/);
      }
    } finally {
      await service.stop();
    }
  });
});
