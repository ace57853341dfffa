/**
 * Tests `npm run dev` in a copy of the sources. A change restarts the service. After a syntax error, the service keeps the old code. After
 * a type error, it restarts, and the error is printed.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { until } from "../harness/until.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const COMPILE_LIMIT_MS = 180_000;

describe("npm run dev", function () {
  this.timeout(600_000);
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-dev-"));
    const files = execFileSync("git", ["ls-files", "-z"], { cwd: ROOT, encoding: "utf8" }).split("\0").filter(Boolean);
    // Keeps modification times, so that the compiled files count as up to date.
    for (const file of [...files, "dist"]) {
      cpSync(join(ROOT, file), join(folder, file), { recursive: true, preserveTimestamps: true });
    }
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("restarts the service after a change that compiles, keeps it running after one that does not, and checks types", async () => {
    const env = { ...process.env, PORT: "0", DATA_DIR: join(folder, ".data") };
    const dev = spawn(process.execPath, ["scripts/dev.mjs"], { cwd: folder, env });
    let output = "";
    for (const stream of [dev.stdout, dev.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
    const starts = () => [...output.matchAll(/"msg":"ready"/g)].length;
    try {
      await until(() => starts() === 1, COMPILE_LIMIT_MS);
      const file = join(folder, "src/limits.ts");
      appendFileSync(file, "export const ADDED_BY_TEST = 1;\n");
      await until(() => starts() === 2, COMPILE_LIMIT_MS);
      const validSource = readFileSync(file, "utf8");
      appendFileSync(file, "export const = 1;\n");
      await until(() => output.includes("the service is not restarted"), COMPILE_LIMIT_MS);
      expect(starts()).to.equal(2);
      writeFileSync(file, `${validSource}export const FAULTY: number = 'text';\n`);
      await until(() => starts() === 3, COMPILE_LIMIT_MS);
      await until(() => output.includes("is not assignable to type 'number'"), COMPILE_LIMIT_MS);
      await until(() => output.includes("the service runs with this code"), COMPILE_LIMIT_MS);
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${output}`);
    } finally {
      dev.kill("SIGTERM");
    }
    expect(await once(dev, "exit")).to.deep.equal([0, null]);
  });
});
