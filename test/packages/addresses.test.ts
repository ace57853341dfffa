/**
 * Tests dependencies that are external URLs of scripts. When an action is saved, the service fetches each script once and stores it by
 * content. It warns if the content at the URL changes.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { startTestService, type TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

describe("scripts at addresses of other hosts", () => {
  let service: TestService;
  let untrust: () => void;
  let content: string | Buffer = "";
  let status = 200;
  let location: string | null = null;
  let requestCount = 0;
  const server = tlsServer((_request, response) => {
    requestCount += 1;
    response.writeHead(location === null ? status : 302, {
      "content-type": "text/plain",
      ...(location !== null && { location }),
    });
    response.end(content);
  });
  let origin: string;
  let port = 0;
  const folder = mkdtempSync(join(tmpdir(), "svc-packages-"));

  before(async () => {
    untrust = trustLocalhost();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
    origin = `https://localhost:${port}`;
    const file = join(folder, "packages.json");
    writeFileSync(file, JSON.stringify([{ name: "house-rules", url: `${origin}/rules.js` }]));
    service = await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1", PACKAGES_FILE: file });
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

  async function withoutHost<T>(work: () => Promise<T>): Promise<T> {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
    try {
      return await work();
    } finally {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    }
  }

  const actions = (appId = service.appId) => `/v3/apps/${appId}/actions`;
  let count = 0;
  function create(dependency: string, appId = service.appId) {
    count += 1;
    const code = "async function execute() { return said }";
    const data = {
      name: `a-${count}`,
      code,
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies: [dependency],
    };
    return service.rest("POST", actions(appId), { body: data, as: "admin" });
  }
  const update = (id: number, body: object) => service.rest("PUT", `${actions()}/${id}`, { body });
  async function anotherApp(): Promise<number> {
    return (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } })).body.app.id;
  }
  const run = async (id: number) =>
    (await service.rest("POST", `${actions()}/${id}/runWithResult`, { body: {} })).body.result;
  const integrityOf = (text: string | Buffer) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

  it("are downloaded once, and every run uses that content", async () => {
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
    requestCount = 0;
    expect([await run(body.action.id), await run(body.action.id)]).to.deep.equal(["first", "first"]);
    expect(requestCount).to.equal(0);
  });

  it("are served unchanged, so that a page can check their hash, also if they are not UTF-8", async () => {
    const source = Buffer.from("globalThis.said = 'caf\xe9'.length", "latin1");
    content = source;
    const [asset] = (await create(`${origin}/latin.js`)).body.action.assets;
    expect(asset.integrity).to.equal(integrityOf(source));
    expect(Buffer.from(await (await fetch(asset.url)).arrayBuffer())).to.deep.equal(source);
  });

  it("are downloaded once, stored and marked as changed if an operator's file names them", async () => {
    content = "globalThis.said = 'of the house'";
    requestCount = 0;
    const { id, dependencies, assets } = (await create("house-rules")).body.action;
    expect(dependencies).to.deep.equal(["house-rules"]);
    const [asset] = assets;
    expect(asset).to.include({ name: "house-rules", integrity: integrityOf(content), bytes: content.length });
    expect(asset.url).to.equal(service.url + asset.path);
    expect(await (await fetch(asset.url)).text()).to.equal(content);
    expect(await run(id)).to.equal("of the house");
    expect(requestCount).to.equal(1);
    const kept = content;
    content = "globalThis.said = 'of another'";
    const saved = await service.rest("PUT", `${actions()}/${id}`, { body: { dependencies, description: "again" } });
    expect(saved.body.action.assets).to.deep.equal([{ ...asset, changed: true }]);
    expect(await run(id)).to.equal("of the house");
    expect(await (await fetch(asset.url)).text()).to.equal(kept);
  });

  it("with other content at a later save are marked as changed, and keep their content", async () => {
    content = "globalThis.said = 'kept'";
    const dependencies = [`${origin}/kept.js`];
    const { id, assets } = (await create(dependencies[0]!)).body.action;
    const save = async (body: object) => (await service.rest("PUT", `${actions()}/${id}`, { body })).body.action.assets;
    expect(await save({ dependencies })).to.deep.equal(assets);
    content = "globalThis.said = 'other'";
    expect(await save({ dependencies })).to.deep.equal([{ ...assets[0], changed: true }]);
    expect(await run(id)).to.equal("kept");
    await save({ dependencies: [] });
    const [saved] = await save({ dependencies });
    expect(saved.integrity).to.equal(integrityOf(content));
    expect(await run(id)).to.equal("other");
  });

  it("are rejected if the host rejects the request, if they are too large, or if they redirect to an address without TLS", async () => {
    const refusal = async () => {
      const { http, body } = await create(`${origin}/refused.js`);
      expect({ http, status: body.status }).to.deep.equal({ http: 400, status: "DEPENDENCY_UNRESOLVED" });
      return body.error;
    };
    status = 404;
    expect(await refusal()).to.match(/responded with status 404/);
    status = 200;
    content = " ".repeat(5 * 1024 * 1024 + 1);
    expect(await refusal()).to.match(/larger than 5 MB/);
    content = "";
    location = "http://127.0.0.1:1/x.js";
    expect(await refusal()).to.match(/not an https URL/);
    location = `${origin}/refused.js`;
    expect(await refusal()).to.match(/was redirected more than 3 times/);
  });

  it("are rejected with 503 if their host is not available, and nothing is written", async () => {
    const address = `${origin}/busy.js`;
    for (status of [429, 500, 503]) {
      const { http, body, headers } = await create(address);
      expect({ http, status: body.status }).to.deep.equal({ http: 503, status: "DEPENDENCY_UNRESOLVED" });
      expect(body.error).to.include(
        `${JSON.stringify(address)} cannot be fetched: its host responded with status ${status}`,
      );
      expect(headers.get("retry-after")).to.match(/^\d+$/);
      expect((await service.rest("GET", `${actions()}?search=a-${count}`)).body.actions).to.deep.equal([]);
    }
  });

  it("make a manifest and an import fail with Retry-After if their host is not available, unless they also have other faults", async () => {
    const action = (name: string, address: string) => ({
      ...{ name, code: "async function execute() {}", dependencies: [`${origin}${address}`] },
    });
    const applyManifest = (actions: object[]) =>
      service.rest("PUT", `/v1/apps/${service.appId}/manifest`, { body: { version: 1, actions } });
    const importActions = (actions: object[]) =>
      service.rest("POST", `/v3/apps/${service.appId}/actions/import`, {
        body: { format: "svc-app-actions/1", actions },
      });
    status = 503;
    for (const send of [applyManifest, importActions]) {
      const busy = await send([action("busy-1", "/busy-1.js"), action("busy-2", "/busy-2.js")]);
      expect([busy.http, busy.body.faults.length], send.name).to.deep.equal([400, 2]);
      expect(busy.headers.get("retry-after"), send.name).to.match(/^\d+$/);
      const faulty = await send([action("busy-1", "/busy-1.js"), { name: "faulty", code: "" }]);
      expect([faulty.http, faulty.body.faults.length], send.name).to.deep.equal([400, 2]);
      expect(faulty.headers.get("retry-after"), send.name).to.equal(null);
    }
  });

  it("whose host does not answer are marked, and loaded from there", async () => {
    const away = "https://nowhere.invalid/x.js";
    const { http, body } = await create(away);
    expect(http).to.equal(201);
    expect(body.action.assets).to.deep.equal([{ name: away, url: away, path: "/x.js", unreached: true }]);
  });

  it("are stored whatever happens to others at their host, of this app or of another", async () => {
    content = "globalThis.said = 'kept'";
    const kept = async (path: string) => (await create(`${origin}${path}`)).body.action.assets[0].integrity;
    const other = await anotherApp();
    await withoutHost(() => create(`${origin}/away.js`, other));
    expect(await kept("/after-another-app.js")).to.equal(integrityOf(content));
    await withoutHost(() => create(`${origin}/away.js`));
    expect(await kept("/after-another-address.js")).to.equal(integrityOf(content));
    status = 503;
    await create(`${origin}/busy.js`, other);
    status = 200;
    const { id, dependencies } = (await create(`${origin}/here.js`)).body.action;
    status = 404;
    expect((await update(id, { dependencies, description: "looked at" })).http).to.equal(200);
    status = 200;
    expect(await kept("/after-a-look.js")).to.equal(integrityOf(content));
  });

  describe("whose host did not answer at first", () => {
    const listed = async (path: string) => {
      content = `globalThis.said = '${path}'`;
      const { action } = (await withoutHost(() => create(`${origin}${path}`))).body;
      expect(action.assets).to.deep.equal([
        { name: `${origin}${path}`, url: `${origin}${path}`, path, unreached: true },
      ]);
      return action;
    };
    const received = async (id: number) => {
      const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/audit?actionId=${id}`)).body;
      return entries.flatMap(({ type, data }: { type: string; data: { integrity: string } }) =>
        type === "appAction.v3.dependency" ? [data.integrity] : [],
      );
    };

    it("are stored by the next save, also without dependencies, with an entry in the audit log", async () => {
      const { id } = await listed("/late.js");
      const away = await withoutHost(() => update(id, { description: "still away" }));
      expect([away.http, away.body.action.assets[0].unreached]).to.deep.equal([200, true]);
      const { action } = (await update(id, { description: "back" })).body;
      expect(action.assets[0])
        .to.include({ integrity: integrityOf(content) })
        .and.not.to.have.property("unreached");
      expect(await received(id)).to.deep.equal([integrityOf(content)]);
      content = "globalThis.said = 'moved on'";
      expect((await update(id, { description: "again" })).body.action.assets).to.deep.equal(action.assets);
      expect(await run(id)).to.equal("/late.js");
    });

    it("are stored by a publish, for draft, live version and history", async () => {
      await service.rest("POST", `/v1/apps/${service.appId}/publish`);
      const { id } = await listed("/published.js");
      const published = (await service.rest("POST", `${actions()}/${id}/publish`)).body.action;
      expect(published.assets[0].integrity).to.equal(integrityOf(content));
      const master = (await service.rest("GET", `${actions()}/${id}`)).body.action;
      expect(master.assets).to.deep.equal(published.assets);
      const { versions } = (await service.rest("GET", `${actions()}/${id}/versions`)).body;
      const { data } = (await service.rest("GET", `${actions()}/${id}/versions/${versions[0].id}`)).body.version;
      expect(data.assets).to.deep.equal(published.assets);
      expect(await received(id)).to.deep.equal([integrityOf(content)]);
    });

    it("are published if the host still does not answer, and not if it has no script", async () => {
      await service.rest("POST", `/v1/apps/${service.appId}/publish`);
      const { id, dependencies } = await listed("/gone.js");
      const publish = () => service.rest("POST", `${actions()}/${id}/publish`);
      const away = await withoutHost(publish);
      expect([away.http, away.body.action.assets[0].unreached]).to.deep.equal([200, true]);
      const refused = async (save: () => ReturnType<typeof publish>) => {
        const { http, body } = await save();
        expect({ http, status: body.status }).to.deep.equal({
          http: status === 404 ? 400 : 503,
          status: "DEPENDENCY_UNRESOLVED",
        });
        expect(body.error).to.include(
          `${dependencies[0]}" cannot be fetched: its host responded with status ${status}`,
        );
      };
      for (status of [404, 503]) {
        await refused(publish);
        await refused(() => update(id, { dependencies }));
        // A save without the field `dependencies` is accepted, although the service cannot reach the script.
        expect((await update(id, { description: `${status}` })).body.action.assets[0].unreached).to.equal(true);
      }
    });

    it("are stored by a restore, with the content that the action has by then", async () => {
      const { id } = await listed("/restored.js");
      const restore = async () => {
        const { versions } = (await service.rest("GET", `${actions()}/${id}/versions`)).body;
        const path = `${actions()}/${id}/versions/${versions.at(-1).id}/restore`;
        return (await service.rest("POST", path)).body.action.assets[0].integrity;
      };
      const first = integrityOf(content);
      expect(await restore()).to.equal(first);
      content = "globalThis.said = 'moved on'";
      expect(await restore()).to.equal(first);
      expect(await received(id)).to.deep.equal([first]);
      await update(id, { dependencies: [] });
      expect(await restore()).to.equal(integrityOf(content));
    });
  });
});

describe("scripts at private addresses", () => {
  it("are rejected on save", async () => {
    const service = await useSharedService("api");
    try {
      for (const host of ["127.0.0.1", "localhost", "169.254.169.254", "[::1]", "10.0.0.1", "0x7f.1"]) {
        const data = { name: "inside", code: "async function execute() {}", dependencies: [`https://${host}/x.js`] };
        const { http, body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data });
        expect({ http, status: body.status }, host).to.deep.equal({ http: 400, status: "DEPENDENCY_UNRESOLVED" });
        expect(body.error).to.match(/IP address that is not public/);
      }
    } finally {
      await service.stop();
    }
  });
});
