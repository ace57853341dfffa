/**
 * Tests malicious packages and registries while an action is saved. The package's code must not be executed, and no internal host may be
 * reached.
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { unpackPackageFiles } from "../../src/engine/bundler/archive.js";
import {
  type ArchiveEntry,
  createArchive,
  type PublishedPackage,
  startRegistry,
  type TestRegistry,
} from "../harness/npm-registry.js";
import { longTest, sampleOf } from "../harness/samples.js";
import {
  evilPackage,
  evilPackageWithCode,
  INDEX,
  MANIFEST,
  many,
  type PackageSaves,
  startPackageSaves,
  zeros,
} from "./npm-saves.js";

const MARK_FILE = join(tmpdir(), `svc-package-mark-${randomBytes(6).toString("hex")}`);

const link = (path: string, linkpath: string, type: "SymbolicLink" | "Link"): ArchiveEntry => ({
  path,
  linkpath,
  type,
});

const bundlerProcesses = () =>
  execFileSync("ps", ["-o", "args", "--ppid", String(process.pid)], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes("bundler/child.js"));

describe("the archive of a package", () => {
  const HOSTILE_ARCHIVES: [title: string, words: RegExp, archive: () => Buffer][] = [
    [
      "a file above its folder",
      /a file with an unsafe path/,
      () => createArchive([MANIFEST, { path: "package/../../../tmp/x.js" }]),
    ],
    [
      "a file at an absolute path",
      /a file with an unsafe path/,
      () => createArchive([MANIFEST, { path: "/tmp/x.js" }]),
    ],
    [
      "a backslash in a path",
      /a file with an unsafe path/,
      () => createArchive([MANIFEST, { path: "package/..\\..\\x.js" }]),
    ],
    [
      "a symbolic link",
      /link or a device/,
      () => createArchive([MANIFEST, link("package/x.js", "/etc/passwd", "SymbolicLink")]),
    ],
    ["a hard link", /link or a device/, () => createArchive([MANIFEST, link("package/x.js", "/etc/passwd", "Link")])],
    ["more than 20,000 files", /more than 20000 files/, () => createArchive([MANIFEST, ...many(20_001)])],
    ["200 MB of zeros", /more than 64 MB/, () => zeros(208)],
    ["content that is no archive", /cannot be unpacked/, () => randomBytes(1_000)],
    ["no package.json", /contains no package\.json/, () => createArchive([INDEX])],
  ];
  const LARGE_ARCHIVES = ["more than 20,000 files", "200 MB of zeros"];
  for (const [title, words, archive] of HOSTILE_ARCHIVES) {
    const test = LARGE_ARCHIVES.includes(title) ? longTest : it;
    test(`with ${title} is rejected as a whole`, () => {
      expect(() => unpackPackageFiles(archive())).to.throw(words);
    });
  }

  it("is read if it is valid, with declarations and without source maps", () => {
    const files = unpackPackageFiles(
      createArchive([
        MANIFEST,
        INDEX,
        { path: "package/a.d.ts" },
        { path: "package/a.js.map" },
        { path: "package/lib", type: "Directory" },
      ]),
    );
    expect([...files.keys()]).to.deep.equal(["/package.json", "/index.js", "/a.d.ts"]);
  });
});

describe("a malicious package", () => {
  let saves: PackageSaves;
  let registry: TestRegistry;

  before(async () => {
    saves = await startPackageSaves();
    ({ registry } = saves);
  });
  afterEach(() => saves.clear());
  after(() => saves?.stop());

  const plain = (manifest: Record<string, unknown>): PublishedPackage => ({
    name: "evil",
    version: "1.0.0",
    files: { "index.js": "module.exports = 1" },
    manifest,
  });
  const REFUSED: [title: string, words: RegExp, published: () => PublishedPackage][] = [
    [
      "with a symbolic link",
      /link or a device/,
      () => evilPackage(link("package/index.js", "/etc/passwd", "SymbolicLink")),
    ],
    [
      "whose archive is not what the registry's integrity says",
      /does not match the integrity/,
      () => ({ ...evilPackage(INDEX), integrity: `sha512-${Buffer.alloc(64).toString("base64")}` }),
    ],
    [
      "whose integrity is none",
      /does not match the integrity/,
      () => ({ ...evilPackage(INDEX), integrity: "sha512-" }),
    ],
    ["with a licence that is not allowed", /has the licence WTFPL.*allows MIT, ISC/, () => plain({ license: "WTFPL" })],
    ["without a licence", /states no licence/, () => plain({ license: undefined })],
    [
      "that loads a file of this machine",
      /needs \/etc\/passwd/,
      () => evilPackageWithCode("module.exports = require('/etc/passwd')"),
    ],
    [
      "that loads a file upwards",
      /which neither the package nor its dependencies contain/,
      () => evilPackageWithCode("module.exports = require('../../../../../../proc/self/environ')"),
    ],
    [
      "whose entry is a file of this machine",
      /cannot be used/,
      () => ({ ...plain({ main: "../../../../../../etc/hostname" }), files: {} }),
    ],
  ];
  for (const [title, words, published] of [...REFUSED.slice(0, 3), ...sampleOf(REFUSED.slice(3), 0, 4)]) {
    it(`${title} is rejected, and nothing is written`, async () => {
      registry.publish(published());
      await saves.expectRefusal(words);
    });
  }

  it("with a part whose licence is not allowed is rejected, and the error names the part", async () => {
    registry.publish({ name: "copied", version: "2.0.0", manifest: { license: "WTFPL" }, files: { "index.js": "" } });
    const manifest = { license: "MIT", dependencies: { copied: "^2" } };
    const files = { "index.js": "module.exports = require('copied')" };
    registry.publish({ name: "evil", version: "1.0.0", manifest, files });
    await saves.expectRefusal(/copied@2\.0\.0 has the licence WTFPL.*allows MIT, ISC/);
  });

  it("has none of its scripts run", async () => {
    const touch = `touch ${MARK_FILE}`;
    const scripts = Object.fromEntries(
      ["preinstall", "install", "postinstall", "prepare", "prepack"].map((name) => [name, touch]),
    );
    const files = { "index.js": `require("child_process"); module.exports = 1`, "binding.gyp": "{}", "gypfile.js": "" };
    registry.publish({ name: "evil", version: "1.0.0", files, manifest: { scripts } });
    await saves.expectRefusal(/needs the Node modules child_process/);
    registry.publish({
      name: "evil",
      version: "1.0.1",
      files: { "index.js": "module.exports = 2" },
      manifest: { scripts, gypfile: true },
    });
    expect((await saves.save("evil@1.0.1")).http).to.equal(201);
    expect(existsSync(MARK_FILE)).to.equal(false);
  });

  it("leaves no process behind", async () => {
    registry.publish(evilPackageWithCode("this is no JavaScript"));
    await saves.expectRefusal(/cannot be bundled/);
    expect(bundlerProcesses()).to.deep.equal([]);
  });

  it("with names that every object inherits is resolved like any other", async () => {
    registry.publish({
      ...evilPackage(INDEX),
      manifest: { dependencies: JSON.parse('{"__proto__": "1", "constructor": "1", "toString": "*"}') },
    });
    await saves.expectRefusal(/does not exist in the registry|is not a valid name of a package/);
  });

  it("with dependencies whose names are paths is rejected before any of them is requested", async () => {
    const { requestedPaths } = registry;
    for (const name of ["../../-/whoami", "a/../../-/whoami", "a?b", "@a/b/c", "%2e%2e/x", "a b", "x*/alert(1)/*"]) {
      registry.publish({ ...evilPackage(INDEX), manifest: { license: "MIT", dependencies: { [name]: "*" } } });
      requestedPaths.length = 0;
      await saves.expectRefusal(/which is not a valid name of a package/);
      expect(requestedPaths).to.deep.equal(["/evil"]);
    }
  });

  it("of a registry that redirects to private addresses is not downloaded from there, and they get no token", async () => {
    const inside = await startRegistry();
    try {
      for (const host of [inside.url, "http://169.254.169.254", "https://127.0.0.1", "https://[::1]"]) {
        registry.replacementHandler = (request, response) =>
          void response.writeHead(302, { location: `${host}${request.url}` }).end();
        await saves.expectRefusal(/a host that is not allowed/);
      }
      registry.replacementHandler = null;
      const archive = createArchive([MANIFEST, INDEX]);
      registry.publish({ name: "evil", version: "1.0.0", archive });
      registry.replacementHandler = (_request, response) => {
        const dist = { tarball: `${inside.url}/-/evil/1.0.0.tgz`, integrity: "sha512-x" };
        const versions = { "1.0.0": { name: "evil", version: "1.0.0", dist } };
        response.end(JSON.stringify({ name: "evil", "dist-tags": { latest: "1.0.0" }, versions }));
      };
      await saves.expectRefusal(/does not use https/);
      expect(inside.requestedPaths).to.deep.equal([]);
    } finally {
      await inside.close();
    }
  });

  it("of a registry that redirects each request to the same URL is rejected with this reason", async () => {
    registry.replacementHandler = (request, response) =>
      void response.writeHead(302, { location: `${registry.url}${request.url}` }).end();
    await saves.expectRefusal(/the registry redirects the request too often/, 503);
  });

  const INVALID_BODIES: [title: string, body: string][] = [
    ["no JSON", "<html>"],
    ["a list", "[]"],
    [
      "versions that are none",
      '{"versions": {"../../x": {"version": "../../x", "dist": {"tarball": "https://example.com/a", "integrity": "sha512-x"}}}, "dist-tags": {"latest": "../../x"}}',
    ],
    [
      "an archive at a file",
      '{"versions": {"1.0.0": {"version": "1.0.0", "dist": {"tarball": "file:///etc/passwd", "integrity": "sha512-x"}}}, "dist-tags": {"latest": "1.0.0"}}',
    ],
    ["a version without an archive", '{"versions": {"1.0.0": {"version": "1.0.0"}}, "dist-tags": {"latest": "1.0.0"}}'],
    ["depths", `{"versions": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ];
  for (const [title, body] of INVALID_BODIES) {
    it(`of a registry that answers ${title} is rejected`, async () => {
      registry.replacementHandler = (_request, response) => void response.end(body);
      await saves.expectRefusal(/not JSON|no version|an invalid version number|no archive|does not use https/);
    });
  }
});
