/** Tests which package, version and module a dependency resolves to, and the errors that name alternatives. */
import { expect } from "chai";
import { createArchive, type PublishedPackage, startRegistry, type TestRegistry } from "../harness/npm-registry.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";
import { testModes } from "./modes.js";

const DAY_MS = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS);

const dated = (version: string, days: number): PublishedPackage => ({
  name: "dated",
  version,
  files: { "index.js": `module.exports = "${version}"` },
  publishedAt: daysAgo(days),
});

const HASHES_PACKAGE: PublishedPackage = {
  name: "@noble/hashes",
  version: "1.4.0",
  files: {
    "index.js": "throw new Error('root module cannot be imported: import submodules instead')",
    "sha256.js": "export const sha256 = (text) => 'sha256 of ' + text;",
    "lib/deep.js": "module.exports = function deep() { return 'deep' };",
  },
  manifest: {
    type: "module",
    exports: { ".": "./index.js", "./sha256": "./sha256.js", "./lib/deep.js": "./lib/deep.js" },
  },
};

describe("choices of npm packages", () => {
  let registry: TestRegistry;
  let service: TestService;

  before(async () => {
    registry = await startRegistry();
    registry.publish(HASHES_PACKAGE, dated("1.0.0", 30), dated("1.1.0", 8), dated("1.2.0", 6), dated("2.0.0", 1));
    service = await startTestService({ ROLES: "api,runner", NPM_PACKAGES: "on", NPM_REGISTRY: registry.url });
  });
  after(async () => {
    await service?.stop();
    await registry?.close();
  });

  let count = 0;
  async function create(dependencies: string[], body = "return 1") {
    count += 1;
    const code = `async function execute() { ${body} }`;
    return service.rest("POST", `/v3/apps/${service.appId}/actions`, {
      body: { name: `choice-${count}`, code, active: true, triggers: [{ trigger: "manual" }], dependencies },
    });
  }
  async function run(dependencies: string[], body: string) {
    const { http, body: made } = await create(dependencies, body);
    expect(http, JSON.stringify(made)).to.equal(201);
    const path = `/v3/apps/${service.appId}/actions/${made.action.id}/runWithResult`;
    return (await service.rest("POST", path, { body: {} })).body.result;
  }

  const versions: [string, string][] = [
    ["dated", "1.1.0"],
    ["dated@^1", "1.1.0"],
    ["dated@latest", "1.1.0"],
    ["dated@1.2.0", "1.2.0"],
    ["dated@2.0.0", "2.0.0"],
  ];
  for (const [dependency, version] of versions) {
    it(`${dependency} gets ${version}: versions younger than seven days only if they are named exactly`, async () => {
      const { body } = await create([dependency]);
      expect(body.action?.assets[0].version, JSON.stringify(body)).to.equal(version);
    });
  }

  it("rejects a range with only young versions, and gives the reason", async () => {
    const { http, body } = await create(["dated@^2"]);
    expect([http, body.status]).to.deep.equal([400, "DEPENDENCY_UNRESOLVED"]);
    expect(body.error).to.match(/has only versions of \^2 that are younger than NPM_MIN_AGE_DAYS/);
  });

  longTest("applies the minimum age also to the dependencies of a package", async () => {
    const manifest = { dependencies: { dated: "^1.0.0" } };
    registry.publish({
      name: "needs-dated",
      version: "1.0.0",
      files: { "index.js": "module.exports = require('dated')" },
      manifest,
    });
    expect(await run(["needs-dated"], "return needsDated")).to.equal("1.1.0");
  });

  longTest("loads a module of a package by its path, with and without a version", async () => {
    expect(await run(["@noble/hashes/sha256"], "return sha256.sha256('x')")).to.equal("sha256 of x");
    expect(await run(["@noble/hashes@^1/lib/deep.js"], "return deep()")).to.equal("deep");
  });

  for (const dependency of ["@noble/hashes/../../other", "lodash/./x", "@noble/hashes//sha256", "@noble/hashes/"]) {
    it(`rejects ${dependency}, which is no path of a module`, async () => {
      const { http, body } = await create([dependency]);
      expect([http, body.status]).to.deep.equal([400, "DEPENDENCY_UNRESOLVED"]);
    });
  }

  it("rejects a module that the package does not have", async () => {
    const { http, body } = await create(["@noble/hashes/sha1"]);
    expect([http, body.status]).to.deep.equal([400, "DEPENDENCY_UNRESOLVED"]);
    expect(body.error).to.contain('the package has no file or export "sha1"');
  });

  longTest("accepts an archive with `.` segments in its paths", async () => {
    const content = JSON.stringify({ name: "dotted", version: "1.0.0", main: "./lib/./index.js" });
    const archive = createArchive([
      { path: "./package/package.json", content },
      { path: "package/./lib/./index.js", content: "module.exports = 'dotted'" },
    ]);
    registry.publish({ name: "dotted", version: "1.0.0", archive });
    expect(await run(["dotted"], "return dotted")).to.equal("dotted");
  });

  longTest("rejects two packages with one global name, also if the action already has one of them", async () => {
    const files = { "index.js": "module.exports = 1" };
    registry.publish(
      { name: "same-name", version: "1.0.0", files },
      { name: "@other/same-name", version: "1.0.0", files },
    );
    const { http, body } = await create(["same-name", "@other/same-name"]);
    expect([http, body.status]).to.deep.equal([400, "DEPENDENCY_UNRESOLVED"]);
    expect(body.error).to.match(/"@other\/same-name" has the same global name sameName as "same-name"/);
    const action = (await create(["same-name"])).body.action;
    const path = `/v3/apps/${service.appId}/actions/${action.id}`;
    for (const dependencies of [
      ["same-name", "@other/same-name"],
      ["@other/same-name", "same-name"],
    ]) {
      const refused = await service.rest("PUT", path, { body: { dependencies } });
      expect(refused.body.error, dependencies.join()).to.match(/"@other\/same-name" has the same global name sameName/);
    }
  });

  const UNLOADABLE_PACKAGES: [string, string, RegExp][] = [
    [
      "throws-first",
      "throw new Error('root module cannot be imported')",
      /cannot be used: it cannot be loaded: .*root module cannot be imported/,
    ],
    [
      "extends-nothing",
      "class X extends require('./empty').EventEmitter {}; module.exports = X",
      /it cannot be loaded: .*Class extends value undefined/,
    ],
    ["loads-forever", "for (;;) {}", /loading it takes more than 5 s/],
  ];
  for (const [name, source, words] of sampleOf(UNLOADABLE_PACKAGES, 0, 3)) {
    it(`rejects ${name}, which can never be loaded, and writes nothing`, async () => {
      registry.publish({ name, version: "1.0.0", files: { "index.js": source, "empty.js": "exports.none = 1" } });
      const { http, body } = await create([name]);
      expect([http, body.status], JSON.stringify(body)).to.deep.equal([400, "DEPENDENCY_UNRESOLVED"]);
      expect(body.error).to.match(words);
      const [{ scripts }] = await service.db.query(
        "SELECT count(*)::int AS scripts FROM kept_script WHERE package = $1",
        [name],
      );
      expect(scripts).to.equal(0);
    });
  }

  longTest("loads a package that uses a document, timers and storage", async () => {
    const source =
      "document.createElement('p'); localStorage.setItem('a', 1); setTimeout(() => {}, 1); module.exports = window.name";
    registry.publish({ name: "uses-much", version: "1.0.0", files: { "index.js": source } });
    const { http, body } = await create(["uses-much"]);
    expect(http, JSON.stringify(body)).to.equal(201);
  });

  longTest("names an alternative to a package that needs Node", async () => {
    const files = { "index.js": "const fs = require('fs'); module.exports = fs.readFileSync" };
    registry.publish({ name: "csv-parse", version: "5.0.0", files }, { name: "jsonwebtoken", version: "9.0.0", files });
    const csv = (await create(["csv-parse@5"])).body;
    expect(csv.error).to.match(/needs the Node modules fs, .*; use svc-csv or papaparse instead$/);
    expect((await create(["jsonwebtoken"])).body.error).to.match(/; use jose instead$/);
  });

  describe("of which some name globals that their functions rarely use", () => {
    testModes(() => ({ registry, service }));
  });
});
