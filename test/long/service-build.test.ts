/**
 * Tests that the build of `npm start` writes the same code as the complete build. Also tests the compression of the pages, and builds after
 * changes.
 */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { expect } from "chai";

/** Maximum compressed size of the editor's files in bytes: three seconds at 1.6 Mbit/s. */
const EDITOR_MAX_BYTES = 600 * 1000;
const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
/** Declaration that the compiler adds if it does not see the type of a global, such as `Buffer`. Nothing uses it. */
const UNUSED_DECLARATION = /^var _a;\n/m;

describe("the build of the service", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-build-"));
    const compiler = join(PROJECT, "node_modules/.bin/tsc");
    execFileSync(compiler, ["-p", join(PROJECT, "tsconfig.service.json"), "--outDir", folder]);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  it("writes the same code as the complete build", () => {
    const codeOf = (root: string, file: string) =>
      readFileSync(join(root, file), "utf8").replace(UNUSED_DECLARATION, "");
    const files = globSync("**/*.js", { cwd: folder });
    const different = files.filter((file) => codeOf(folder, file) !== codeOf(join(PROJECT, "dist"), file));
    expect(different).to.deep.equal([]);
    expect(files).to.include.members(["src/main.js", "src/data/app.js", "ormconfig.js"]);
  });

  it("writes all modules of the complete build, except the modules of the pages, which tests import", () => {
    const built = globSync("{src,migrations}/**/*.{js,json}", { cwd: join(PROJECT, "dist") });
    const modules = built.filter((file) => !file.startsWith("src/web/"));
    expect(modules.filter((file) => !existsSync(join(folder, file)))).to.deep.equal([]);
  });
});

describe("the built pages", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-build-"));
    for (const path of ["src", "scripts", "package-lock.json", "tsconfig.json"])
      cpSync(join(PROJECT, path), join(folder, path), { recursive: true });
    symlinkSync(join(PROJECT, "node_modules"), join(folder, "node_modules"));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  /** Builds the pages. Returns the size of the editor's files, compressed by Brotli. */
  function buildPages(...options: string[]) {
    execFileSync(process.execPath, ["scripts/build-web.mjs", ...options], { cwd: folder });
    const web = join(folder, "dist/web");
    const { studio } = JSON.parse(readFileSync(join(web, "pages.json"), "utf8"));
    return studio.parts.editor.reduce((sum: number, file: string) => sum + statSync(join(web, `${file}.br`)).size, 0);
  }

  it("are compressed less without --smallest, but a build without it keeps files that --smallest has compressed", () => {
    const [fastBytes, smallestBytes, repeatedBytes] = [buildPages(), buildPages("--smallest"), buildPages()];
    expect(fastBytes / smallestBytes).to.be.within(1.05, 1.2);
    expect(smallestBytes).to.be.within(1, EDITOR_MAX_BYTES);
    expect(repeatedBytes).to.equal(smallestBytes);
  });

  function readTimes(): Map<string, number> {
    const files = globSync("{assets,client}/**/*.{js,mjs,css,gz,br}", { cwd: join(folder, "dist/web") });
    return new Map(files.map((file) => [file, statSync(join(folder, "dist/web", file)).mtimeMs]));
  }

  it("are bundled again only if their sources have changed", () => {
    buildPages();
    const before = readTimes();
    buildPages();
    expect(readTimes()).to.deep.equal(before);
    appendFileSync(join(folder, "src/web/runtime/client.ts"), "console.log('added by test');\n");
    buildPages();
    const changed = [...readTimes()].filter(([file, time]) => before.get(file) !== time).map(([file]) => file);
    expect(changed).to.include.members(["client/svc.js", "client/svc.js.gz", "client/svc.js.br"]);
    expect(changed.filter((file) => file.includes("graphiql"))).to.deep.equal([]);
    const script = readFileSync(join(folder, "dist/web/client/svc.js"), "utf8");
    expect(script).to.include("added by test");
    expect(gunzipSync(readFileSync(join(folder, "dist/web/client/svc.js.gz"))).toString()).to.equal(script);
  });

  it("keep no file of an earlier version, and are built again after a build that failed", () => {
    const page = join(folder, "src/web/sign-in/page.ts");
    const scripts = () => globSync("dist/web/assets/sign-in-*.js", { cwd: folder });
    const original = readFileSync(page);
    const [first] = scripts();
    appendFileSync(page, "const = 1;\n");
    expect(() => buildPages()).to.throw();
    expect(scripts()).to.deep.equal([first]);
    writeFileSync(page, `${original}console.log("added by test");\n`);
    buildPages();
    expect(scripts()).to.have.length(1).and.not.include(first);
    writeFileSync(page, original);
    buildPages();
    expect(scripts()).to.deep.equal([first]);
  });

  it("keep no file of earlier pages after a change of a worker whose path all pages contain", () => {
    const worker = join(folder, "src/web/studio/actions/code-worker.ts");
    const original = readFileSync(worker);
    buildPages();
    const before = [...readTimes().keys()];
    appendFileSync(worker, "console.log('added by test');\n");
    buildPages();
    writeFileSync(worker, original);
    buildPages();
    expect([...readTimes().keys()].sort()).to.deep.equal(before.sort());
  });

  it("are complete again after a file was deleted, and after the records were written in part", () => {
    const web = join(folder, "dist/web");
    const script = readFileSync(join(web, "client/svc.js"));
    rmSync(join(web, "client/svc.js"));
    buildPages();
    expect(readFileSync(join(web, "client/svc.js"))).to.deep.equal(script);
    writeFileSync(join(web, "bundles.json"), '{"bundles":[');
    buildPages();
    expect(readFileSync(join(web, "client/svc.js"))).to.deep.equal(script);
  });
});
