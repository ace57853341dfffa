/**
 * Checks that the stored scripts of an action never change: not by later responses of the registry, not by requests of other processes, and
 * not when npm is switched off.
 */
import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { readConfig } from "../../src/config.js";
import { StoredScripts } from "../../src/operations/packages/kept-scripts.js";
import { type Service, startService } from "../../src/service.js";
import { tlsServer, trustLocalhost } from "../harness/localhost-tls.js";
import { startRegistry, type TestRegistry } from "../harness/npm-registry.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

const SETTINGS_KEY = Buffer.alloc(32, 3).toString("base64");

interface Entry {
  type: string;
  data: { version: string; integrity: string };
}

describe("a package that an action has", () => {
  let registry: TestRegistry;
  let service: TestService;
  /** Second process of the service, without the caches of the first one. */
  let secondProcess: Service;

  const release = (name: string, version: string, says: string) =>
    registry.publish({ name, version, files: { "index.js": `module.exports = '${says}'` } });

  async function startLater(npm: Record<string, string>): Promise<void> {
    await secondProcess?.stop();
    const { databaseUrl: DATABASE_URL, dataDir: DATA_DIR } = service;
    const environment = { PORT: "0", LOG_LEVEL: "silent", DATABASE_URL, DATA_DIR, SETTINGS_KEY };
    const limits = { RATE_LIMIT_MANAGE: "0", RATE_LIMIT_RUN: "0", RATE_LIMIT_PUBLISH: "0" };
    secondProcess = await startService(readConfig({ ...environment, ...limits, ...npm }));
  }

  before(async () => {
    registry = await startRegistry();
    const npm = { NPM_PACKAGES: "on", NPM_REGISTRY: registry.url };
    service = await startTestService({ SETTINGS_KEY, ROLES: "api", ...npm });
    await startLater(npm);
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
  });
  after(async () => {
    await secondProcess?.stop();
    await service?.stop();
    await registry?.close();
  });

  const actions = () => `/v3/apps/${service.appId}/actions`;
  let count = 0;
  function dataOf(dependencies: string[], code: string) {
    count += 1;
    return { name: `frozen-${count}`, code, active: true, triggers: [{ trigger: "manual" }], dependencies };
  }
  const create = async (dependencies: string[], code = "async function execute() {}") =>
    (await service.rest("POST", actions(), { body: dataOf(dependencies, code) })).body.action;

  async function answerTo(method: string, path: string, body?: object) {
    const headers = { "auth-token": service.tokens.editor, "content-type": "application/json" };
    const answer = await fetch(secondProcess.url + path, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
    return { http: answer.status, body: (await answer.json()) as any };
  }

  async function auditedVersions(id: number): Promise<string[]> {
    const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/audit?actionId=${id}`)).body;
    const received = (entries as Entry[]).filter(({ type }) => type === "appAction.v3.dependency");
    return received.map(({ data }) => data.version).reverse();
  }

  longTest(
    "stays the same through saves, a publish and the cleanup, although its name means a newer one by then",
    async () => {
      release("moves-on", "1.0.0", "old");
      const code = "async function execute() { return movesOn }";
      const { id, assets, dependencies } = await create(["moves-on"], code);
      expect(assets[0].version).to.equal("1.0.0");
      release("moves-on", "2.0.0", "new");
      await service.db.query("UPDATE package_choice SET chosen_at = 'epoch'");
      const other = await answerTo("POST", actions(), dataOf(["moves-on"], code));
      expect(other.body.action.assets[0].version).to.equal("2.0.0");

      const saved = await answerTo("PUT", `${actions()}/${id}`, { dependencies, description: "again" });
      expect(saved.body.action.assets).to.deep.equal(assets.map(moved));
      expect((await answerTo("PUT", `${actions()}/${id}`, { description: "more" })).body.action.assets).to.deep.equal(
        assets.map(moved),
      );
      const published = await answerTo("POST", `${actions()}/${id}/publish`);
      expect(published.body.action.assets).to.deep.equal(assets.map(moved));
      await service.db.query("UPDATE kept_script SET touched_at = 'epoch'");
      await new StoredScripts(service.db).sweep();
      expect((await answerTo("POST", `${actions()}/${id}/runWithResult`, {})).body.result).to.equal("old");
      expect((await answerTo("POST", `${actions()}/${other.body.action.id}/runWithResult`, {})).body.result).to.equal(
        "new",
      );
      expect(await auditedVersions(id)).to.deep.equal(["1.0.0"]);
    },
  );

  /** Returns the script with its URL at the second process. */
  const moved = (asset: { path: string }) => ({ ...asset, url: secondProcess.url + asset.path });

  longTest("has an entry in the audit log whenever it changes: by a save, a restore or an import", async () => {
    release("is-told", "1.0.0", "old");
    const { id, name } = await create(["is-told@1.0.0"]);
    release("is-told", "1.1.0", "new");
    await service.rest("PUT", `${actions()}/${id}`, { body: { dependencies: ["is-told@^1.1"] } });
    expect(await auditedVersions(id)).to.deep.equal(["1.0.0", "1.1.0"]);
    const { format, actions: all } = (await service.rest("GET", `${actions()}/export`)).body;
    const { versions } = (await service.rest("GET", `${actions()}/${id}/versions`)).body;
    await service.rest("POST", `${actions()}/${id}/versions/${versions.at(-1).id}/restore`);
    expect(await auditedVersions(id)).to.deep.equal(["1.0.0", "1.1.0", "1.0.0"]);
    const document = { format, actions: all.filter((action: { name: string }) => action.name === name) };
    const imported = await service.rest("POST", `${actions()}/import`, { body: document });
    expect(imported.body.updated, JSON.stringify(imported.body)).to.have.length(1);
    expect(await auditedVersions(id)).to.deep.equal(["1.0.0", "1.1.0", "1.0.0", "1.1.0"]);
    await service.rest("POST", `${actions()}/import`, { body: document });
    expect(await auditedVersions(id)).to.have.length(4);
  });

  longTest(
    "continues to run, and can be saved and published, if npm is switched off; other packages cannot be added",
    async () => {
      release("had-before", "1.0.0", "still here");
      const code = "async function execute() { return hadBefore }";
      const { id, dependencies, assets } = await create(["had-before"], code);
      await startLater({ NPM_PACKAGES: "off" });
      const refused = await answerTo("POST", actions(), dataOf(["had-before"], code));
      expect([refused.http, refused.body.status]).to.deep.equal([400, "DEPENDENCY_UNRESOLVED"]);
      expect(refused.body.error).to.include('"had-before" is not in the catalogue of this service');
      expect(refused.body.error).to.include("npm packages are switched off in this service");
      const added = await answerTo("PUT", `${actions()}/${id}`, { dependencies: [...dependencies, "moves-on"] });
      expect([added.http, added.body.status]).to.deep.equal([400, "DEPENDENCY_UNRESOLVED"]);
      const saved = await answerTo("PUT", `${actions()}/${id}`, { dependencies, description: "again" });
      expect(saved.http).to.equal(200);
      expect(saved.body.action.assets).to.deep.equal(assets.map(moved));
      expect((await answerTo("POST", `${actions()}/${id}/publish`)).http).to.equal(200);
      expect((await answerTo("POST", `${actions()}/${id}/runWithResult`, {})).body.result).to.equal("still here");
    },
  );
});

describe("the token of a registry", () => {
  it("is sent to no other origin: neither after a redirect, nor for archives", async () => {
    const untrust = trustLocalhost();
    const registry = await startRegistry();
    const mirror = await startRegistry();
    const seen: { path: string; headers: IncomingHttpHeaders }[] = [];
    const tokens: (string | undefined)[] = [];
    /** Origin of the archive URLs in the package documents that the mirror returns. */
    let archiveOrigin = registry.url;
    const mirrored = async (path: string) => {
      const answer = Buffer.from(await (await fetch(mirror.url + path)).arrayBuffer());
      return path.endsWith(".tgz") ? answer : String(answer).replaceAll(mirror.url, archiveOrigin);
    };
    const there = tlsServer(async ({ url, headers }, response) => {
      seen.push({ path: url!, headers });
      response.end(await mirrored(url!));
    });
    there.listen(0, "127.0.0.1");
    await once(there, "listening");
    const elsewhere = `https://localhost:${(there.address() as AddressInfo).port}`;
    const npm = { NPM_PACKAGES: "on", NPM_REGISTRY: registry.url, NPM_TOKEN: "registry-secret" };
    const service = await startTestService({ ...npm, ROLES: "api", ALLOW_PRIVATE_NETWORK: "1" });
    const save = async (name: string) => {
      mirror.publish({ name, version: "1.0.0", files: { "index.js": `module.exports = "${name}"` } });
      const data = { name, code: "async function execute() {}", dependencies: [name] };
      const { http, body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data });
      expect(http, body.error).to.equal(201);
    };
    try {
      registry.replacementHandler = ({ url, headers }, response) => {
        tokens.push(headers.authorization);
        response.writeHead(302, { location: elsewhere + url }).end();
      };
      await save("led-on");
      archiveOrigin = elsewhere;
      registry.replacementHandler = async ({ url, headers }, response) => {
        tokens.push(headers.authorization);
        response.end(await mirrored(url!));
      };
      await save("lies-there");
      const paths = ["/led-on", "/-/led-on/1.0.0.tgz", "/-/lies-there/1.0.0.tgz"];
      expect(seen.map(({ path }) => path)).to.deep.equal(paths);
      for (const { headers } of seen) expect(headers).not.to.have.property("authorization");
      expect(tokens).to.deep.equal(Array(3).fill("Bearer registry-secret"));
    } finally {
      untrust();
      await service.stop();
      await Promise.all([registry.close(), mirror.close()]);
      there.closeAllConnections();
      there.close();
    }
  });
});
