/** What a hostile package or registry tries at a save: nothing of it runs, escapes, stays, or keeps the service waiting. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { archiveOf, type Entry, type Published, startRegistry, type TestRegistry } from "../harness/npm-registry.js";
import { startTestService, type TestService } from "../harness/service.js";

const MARK = join(tmpdir(), `svc-package-mark-${randomBytes(6).toString("hex")}`);
const MANIFEST = {
  path: "package/package.json",
  content: JSON.stringify({ name: "evil", version: "1.0.0", main: "index.js" }),
};
const INDEX = { path: "package/index.js", content: "module.exports = 1" };

/** An archive of one file that is written without being held. */
function zeros(megabytes: number): Buffer {
  const block = Buffer.alloc(2 ** 20);
  const [plain] = [archiveOf([MANIFEST, INDEX])];
  // Members of gzip stand one after the other; so do those of tar before its end.
  const tar = gzipSync(Buffer.concat(Array.from({ length: 16 }, () => block)), { level: 9 });
  return Buffer.concat([...Array.from({ length: megabytes / 16 }, () => tar), plain!]);
}

const evil = (...entries: Entry[]): Published => ({
  name: "evil",
  version: "1.0.0",
  archive: archiveOf([MANIFEST, ...entries]),
});
const link = (path: string, linkpath: string, type: "SymbolicLink" | "Link"): Entry => ({ path, linkpath, type });
const many = (count: number): Entry[] =>
  Array.from({ length: count }, (_, at) => ({ path: `package/${at}.js`, content: "" }));

/** Processes that this one has started to bundle. */
const bundlers = () =>
  execFileSync("ps", ["-o", "args", "--ppid", String(process.pid)], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes("bundler/child.js"));

describe("A hostile package", () => {
  let registry: TestRegistry;
  let service: TestService;

  before(async () => {
    registry = await startRegistry();
    const environment = {
      NPM_PACKAGES: "on",
      NPM_REGISTRY: registry.url,
      NPM_TOKEN: "registry-secret",
      NPM_LICENSES: "MIT,ISC",
    };
    service = await startTestService({ ...environment, ROLES: "api" });
  });
  afterEach(async () => {
    registry.instead = null;
    registry.remove("evil");
    await service.db.query("DELETE FROM action");
    await service.db.query("DELETE FROM kept_script");
  });
  after(async () => {
    await service?.stop();
    await registry?.close();
  });

  async function save(dependency = "evil") {
    const data = { name: "victim", code: "async function execute() {}", dependencies: [dependency] };
    const { http, body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data });
    return { http, status: body.status, error: body.error as string, action: body.action };
  }

  async function refused(words: RegExp, http = 400) {
    const answer = await save();
    expect({ http: answer.http, status: answer.status }, answer.error).to.deep.equal({
      http,
      status: "DEPENDENCY_UNRESOLVED",
    });
    expect(answer.error)
      .to.match(words)
      .and.to.match(/"evil"/);
    const [kept] = await service.db.query(
      "SELECT (SELECT count(*)::int FROM action) AS actions, (SELECT count(*)::int FROM kept_script WHERE package = 'evil') AS scripts",
    );
    expect(kept).to.deep.equal({ actions: 0, scripts: 0 });
  }

  const REFUSED: [what: string, words: RegExp, published: () => Published][] = [
    [
      "with a file above its folder",
      /outside the package/,
      () => evil(INDEX, { path: "package/../../../../../tmp/x.js", content: "1" }),
    ],
    [
      "with a file at an absolute path",
      /outside the package|cannot/,
      () => evil(INDEX, { path: "/tmp/x.js", content: "1" }),
    ],
    [
      "with a backslash in a path",
      /outside the package/,
      () => evil(INDEX, { path: "package/..\\..\\x.js", content: "1" }),
    ],
    ["with a symbolic link", /link or a device/, () => evil(link("package/index.js", "/etc/passwd", "SymbolicLink"))],
    ["with a hard link", /link or a device/, () => evil(INDEX, link("package/x.js", "/etc/passwd", "Link"))],
    ["of 100,000 files", /more than 20000 files/, () => evil(INDEX, ...many(100_000))],
    ["that unpacks to 200 MB", /more than 64 MB/, () => ({ name: "evil", version: "1.0.0", archive: zeros(208) })],
    [
      "that is no archive",
      /cannot be unpacked/,
      () => ({ name: "evil", version: "1.0.0", archive: randomBytes(1_000) }),
    ],
    [
      "whose archive is not what the registry's integrity says",
      /not what its integrity says/,
      () => ({ ...evil(INDEX), integrity: `sha512-${Buffer.alloc(64).toString("base64")}` }),
    ],
    ["whose integrity is none", /not what its integrity says/, () => ({ ...evil(INDEX), integrity: "sha512-" })],
    [
      "with a licence that is not allowed",
      /has the licence WTFPL.*allows MIT, ISC/,
      () => ({
        name: "evil",
        version: "1.0.0",
        files: { "index.js": "module.exports = 1" },
        manifest: { license: "WTFPL" },
      }),
    ],
    [
      "without a licence",
      /states no licence/,
      () => ({
        name: "evil",
        version: "1.0.0",
        files: { "index.js": "module.exports = 1" },
        manifest: { license: undefined },
      }),
    ],
    [
      "that loads a file of this machine",
      /needs \/etc\/passwd/,
      () => evil({ path: "package/index.js", content: "module.exports = require('/etc/passwd')" }),
    ],
    [
      "that loads a file upwards",
      /which it does not list/,
      () =>
        evil({ path: "package/index.js", content: "module.exports = require('../../../../../../proc/self/environ')" }),
    ],
    [
      "whose entry is a file of this machine",
      /cannot be used/,
      () => ({ name: "evil", version: "1.0.0", manifest: { main: "../../../../../../etc/hostname" } }),
    ],
    [
      "that comes to more than 5 MB",
      /5 MB is the most/,
      () =>
        evil({
          path: "package/index.js",
          content: `module.exports = ${JSON.stringify(randomBytes(3 * 2 ** 20).toString("hex"))}`,
        }),
    ],
    [
      "that nests so deep that no parser follows",
      /cannot be|takes more/,
      () =>
        evil({ path: "package/index.js", content: `module.exports = ${"[".repeat(200_000)}${"]".repeat(200_000)}` }),
    ],
  ];
  for (const [what, words, published] of REFUSED) {
    it(`${what} is refused, and nothing is written`, async () => {
      registry.publish(published());
      await refused(words);
    });
  }

  it("has none of its scripts run", async () => {
    const touch = `touch ${MARK}`;
    const scripts = Object.fromEntries(
      ["preinstall", "install", "postinstall", "prepare", "prepack"].map((name) => [name, touch]),
    );
    const files = { "index.js": `require("child_process"); module.exports = 1`, "binding.gyp": "{}", "gypfile.js": "" };
    registry.publish({ name: "evil", version: "1.0.0", files, manifest: { scripts } });
    await refused(/needs Node's child_process/);
    registry.publish({
      name: "evil",
      version: "1.0.1",
      files: { "index.js": "module.exports = 2" },
      manifest: { scripts, gypfile: true },
    });
    expect((await save()).http).to.equal(201);
    expect(existsSync(MARK)).to.equal(false);
  });

  it("leaves no process behind", async () => {
    registry.publish(evil({ path: "package/index.js", content: "this is no JavaScript" }));
    await refused(/cannot be bundled/);
    expect(bundlers()).to.deep.equal([]);
  });

  it("that names things of every object is resolved like any other", async () => {
    registry.publish({
      ...evil(INDEX),
      manifest: { dependencies: JSON.parse('{"__proto__": "1", "constructor": "1", "toString": "*"}') },
    });
    await refused(/is no package of the registry|no package of the registry/);
  });

  it("of a registry that leads to addresses inside is not fetched from there, and they get no token", async () => {
    const inside = await startRegistry();
    try {
      for (const host of [inside.url, "http://169.254.169.254", "https://127.0.0.1", "https://[::1]"]) {
        registry.instead = (request, response) =>
          void response.writeHead(302, { location: `${host}${request.url}` }).end();
        await refused(/may not be reached/);
      }
      registry.instead = null;
      const archive = archiveOf([MANIFEST, INDEX]);
      registry.publish({ name: "evil", version: "1.0.0", archive });
      registry.instead = (_request, response) => {
        const dist = { tarball: `${inside.url}/-/evil/1.0.0.tgz`, integrity: "sha512-x" };
        const versions = { "1.0.0": { name: "evil", version: "1.0.0", dist } };
        response.end(JSON.stringify({ name: "evil", "dist-tags": { latest: "1.0.0" }, versions }));
      };
      await refused(/without TLS/);
      expect(inside.asked).to.deep.equal([]);
    } finally {
      await inside.close();
    }
  });

  const ODD: [what: string, body: string][] = [
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
  for (const [what, body] of ODD) {
    it(`of a registry that answers ${what} is refused`, async () => {
      registry.instead = (_request, response) => void response.end(body);
      await refused(/no JSON|no version|is none|no archive|without TLS/);
    });
  }
});
