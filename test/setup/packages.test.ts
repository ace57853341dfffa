import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect } from "chai";
import { importSetUpModule, urlOfSetUpModule } from "./modules.js";

const { ensurePackages } = await importSetUpModule<{ ensurePackages(root: string): Promise<void> }>("packages");

/** Replacement for npm that records its working directory. It writes no `.package-lock.json`, so the next set-up installs again. */
const INSTALLING_NPM = `#!/bin/sh
pwd >> ../folders.txt
mkdir node_modules
echo new > node_modules/content.txt
`;

/** Script that installs packages into the folder in its first argument, and prints the message of an error. */
const INSTALL = `
  const { ensurePackages } = await import("${urlOfSetUpModule("packages")}");
  await ensurePackages(process.argv[1]).catch((error) => console.log(error.message));
`;
/** Shell script that mounts the `node_modules` of the folder in $0 on itself, and runs its other arguments as a command. */
const WITH_MOUNT = 'mount --bind "$0/node_modules" "$0/node_modules" && exec "$@"';

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

  for (const [title, npm, message] of [
    ["fails", "#!/bin/sh\nexit 1\n", /^`npm ci .*` failed with exit code 1/],
    [
      "installs no folder",
      "#!/bin/sh\n",
      /^cannot replace node_modules: ENOENT.*; if it is a mount, run `npm ci` yourself$/,
    ],
  ] as const) {
    it(`keeps the old packages if npm ${title}`, async () => {
      put("bin/npm", npm);
      const failure = await ensurePackages(root).catch((error: Error) => error.message);
      expect(failure).to.match(message);
      expect([existsSync(join(root, "node_modules")), installedContent()]).to.deep.equal([true, "old"]);
    });
  }

  it("keeps the packages of a mounted node_modules, and names the remedy", function () {
    if (process.platform === "darwin") this.skip(); // macOS has no `unshare`, with which the test mounts a folder without root rights.
    const install = [process.execPath, "--input-type=module", "--eval", INSTALL, root];
    const withMount = ["--user", "--map-root-user", "--mount", "sh", "-c", WITH_MOUNT, root, ...install];
    const { stdout } = spawnSync("unshare", withMount, { encoding: "utf8" });
    expect(stdout).to.match(/^cannot replace node_modules: EBUSY.*; if it is a mount, run `npm ci` yourself$/m);
    expect(installedContent()).to.equal("old");
  });
});
