/**
 * Tests malicious packages that take long to load: large or deeply nested ones, and packages of registries that never respond. The service
 * must serve other requests at the same time.
 */
import { randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";
import { expect } from "chai";
import {
  evilPackage,
  evilPackageWithCode,
  INDEX,
  many,
  type PackageSaves,
  startPackageSaves,
  zeros,
} from "../attacks/npm-saves.js";
import type { PublishedPackage } from "../harness/npm-registry.js";

describe("a malicious package that takes long", () => {
  let saves: PackageSaves;

  before(async () => {
    saves = await startPackageSaves();
  });
  afterEach(() => saves.clear());
  after(() => saves?.stop());

  const REJECTED_PACKAGES: [title: string, words: RegExp, published: () => PublishedPackage][] = [
    ["of 100,000 files", /more than 20000 files/, () => evilPackage(INDEX, ...many(100_000))],
    ["that unpacks to 200 MB", /more than 64 MB/, () => ({ name: "evil", version: "1.0.0", archive: zeros(208) })],
    ["that unpacks to 4 GB", /more than 64 MB/, () => ({ name: "evil", version: "1.0.0", archive: zeros(4_096) })],
    [
      "whose archive is larger than 16 MB",
      /larger than 16 MB/,
      () => ({ name: "evil", version: "1.0.0", archive: randomBytes(17 * 2 ** 20) }),
    ],
    [
      "whose bundled code is larger than 5 MB",
      /at most 5 MB/,
      () => evilPackageWithCode(`module.exports = ${JSON.stringify(randomBytes(3 * 2 ** 20).toString("hex"))}`),
    ],
    [
      "whose code is nested too deeply for a parser",
      /cannot be|takes more/,
      () => evilPackageWithCode(`module.exports = ${"[".repeat(200_000)}${"]".repeat(200_000)}`),
    ],
    [
      "whose code needs more memory than the bundler may use",
      /exceeded its limit of 512 MB/,
      () => evilPackageWithCode(`module.exports = [${"[{a:()=>class{b=`${1}`}}],".repeat(2_000_000)}]`),
    ],
  ];
  for (const [title, words, published] of REJECTED_PACKAGES) {
    it(`${title} is rejected`, async () => {
      saves.registry.publish(published());
      await saves.expectRefusal(words);
    });
  }

  it("is rejected if the app's scripts have reached their maximum size", async () => {
    const { service, registry } = saves;
    const body = { name: "holder", code: "async function execute() {}" };
    const { action } = (await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body })).body;
    const large =
      "INSERT INTO kept_script (sha256, source) SELECT md5($1::text), convert_to(repeat('x', 52428800), 'UTF8')";
    for (const at of [1, 2, 3, 4, 5]) await service.db.query(large, [at]);
    await service.db.query(
      "INSERT INTO kept_script (sha256, source) SELECT 'rest', convert_to(repeat('x', 6291450), 'UTF8')",
    );
    await service.db.query("INSERT INTO kept_script_use (sha256, action_id) SELECT sha256, $1 FROM kept_script", [
      action.id,
    ]);
    registry.publish({ name: "evil", version: "1.0.0", files: { "index.js": "module.exports = 1" } });
    const { http, error } = await saves.save();
    expect(http).to.equal(400);
    expect(error).to.match(/"evil" is too large.*256 MB/);
  });

  it("with endless dependencies is rejected", async () => {
    const { registry } = saves;
    registry.replacementHandler = (request, response) => {
      const name = decodeURIComponent(request.url!.slice(1));
      const dist = { tarball: `${registry.url}/-/a/1.0.0.tgz`, integrity: "sha512-x" };
      const dependencies = { [`evil-${randomBytes(6).toString("hex")}`]: "*" };
      const versions = { "1.0.0": { name, version: "1.0.0", dist, dependencies } };
      response.end(JSON.stringify({ name, "dist-tags": { latest: "1.0.0" }, versions }));
    };
    await saves.expectRefusal(/needs more than the maximum of 200 packages/);
  });

  it("of a registry that never responds, or byte by byte, is rejected with 503, and others are served meanwhile", async () => {
    const { registry, service } = saves;
    for (const answer of ["silence", "bytes"]) {
      const timers: NodeJS.Timeout[] = [];
      registry.replacementHandler = (_request, response) => {
        if (answer === "bytes") timers.push(setInterval(() => response.write(" "), 200));
      };
      const startedAt = performance.now();
      const refused = saves.expectRefusal(/does not answer/, 503);
      const other = await service.rest("GET", `/v3/apps/${service.appId}/actions`);
      expect(other.http).to.equal(200);
      await refused;
      expect(performance.now() - startedAt).to.be.below(60_000);
      for (const timer of timers) clearInterval(timer);
    }
  });
});
