/** Tests the caches of checked and of built code: an import checks and builds before its transaction, and reads the results during it. */
import { expect } from "chai";
import { MANIFEST_MAX_BYTES } from "../../src/limits.js";
import { CodeChecker } from "../../src/operations/actions/code-checker.js";
import { SourceBuilds } from "../../src/operations/actions/source-builds.js";
import { type DependencyResolver, NO_RESOLVED_DEPENDENCIES } from "../../src/operations/packages/packages.js";
import { ACTIONS_PER_MANIFEST_MAX } from "../../src/rules/manifest.js";

const createCodes = (count: number, app: number): string[] =>
  Array.from({ length: count }, (_, index) => `async function execute() { return "${app}, ${index}"; }`);

describe("the cache of checked code", () => {
  it("has the results of the largest manifest while another app checks as many codes", async () => {
    let compilations = 0;
    const checker = new CodeChecker(async () => {
      compilations += 1;
    });
    const checkAll = async (app: number, codes: readonly string[]) => {
      for (const code of codes) await checker.check(app, code);
      return compilations;
    };
    const [manifest, others] = [1, 2].map((app) => createCodes(ACTIONS_PER_MANIFEST_MAX, app)) as [string[], string[]];
    expect(await checkAll(1, manifest)).to.equal(ACTIONS_PER_MANIFEST_MAX);
    expect(await checkAll(2, others)).to.equal(2 * ACTIONS_PER_MANIFEST_MAX);
    expect(await checkAll(1, manifest)).to.equal(2 * ACTIONS_PER_MANIFEST_MAX);
  });

  it("keeps the results that were used last", async () => {
    const compiled: string[] = [];
    const checker = new CodeChecker(async (code) => void compiled.push(code));
    const checkAll = async (codes: readonly string[]) => {
      for (const code of codes) await checker.check(1, code);
    };
    const [first, second, third] = [1, 2, 3].map((app) => createCodes(ACTIONS_PER_MANIFEST_MAX, app)) as string[][];
    await checkAll([...first!, ...second!, ...first!, ...third!]);
    compiled.length = 0;
    await checkAll(first!);
    expect(compiled).to.deep.equal([]);
  });
});

describe("the cache of built code", () => {
  it("has the builds of a manifest of the maximum size", async () => {
    let builds = 0;
    // A bundle and its source map are together about 1.4 times as long as the source.
    const packages: Pick<DependencyResolver, "bundleSource" | "buildImports"> = {
      buildImports: () => ({}),
      bundleSource: async ({ files, entry }) => {
        builds += 1;
        return { code: files[entry]!, map: "m".repeat(0.4 * files[entry]!.length) };
      },
    };
    const sourceBuilds = new SourceBuilds({ packages: packages as DependencyResolver });
    const count = 320;
    const buildAll = async () => {
      for (let index = 0; index < count; index += 1) {
        const file = `async function execute() { return ${index}; } //`.padEnd(MANIFEST_MAX_BYTES / count, "x");
        const source = { language: "javascript", files: { "action.js": file } };
        const { fault } = await sourceBuilds.addBuiltCode(1, { source }, null, NO_RESOLVED_DEPENDENCIES);
        expect(fault).to.equal(null);
      }
      return builds;
    };
    expect(await buildAll()).to.equal(count);
    expect(await buildAll()).to.equal(count);
  });
});
