/** Tests that the build of `npm start`, which checks no types, writes the same code as the complete build. */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
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
