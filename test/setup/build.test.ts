import { mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { importSetUpModule } from "./modules.js";

const { build, isBuildStale } = await importSetUpModule<{
  build(root: string, isServiceOnly?: boolean): Promise<void>;
  isBuildStale(root: string, isServiceOnly?: boolean): boolean;
}>("build");

const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
const COMPILER_OPTIONS = { target: "es2023", lib: ["es2023"], types: [], rootDir: ".", outDir: "dist" };

describe("the build of the set-up", () => {
  let root: string;

  function put(path: string, content: string): string {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return file;
  }

  /** Writes src/a.ts with a time in Unix milliseconds. The size never changes, so only another time makes the file count as changed. */
  function putSource(value: number, time = value): void {
    utimesSync(put("src/a.ts", `export const value = ${value};\n`), new Date(0), new Date(time));
  }

  function compiledValue(): string {
    return /value = (.*);/.exec(readFileSync(join(root, "dist/src/a.js"), "utf8"))![1]!;
  }

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-build-"));
    symlinkSync(join(PROJECT, "node_modules"), join(root, "node_modules"));
    put("tsconfig.json", JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ["src"], exclude: ["src/web"] }));
    put("tsconfig.service.json", JSON.stringify({ extends: "./tsconfig.json" }));
    put("src/web/tsconfig.json", JSON.stringify({ extends: "../../tsconfig.json", include: ["."], exclude: [] }));
    put("src/web/page.ts", "export {};\n");
    put("scripts/build-web.mjs", "");
  });

  afterEach(() => rm(root, { recursive: true, force: true }));

  for (const isServiceOnly of [false, true]) {
    const [kind, otherKind] = isServiceOnly ? ["the service", "everything"] : ["everything", "the service"];

    longTest(`of ${kind} writes all files again after a build of ${otherKind} has replaced them`, async () => {
      putSource(1);
      await build(root, isServiceOnly);
      putSource(2);
      await build(root, !isServiceOnly);
      const values = [compiledValue()];
      putSource(1, 3);
      await build(root, isServiceOnly);
      values.push(compiledValue());
      expect(values).to.deep.equal(["2", "1"]);
    });

    it(`of ${kind} compiles only changed files`, async () => {
      putSource(1);
      put("src/unchanged.ts", "export {};\n");
      await build(root, isServiceOnly);
      putSource(2);
      put("dist/src/unchanged.js", "not compiled again");
      await build(root, isServiceOnly);
      expect(readFileSync(join(root, "dist/src/unchanged.js"), "utf8")).to.equal("not compiled again");
      expect(compiledValue()).to.equal("2");
    });

    longTest(`is outdated after a build of ${kind} from other sources`, async () => {
      putSource(1);
      await build(root, !isServiceOnly);
      putSource(2);
      await build(root, isServiceOnly);
      putSource(1);
      expect([isBuildStale(root), isBuildStale(root, true)]).to.deep.equal([true, true]);
    });
  }

  longTest("is outdated after a build that failed, also if the earlier sources are back", async () => {
    putSource(1);
    await build(root);
    put("src/a.ts", "export const value: string = 2;\n");
    const failure = await build(root).catch((error: Error) => error.message);
    expect(failure).to.match(/failed with exit code/);
    putSource(1);
    expect(isBuildStale(root)).to.equal(true);
  });
});
