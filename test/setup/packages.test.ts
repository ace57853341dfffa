import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect } from "chai";
import { importSetUpModule } from "./modules.js";

const { ensurePackages } = await importSetUpModule<{ ensurePackages(root: string): Promise<void> }>("packages");

/** Replacement for npm. It appends its folder to a file, and installs a package without npm's record, so that the next set-up installs again. */
const INSTALLING_NPM = `#!/bin/sh
pwd >> ../folders.txt
mkdir node_modules
echo new > node_modules/content.txt
`;

describe("the installation of packages by the set-up", () => {
  const path = process.env["PATH"];
  let root: string;

  function put(name: string, content: string): void {
    const file = join(root, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, 0o755);
  }

  const installedContent = () => readFileSync(join(root, "node_modules/content.txt"), "utf8").trim();

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-packages-"));
    for (const name of ["package.json", ".npmrc"]) put(name, "");
    put("package-lock.json", JSON.stringify({ packages: { a: { version: "1.0.0" } } }));
    put("node_modules/content.txt", "old");
    put("bin/npm", INSTALLING_NPM);
    process.env["PATH"] = `${join(root, "bin")}${delimiter}${path}`;
  });

  afterEach(async () => {
    process.env["PATH"] = path;
    await rm(root, { recursive: true, force: true });
  });

  it("uses a new folder each time, because the npm of a killed set-up may still write to the old one", async () => {
    await ensurePackages(root);
    await ensurePackages(root);
    const folders = readFileSync(join(root, "folders.txt"), "utf8").trim().split("\n");
    expect([folders.length, new Set(folders).size]).to.deep.equal([2, 2]);
  });

  it("replaces node_modules, and removes its folder and those of killed set-ups", async () => {
    for (const name of [".setup.packages", ".setup.packages-killed"])
      put(`${name}/node_modules/content.txt`, "partial");
    await ensurePackages(root);
    expect(installedContent()).to.equal("new");
    expect(readdirSync(root).filter((name) => name.startsWith(".setup"))).to.deep.equal([]);
  });

  it("installs into a checkout without packages", async () => {
    await rm(join(root, "node_modules"), { recursive: true });
    await ensurePackages(root);
    expect(installedContent()).to.equal("new");
  });
});
