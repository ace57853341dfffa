/** Tests npm packages: the service resolves them when saving, stores them by content, and runs them without a registry. */
import { createHash } from "node:crypto";
import { expect } from "chai";
import pg from "pg";
import type { ActionError } from "../../src/errors.js";
import { TYPE_DECLARATION_REQUESTS_PER_APP_AND_MINUTE } from "../../src/limits.js";
import { StoredScripts } from "../../src/operations/packages/kept-scripts.js";
import { type PublishedPackage, startRegistry, type TestRegistry } from "../harness/npm-registry.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

const ADD: PublishedPackage = {
  name: "add-things",
  version: "1.0.0",
  files: {
    "index.js":
      "const { one } = require('one-thing'); exports.add = (a, b) => a + b + one - 1; exports.version = '1.0.0';",
  },
  manifest: { dependencies: { "one-thing": "^1.0.0" } },
};
const ONE_PACKAGE: PublishedPackage = { name: "one-thing", version: "1.2.0", files: { "index.js": "exports.one = 1" } };
const SCOPED_PACKAGE: PublishedPackage = {
  name: "@scope/say-hello",
  version: "2.1.0",
  files: {
    "index.js": "export default function hello(name) { return 'hello ' + name }",
    "readme.md": "```js\nimport greet from '@scope/say-hello'\n```",
  },
  manifest: { type: "module", license: "ISC" },
};

describe("packages from npm", () => {
  let registry: TestRegistry;
  let service: TestService;

  before(async () => {
    registry = await startRegistry();
    registry.publish(ADD, ONE_PACKAGE, SCOPED_PACKAGE);
    service = await startTestService({
      ROLES: "api,runner",
      NPM_PACKAGES: "on",
      NPM_REGISTRY: registry.url,
      NPM_TOKEN: "registry-secret",
    });
  });
  after(async () => {
    await service?.stop();
    await registry?.close();
  });

  const actions = () => `/v3/apps/${service.appId}/actions`;
  let count = 0;
  function create(dependencies: string[], body = "return 1", fields: object = {}) {
    count += 1;
    const code = `async function execute(context) { ${body} }`;
    const data = {
      name: `npm-${count}`,
      code,
      active: true,
      triggers: [{ trigger: "manual" }],
      dependencies,
      ...fields,
    };
    return service.rest("POST", actions(), { body: data });
  }
  const run = async (id: number) => (await service.rest("POST", `${actions()}/${id}/runWithResult`, { body: {} })).body;
  const update = (id: number, body: object) => service.rest("PUT", `${actions()}/${id}`, { body });

  it("run under their global name with all dependencies, and the response to create shows each", async () => {
    const dependencies = ["add-things@^1", "@scope/say-hello"];
    const { http, body } = await create(dependencies, "return [addThings.add(1, 2), greet('you')]");
    expect(http, JSON.stringify(body)).to.equal(201);
    const { action } = body;
    expect(action.dependencies).to.deep.equal(dependencies);
    const [add, hello] = action.assets;
    expect(add).to.include({ name: "add-things@^1", version: "1.0.0", licence: "MIT", global: "addThings" });
    expect(add.path).to.match(/^\/client\/kept\/[0-9a-f]{64}\.js$/);
    expect(add.url).to.equal(service.url + add.path);
    expect(hello).to.include({ name: "@scope/say-hello", version: "2.1.0", licence: "ISC", global: "greet" });
    expect((await run(action.id)).result).to.deep.equal([3, "hello you"]);
  });

  longTest("keep their TypeScript declarations, for the editors of apps that use them", async () => {
    const index = 'import { B } from "./b.js"; export declare function made(): B;';
    const files = {
      "index.js": "exports.made = () => ({})",
      "index.d.ts": index,
      "b.d.ts": "export interface B { c: 1 }",
    };
    registry.publish({ name: "declares", version: "1.0.0", files });
    const { action } = (await create(["declares", "one-thing"])).body;
    const [{ integrity }, bare] = action.assets;
    const read = (of: string | undefined, appId = service.appId, as: "editor" | "admin" | "viewer" = "editor") =>
      service.rest("GET", `/v3/apps/${appId}/packages/declarations?integrity=${encodeURIComponent(of ?? "")}`, { as });
    const { http, body } = await read(integrity);
    expect([http, body.status]).to.deep.equal([200, "DECLARATIONS_READ"]);
    expect(body.files).to.deep.equal([
      'type All = typeof import("./1");\nexport type Value = All extends { default: infer Default } ? Default : All;\n',
      index.replace("./b.js", "./2"),
      files["b.d.ts"],
    ]);
    expect((await read(bare.integrity)).body.files).to.equal(null);
    const document = "query ($appId: Int!, $of: String!) { files: packageDeclarations(appId: $appId, integrity: $of) }";
    const answer = await service.graphql(document, { appId: service.appId, of: integrity });
    expect(answer.data.files).to.deep.equal(body.files);
    const ofApp = await service.graphql("query ($id: Int!) { appTypes(appId: $id) }", { id: service.appId });
    expect(ofApp.data.appTypes)
      .to.include('declare module "svc-types:declares/1" {\nimport { B } from "svc-types:declares/2";')
      .and.to.include('declare module "one-thing";');

    const other = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } })).body.app;
    expect((await read(integrity, other.id, "admin")).body).to.include({ status: "DECLARATIONS_READ", files: null });
    for (const odd of [undefined, "sha256-", `${integrity}x`, "sha512-abc"]) {
      const refused = await read(odd);
      expect([refused.http, refused.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(refused.body.error).to.match(/^"integrity" must be the integrity of a script/);
    }
  });

  it("have a rate limit for reads of declarations, for each app", async () => {
    const scripts = new StoredScripts(service.db);
    const integrity = `sha256-${createHash("sha256").update("").digest("base64")}`;
    const read = (appId: number) => scripts.readDeclarations(appId, integrity);
    // The limit regains five requests per second. A hundred requests beyond the limit are enough for a refusal on any machine.
    const reads = Array.from({ length: TYPE_DECLARATION_REQUESTS_PER_APP_AND_MINUTE + 100 }, () =>
      read(service.appId).catch((error) => error),
    );
    const answers: (null | ActionError)[] = await Promise.all(reads);
    expect(new Set(answers.slice(0, TYPE_DECLARATION_REQUESTS_PER_APP_AND_MINUTE))).to.deep.equal(new Set([null]));
    const refused = answers.filter((answer) => answer !== null);
    expect(new Set(refused.map(({ status }) => status))).to.deep.equal(new Set(["RATE_LIMIT_EXCEEDED"]));
    for (const { details } of refused) expect(details.retryAfter).to.be.within(1, 60);
    expect(await read(service.appId + 1)).to.equal(null);
  });

  it("need a document only if they name one, and so does code that names them", async () => {
    const publishPackage = (name: string, code: string) =>
      registry.publish({ name, version: "1.0.0", files: { "index.js": code } });
    publishPackage("looks-around", "module.exports = () => typeof document");
    publishPackage("needs-a-page", "exports.title = () => document.title");
    const plain = (await create(["looks-around"], "return looksAround()")).body.action;
    expect((await run(plain.id)).result).to.equal("undefined");
    const both = ["looks-around", "needs-a-page"];
    const page = (await create(both, "return [needsAPage.title(), looksAround()]")).body.action;
    expect((await run(page.id)).result).to.deep.equal(["", "object"]);
  });

  longTest("are marked if they use eval, because pages of client actions forbid it", async () => {
    const publishPackage = (name: string, code: string) =>
      registry.publish({ name, version: "1.0.0", files: { "index.js": code } });
    publishPackage("makes-code", "exports.compile = (text) => new Function(text)");
    publishPackage(
      "tries-code",
      "exports.can = () => { try { return new Function('return true')() } catch { return false } }",
    );
    const code = "return [makesCode.compile('return 1')(), triesCode.can()]";
    const { action } = (await create(["makes-code", "tries-code"], code)).body;
    expect(action.assets.map(({ usesEval }: { usesEval?: boolean }) => usesEval)).to.deep.equal([true, undefined]);
    expect((await run(action.id)).result).to.deep.equal([1, true]);
  });

  it("are served by their content to pages of any origin, cacheable without expiry", async () => {
    const { action } = (await create(["add-things"])).body;
    const [{ url, integrity, bytes }] = action.assets;
    const answer = await fetch(url);
    const text = Buffer.from(await answer.arrayBuffer());
    expect(answer.headers.get("cache-control")).to.match(/immutable/);
    expect(answer.headers.get("access-control-allow-origin")).to.equal("*");
    expect(text.length).to.equal(bytes);
    expect(`sha256-${createHash("sha256").update(text).digest("base64")}`).to.equal(integrity);
    expect((await fetch(url.replace(/kept\/.{4}/, "kept/0000"))).status).to.equal(404);
  });

  it("need no request to the registry for later saves and runs", async () => {
    const { action } = (await create(["add-things"], "return addThings.version")).body;
    registry.requestedPaths.length = 0;
    expect((await update(action.id, { description: "x", dependencies: ["add-things"] })).http).to.equal(200);
    expect((await create(["add-things"])).http).to.equal(201);
    expect((await run(action.id)).result).to.equal("1.0.0");
    expect(registry.requestedPaths).to.deep.equal([]);
  });

  longTest("stay the same until the dependency changes, and a restore uses the same script", async () => {
    registry.publish({ name: "moves-on", version: "1.0.0", files: { "index.js": "module.exports = 'old'" } });
    const { action } = (await create(["moves-on@1.0.0"], "return movesOn")).body;
    registry.publish({ name: "moves-on", version: "1.1.0", files: { "index.js": "module.exports = 'new'" } });
    const newer = (await update(action.id, { dependencies: ["moves-on@^1.1"] })).body.action;
    expect((await run(action.id)).result).to.equal("new");
    registry.remove("moves-on");
    const { versions } = (await service.rest("GET", `${actions()}/${action.id}/versions`)).body;
    const first = (await service.rest("GET", `${actions()}/${action.id}/versions/${versions.at(-1).id}`)).body.version;
    expect(first.data.assets).to.deep.equal(action.assets);
    const restored = await service.rest("POST", `${actions()}/${action.id}/versions/${versions.at(-1).id}/restore`);
    expect(restored.body.action.assets).to.deep.equal(action.assets);
    expect(restored.body.action.assets).not.to.deep.equal(newer.assets);
    expect((await run(action.id)).result).to.equal("old");
  });

  it("have an entry in the audit log once for each version that an action did not have", async () => {
    const { action } = (await create(["add-things"])).body;
    await update(action.id, { description: "again" });
    const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/audit?actionId=${action.id}`)).body;
    const received = entries.filter(({ type }: { type: string }) => type === "appAction.v3.dependency");
    const [{ integrity }] = action.assets;
    expect(received.map(({ data }: { data: object }) => data)).to.deep.equal([
      { dependency: "add-things", version: "1.0.0", licence: "MIT", integrity },
    ]);
  });

  longTest("are exported as the same scripts, even if the registry has newer ones or none", async () => {
    registry.publish({ name: "carried", version: "3.0.0", files: { "index.js": "module.exports = 3" } });
    const { action } = (await create(["carried"], "return carried", { name: "carrier" })).body;
    registry.remove("carried");
    const { actions: all, format } = (await service.rest("GET", `${actions()}/export`)).body;
    await service.rest("DELETE", `${actions()}/${action.id}`);
    const document = { format, actions: all.filter(({ name }: { name: string }) => name === "carrier") };
    await service.db.query("UPDATE package_choice SET chosen_at = 'epoch' WHERE spec LIKE 'carried@%'");
    const imported = await service.rest("POST", `${actions()}/import`, { body: document });
    expect(imported.body).to.deep.include({ created: ["carrier"] });
    const { action: back } = (await service.rest("GET", `${actions()}?search=carrier`)).body.actions.map(
      (action: object) => ({ action }),
    )[0];
    expect(back.assets).to.deep.equal(action.assets);
  });

  it("are imported in the version that the document names, if the service does not have the script", async () => {
    for (const version of ["1.0.0", "1.1.0"])
      registry.publish({ name: "pinned", version, files: { "index.js": `module.exports = "${version}"` } });
    const assets = [{ name: "pinned", version: "1.0.0", integrity: `sha256-${"A".repeat(43)}=` }];
    const action = {
      name: "pinned",
      code: "async function execute() { return pinned }",
      dependencies: ["pinned"],
      assets,
    };
    const document = { format: "svc-app-actions/1", actions: [action] };
    const imported = await service.rest("POST", `${actions()}/import`, { body: document });
    expect(imported.body).to.deep.include({ created: ["pinned"] });
    const { actions: found } = (await service.rest("GET", `${actions()}?search=pinned`)).body;
    expect(found.map(({ assets: [asset] }: { assets: object[] }) => asset)).to.containSubset([{ version: "1.0.0" }]);
  });

  it("send the registry's token to the registry", () => {
    expect(registry.headers.authorization).to.equal("Bearer registry-secret");
  });

  describe("are rejected with an explanation, and nothing is written:", () => {
    const REFUSED: [title: string, dependency: string, words: RegExp, published?: PublishedPackage][] = [
      ["a name that does not exist", "not-there", /"not-there" does not exist in the registry/],
      ["a version that does not exist", "add-things@9", /has no version 9/],
      [
        "a need that does not exist",
        "lacking",
        /needs not-there-either, which does not exist in the registry/,
        { name: "lacking", version: "1.0.0", manifest: { dependencies: { "not-there-either": "*" } } },
      ],
      [
        "a package that needs Node's modules",
        "reads-files",
        /needs the Node modules fs, node:net/,
        {
          name: "reads-files",
          version: "1.0.0",
          files: {
            "index.js":
              "const fs = require('fs'); const net = require('node:net'); module.exports = () => fs.readFileSync('/etc/passwd')",
          },
        },
      ],
      [
        "an entry that is not there",
        "hollow",
        /cannot be used/,
        { name: "hollow", version: "1.0.0", manifest: { main: "gone.js" } },
      ],
      [
        "no JavaScript",
        "broken",
        /cannot be bundled/,
        { name: "broken", version: "1.0.0", files: { "index.js": "this is no JavaScript" } },
      ],
      ["a name of the service's own", "svc-nothing", /is not a package of this service; names/],
      ["a folder", "./local", /, an npm package such as lodash/],
      ["a path upwards", "../../etc", /, an npm package such as lodash/],
      ["a path as a scope", "@../etc", /, an npm package such as lodash|does not exist in the registry/],
      ["a repository", "git+https://example.com/a.git", /must be an https URL/],
      ["another name's package", "a@npm:add-things", /, an npm package such as lodash/],
      ["an address without TLS", "http://example.com/a.js", /must be an https URL/],
    ];
    for (const [title, dependency, words, published] of REFUSED) {
      it(title, async () => {
        if (published) registry.publish(published);
        const { http, body } = await create([dependency], "return 1", { name: "refused" });
        expect({ http, status: body.status }, body.error).to.deep.equal({ http: 400, status: "DEPENDENCY_UNRESOLVED" });
        expect(body.error).to.match(words).and.to.include(dependency);
        expect((await service.rest("GET", `${actions()}?search=refused`)).body.actions).to.deep.equal([]);
      });
    }
  });

  it("cause 503 with Retry-After while the registry is not available, except for cached answers", async () => {
    await create(["add-things@1.0"]);
    await service.db.query("UPDATE package_choice SET chosen_at = 'epoch'");
    registry.replacementHandler = (_request, response) => response.writeHead(502).end();
    const { http, body, headers } = await create(["never-seen"]);
    const known = await create(["add-things@1.0"]);
    registry.replacementHandler = null;
    expect({ http, status: body.status }).to.deep.equal({ http: 503, status: "DEPENDENCY_UNRESOLVED" });
    expect(headers.get("retry-after")).to.match(/^\d+$/);
    expect(known.http).to.equal(201);
  });

  it("cost a save only the check of the limit, if they are known, more than a save without", async () => {
    const { query } = pg.Client.prototype;
    const statements = async (save: () => Promise<{ http: number }>) => {
      const texts: string[] = [];
      // biome-ignore lint/suspicious/noExplicitAny: the driver accepts several kinds of arguments
      pg.Client.prototype.query = function (this: pg.Client, ...args: any[]) {
        const [{ text = args[0] }] = args;
        if (/INTO "action"|UPDATE "action"|kept_script|package_choice|audit_entry|INTO action_version/.test(text))
          texts.push(text.replaceAll(/\s+/g, " ").slice(0, 60));
        return Reflect.apply(query, this, args);
      } as typeof query;
      const { http } = await save().finally(() => {
        pg.Client.prototype.query = query;
      });
      return { http, texts };
    };
    /** Removes the statement that sums up the bytes of the app's scripts. Expects exactly one such statement. */
    const withoutCheck = ({ http, texts }: { http: number; texts: string[] }) => {
      const otherTexts = texts.filter((text) => !text.startsWith(" SELECT (coalesce(sum(bytes"));
      expect(texts.length - otherTexts.length).to.equal(1);
      return { http, texts: otherTexts };
    };
    await create(["add-things@1.0"]);
    const without = await statements(() => create([]));
    expect(without.texts).to.have.length.above(2);
    expect(withoutCheck(await statements(() => create(["add-things@1.0"])))).to.deep.equal(without);
    const { action } = (await create([])).body;
    const plain = await statements(() => update(action.id, { dependencies: [], description: "a" }));
    const addsPackage = () => update(action.id, { dependencies: ["add-things@1.0"], description: "b" });
    expect(withoutCheck(await statements(addsPackage))).to.deep.equal(plain);
    const keepsPackage = () => update(action.id, { dependencies: ["add-things@1.0"], description: "c" });
    expect(await statements(keepsPackage)).to.deep.equal(plain);
    const used = async () =>
      (await service.db.query("SELECT count(*)::int AS n FROM kept_script_use WHERE action_id = $1", [action.id]))[0].n;
    expect(await used()).to.equal(1);
    await update(action.id, { dependencies: [] });
    expect(await used()).to.equal(0);
  });

  longTest("are removed when no action and no version uses them, and not before", async () => {
    registry.publish({ name: "used-once", version: "1.0.0", files: { "index.js": "module.exports = 'used once'" } });
    const { action } = (await create(["used-once"])).body;
    const scripts = new StoredScripts(service.db);
    const kept = async () => {
      await service.db.query("UPDATE kept_script SET touched_at = 'epoch'");
      await scripts.sweep();
      return (await fetch(action.assets[0].url, { headers: { "cache-control": "no-store" } })).status;
    };
    await update(action.id, { dependencies: [] });
    const rows = () => service.db.query("SELECT 1 FROM kept_script WHERE package = 'used-once'");
    expect(await kept()).to.equal(200);
    expect(await rows()).to.have.length(1);
    await service.rest("DELETE", `${actions()}/${action.id}`);
    await kept();
    expect(await rows()).to.have.length(0);
    await service.db.query(
      "UPDATE package_choice SET chosen_at = now() - interval '31 days' WHERE spec LIKE '@scope%'",
    );
    await scripts.sweep();
    const specs = await service.db.query("SELECT spec FROM package_choice WHERE spec LIKE '@scope%'");
    expect(specs).to.deep.equal([]);
  });

  it("have their errors reported after an error of another field", async () => {
    const { body } = await create(["not-there"], "return 1", { timezone: "Nowhere/Land" });
    expect(body.status).to.equal("TIMEZONE_INVALID");
  });
});
