import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { emptyDatabase, type FreshDatabase } from "../harness/postgres.js";
import { programEnvironment } from "../harness/program-environment.js";
import { longTest } from "../harness/samples.js";

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
  let database: FreshDatabase;
  let folder: string;
  let environment: Record<string, string>;
  let first: Awaited<ReturnType<typeof bootstrap>>;

  before(async () => {
    database = await emptyDatabase();
    folder = mkdtempSync(join(tmpdir(), "svc-bootstrap-"));
    environment = { DATABASE_URL: database.url, DATA_DIR: folder, PUBLIC_URL: "https://actions.example.com" };
    first = await bootstrap(environment);
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });
  const credentials = () => JSON.parse(readFileSync(JSON.parse(first.stdout).credentials, "utf8"));

  it("migrates an empty database and creates the first app", async () => {
    expect([first.code, first.stderr]).to.deep.equal([0, ""]);
    const expected = { baseUrl: "https://actions.example.com", organizationId: 1, appId: 1 };
    expect(credentials()).to.deep.include(expected);
  });

  longTest("creates the first app once; the second time it reports the existing one", async () => {
    const made = credentials();
    const second = await bootstrap(environment);
    expect(second).to.deep.equal({
      code: 1,
      stdout: "",
      stderr:
        "The database is not empty, so the command created nothing. Use an empty database, or sign in to the existing service.",
    });
    expect(credentials()).to.deep.equal(made);
  });

  longTest("asks for DATABASE_URL if it is missing", async () => {
    const { code, stderr } = await bootstrap({});
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Set DATABASE_URL\. .*$/);
  });
});
