import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { emptyDatabase } from "../harness/postgres.js";
import { programEnvironment } from "../harness/program-environment.js";

const PROGRAM = fileURLToPath(new URL("../../src/cli/bootstrap.js", import.meta.url));

function bootstrap(environment: Record<string, string>): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const env = { ...programEnvironment(), ...environment };
    execFile(process.execPath, ["--no-node-snapshot", PROGRAM], { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout: stdout.trim(), stderr: stderr.trim() }),
    );
  });
}

describe("npm run bootstrap", () => {
  it("migrates an empty database and creates the first app once; the second time it reports the existing one", async () => {
    const database = await emptyDatabase();
    const folder = mkdtempSync(join(tmpdir(), "svc-bootstrap-"));
    const environment = { DATABASE_URL: database.url, DATA_DIR: folder, PUBLIC_URL: "https://actions.example.com" };
    const first = await bootstrap(environment);
    expect(first).to.deep.include({ code: 0, stderr: "" });
    const { credentials } = JSON.parse(first.stdout);
    const made = JSON.parse(readFileSync(credentials, "utf8"));
    expect(made).to.deep.include({ baseUrl: "https://actions.example.com", organizationId: 1, appId: 1 });
    const second = await bootstrap(environment);
    expect(second).to.deep.equal({ code: 1, stdout: "", stderr: "The database is not empty: nothing was created." });
    expect(JSON.parse(readFileSync(credentials, "utf8"))).to.deep.equal(made);
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });

  it("asks for DATABASE_URL if it is missing", async () => {
    const { code, stderr } = await bootstrap({});
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Set DATABASE_URL\. .*$/);
  });
});
