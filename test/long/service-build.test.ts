/** Tests the build of `npm start`: its code is that of the complete build, and it compresses less. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, globSync, readFileSync, symlinkSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";

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

describe("the pages that are built for npm start", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-build-"));
    for (const path of ["src", "scripts", "package-lock.json", "tsconfig.json"])
      cpSync(join(PROJECT, path), join(folder, path), { recursive: true });
    symlinkSync(join(PROJECT, "node_modules"), join(folder, "node_modules"));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  /** Builds the pages. Returns which compressions each of the editor's large files and of the sign-in page's files has. */
  function build(...options: string[]) {
    execFileSync(process.execPath, ["scripts/build-web.mjs", ...options], { cwd: folder });
    const web = join(folder, "dist/web");
    const pages = JSON.parse(readFileSync(join(web, "pages.json"), "utf8"));
    const compressionsOf = (file: string) =>
      ["gz", "br"].filter((ending) => existsSync(join(web, `${file}.${ending}`)));
    return {
      editor: pages.studio.parts.editor.slice(0, 2).map(compressionsOf),
      signIn: compressionsOf(pages["sign-in"].script),
    };
  }

  it("have no Brotli for large files until the complete build adds it, and then keep it", () => {
    const small = ["gz", "br"];
    expect(build("--service")).to.deep.equal({ editor: [["gz"], ["gz"]], signIn: small });
    const complete = { editor: [small, small], signIn: small };
    expect([build(), build("--service")]).to.deep.equal([complete, complete]);
  });
});
