import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import * as tar from "tar";
import { importSetUpModule } from "./modules.js";

type Entry = Record<string, unknown>;
type LockEntry = { optional?: true; dev?: true; devOptional?: true };
type Machine = { platform: string; arch: string; libc: string };

const { arePackagesStale, ensurePackages } = await importSetUpModule<{
  arePackagesStale(root: string): boolean;
  ensurePackages(root: string, isServiceOnly?: boolean): Promise<void>;
}>("packages");
const { selectPackages } = await importSetUpModule<{
  selectPackages(packages: Record<string, Entry>, machine: Machine, isServiceOnly: boolean): string[];
}>("lock-file");
const { readFiles } = await importSetUpModule<{
  readFiles(archive: Buffer): Iterable<{ name: string; mode: number; content: Buffer }>;
}>("archive");

const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
/** Replacement for npm. This program writes a file that shows that npm was started. */
const INSTALLING_NPM = `#!/bin/sh
mkdir node_modules
echo npm > node_modules/installer.txt
`;
const LINUX = { platform: "linux", arch: "x64", libc: "glibc" };

describe("the installation of packages from npm's cache", () => {
  const { PATH, npm_config_cache: ownCache } = process.env;
  let root: string;

  function put(file: string, content: string | Buffer, mode = 0o644): void {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), content, { mode });
  }

  function pathInCache(integrity: string): string {
    const hash = Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
    return join("cache/_cacache/content-v2/sha512", hash.slice(0, 2), hash.slice(2, 4), hash.slice(4));
  }

  /** Puts an archive with these files into the cache. Returns the package's entry in a lock file. */
  function putArchive(name: string, files: Record<string, string>): { version: string; integrity: string } {
    for (const [file, content] of Object.entries(files)) put(`${name}/package/${file}`, content);
    const archive = gzipSync(
      tar.create({ cwd: join(root, name), sync: true, portable: true }, ["package"]).read() as Buffer,
    );
    const integrity = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
    put(pathInCache(integrity), archive);
    return { version: "1.0.0", integrity };
  }

  function putLock(packages: Record<string, Entry>): void {
    const dependencies = Object.fromEntries(Object.keys(packages).map((name) => [name, "1.0.0"]));
    put("package.json", JSON.stringify({ dependencies }));
    const entries = Object.entries(packages).map(([name, entry]) => [`node_modules/${name}`, entry]);
    put("package-lock.json", JSON.stringify({ packages: { "": { dependencies }, ...Object.fromEntries(entries) } }));
  }

  const installed = (file: string) => join(root, "node_modules", file);
  const wasNpmStarted = () => existsSync(installed("installer.txt"));

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-cached-packages-"));
    put("bin/npm", INSTALLING_NPM, 0o755);
    put(".npmrc", "");
    process.env["PATH"] = `${join(root, "bin")}${delimiter}${PATH}`;
    process.env["npm_config_cache"] = join(root, "cache");
  });

  afterEach(async () => {
    process.env["PATH"] = PATH;
    if (ownCache === undefined) delete process.env["npm_config_cache"];
    else process.env["npm_config_cache"] = ownCache;
    await rm(root, { recursive: true, force: true });
  });

  it("installs files and programs without npm, so that the next set-up has nothing to install", async () => {
    const deep = `${"folder/".repeat(30)}file.js`;
    const entry = putArchive("a", { "cli.js": "1", [deep]: "2", "index.d.ts": "3", empty: "" });
    putLock({ a: { ...entry, bin: { run: "cli.js" } } });
    await ensurePackages(root);
    expect(wasNpmStarted()).to.equal(false);
    const contents = ["a/cli.js", `a/${deep}`, "a/index.d.ts", "a/empty"].map((file) =>
      readFileSync(installed(file), "utf8"),
    );
    expect(contents).to.deep.equal(["1", "2", "3", ""]);
    expect(readlinkSync(installed(".bin/run"))).to.equal("../a/cli.js");
    expect(statSync(installed("a/cli.js")).mode & 0o111).to.equal(0o111);
    expect(arePackagesStale(root)).to.equal(false);
    expect(readdirSync(root).filter((name) => name.startsWith(".setup"))).to.deep.equal([]);
  });

  it("leaves out files that the service does not need", async () => {
    putLock({ a: putArchive("a", { "index.js": "", "index.d.ts": "", "index.js.map": "", "source.ts": "" }) });
    await ensurePackages(root, true);
    expect(readdirSync(installed("a"))).to.deep.equal(["index.js"]);
  });

  it("starts npm if the cache lacks an archive", async () => {
    const [a, b] = [putArchive("a", { "index.js": "a" }), putArchive("b", { "index.js": "b" })];
    await rm(join(root, pathInCache(b.integrity)));
    putLock({ a, b });
    await ensurePackages(root);
    expect(wasNpmStarted()).to.equal(true);
  });

  it("starts npm if an archive in the cache is damaged, and keeps nothing of it", async () => {
    const [a, b] = [putArchive("a", { "index.js": "a" }), putArchive("b", { "index.js": "b" })];
    put(pathInCache(b.integrity), readFileSync(join(root, pathInCache(a.integrity))));
    putLock({ a, b });
    await ensurePackages(root);
    expect([wasNpmStarted(), existsSync(installed("a"))]).to.deep.equal([true, false]);
  });

  it("writes no file outside of the package's folder", async () => {
    const { integrity } = putArchive("a", { "x.txt": "" });
    const block = Buffer.alloc(512);
    block.write("package/../../../outside.txt");
    block.write("0000644\0", 100);
    block.write("00000000000\0", 124);
    block.write("0", 156);
    const archive = gzipSync(Buffer.concat([block, Buffer.alloc(1024)]));
    const hash = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
    put(pathInCache(hash), archive);
    putLock({ a: { version: "1.0.0", integrity: hash }, b: { version: "1.0.0", integrity } });
    await ensurePackages(root);
    expect([wasNpmStarted(), existsSync(join(root, "outside.txt"))]).to.deep.equal([true, false]);
  });

  it("reads the size of a file from an extended header", () => {
    put("a/package/x.txt", "x".repeat(2000));
    const plain = tar.create({ cwd: join(root, "a"), sync: true, portable: true }, ["package/x.txt"]).read() as Buffer;
    const extended = Buffer.alloc(1024);
    const records = "13 size=2000\n".concat("19 path=package/y\n");
    plain.copy(extended, 0, 0, 512);
    extended.write("x", 156);
    extended.write(`${records.length.toString(8).padStart(11, "0")}\0`, 124);
    extended.write(records, 512);
    plain.write("00000000000\0", 124);
    const [file, ...others] = readFiles(Buffer.concat([extended, plain]));
    expect([file!.name, file!.content.length, others.length]).to.deep.equal(["package/y", 2000, 0]);
  });

  it("rejects an archive that ends within a file", () => {
    put("a/package/x.txt", "x".repeat(2000));
    const whole = tar.create({ cwd: join(root, "a"), sync: true, portable: true }, ["package"]).read() as Buffer;
    expect([...readFiles(whole)].map(({ name }) => name)).to.deep.equal(["package/x.txt"]);
    expect(() => [...readFiles(whole.subarray(0, 2048))]).to.throw("the archive is damaged");
  });

  for (const [platform, arch, libc] of [
    ["linux", "x64", "glibc"],
    ["linux", "arm64", "musl"],
    ["darwin", "arm64", ""],
  ] as const) {
    it(`selects every package of this project that is not optional, for ${platform} ${arch} ${libc}`, () => {
      const { packages } = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8"));
      const machine = { platform, arch, libc };
      for (const isServiceOnly of [true, false]) {
        const selected = selectPackages(packages, machine, isServiceOnly);
        const isRequired = ([path, { optional, dev, devOptional }]: [string, LockEntry]) =>
          path !== "" && !optional && !(isServiceOnly && (dev || devOptional));
        const required = Object.entries(packages as Record<string, LockEntry>).filter(isRequired);
        expect(selected).to.include.members(required.map(([path]) => path));
        expect(selected.filter((path) => packages[path].dev && isServiceOnly)).to.deep.equal([]);
        const native = platform === "linux" ? `${platform}${libc === "musl" ? "musl" : ""}` : platform;
        expect(selected).to.include(`node_modules/@img/sharp-${native}-${arch}`);
        expect(selected).to.include(`node_modules/@esbuild/${platform}-${arch}`);
      }
    });
  }

  it("leaves the installation to npm if package.json and the lock file differ", async () => {
    putLock({ a: putArchive("a", { "index.js": "a" }) });
    put("package.json", JSON.stringify({ dependencies: { a: "2.0.0" } }));
    await ensurePackages(root);
    expect(wasNpmStarted()).to.equal(true);
  });

  it("selects the packages for this machine with their dependencies and peers, each from the nearest folder", () => {
    const packages = {
      "": {
        dependencies: { a: "1" },
        optionalDependencies: { mac: "1", musl: "1", gnu: "1" },
        devDependencies: { d: "1" },
      },
      "node_modules/a": { dependencies: { b: "1" }, peerDependencies: { p: "1", absent: "1" } },
      "node_modules/a/node_modules/b": { dependencies: { c: "1" } },
      "node_modules/b": {},
      "node_modules/c": {},
      "node_modules/p": {},
      "node_modules/mac": { optional: true, os: ["darwin"], dependencies: { m: "1" } },
      "node_modules/m": { optional: true },
      "node_modules/musl": { optional: true, os: ["linux"], libc: ["musl"] },
      "node_modules/gnu": { optional: true, os: ["linux"], cpu: ["!arm64"], libc: ["glibc"] },
      "node_modules/d": { dev: true, dependencies: { b: "1" } },
    };
    const names = (isServiceOnly: boolean) =>
      selectPackages(packages, LINUX, isServiceOnly).map((path) => path.replaceAll("node_modules/", ""));
    expect(names(true)).to.have.members(["a", "a/b", "c", "p", "gnu"]);
    expect(names(false)).to.have.members(["a", "a/b", "c", "p", "gnu", "d", "b"]);
  });
});
