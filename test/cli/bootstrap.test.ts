import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Client } from "pg";
import { emptyDatabase, type FreshDatabase, freshDatabase } from "../harness/postgres.js";
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

  longTest("creates nothing the second time, and says that the database is not empty", async () => {
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

  it("creates nothing if it cannot write the file of the tokens; the next call creates both", async () => {
    const fresh = await freshDatabase();
    const dataDir = join(folder, "blocked");
    const path = join(dataDir, "credentials.json");
    mkdirSync(path, { recursive: true });
    const client = new Client({ connectionString: fresh.url });
    await client.connect();
    try {
      const call = { ...environment, DATABASE_URL: fresh.url, DATA_DIR: dataDir };
      const { code, stdout, stderr } = await bootstrap(call);
      expect([code, stdout]).to.deep.equal([1, ""]);
      expect(stderr)
        .to.match(
          /^the service could not write the tokens of the first app to .*, so it did not create the app: EISDIR.*$/,
        )
        .and.to.contain(path);
      expect((await client.query("SELECT FROM organization")).rowCount).to.equal(0);
      expect(readdirSync(dataDir)).to.not.include("credentials.json.draft");
      rmdirSync(path);
      expect((await bootstrap(call)).code).to.equal(0);
      expect(Object.keys(JSON.parse(readFileSync(path, "utf8")).tokens)).to.have.length(5);
      expect((await client.query("SELECT FROM organization")).rowCount).to.equal(1);
    } finally {
      await client.end();
      await fresh.drop();
    }
  });

  longTest("asks for DATABASE_URL if it is missing", async () => {
    const { code, stderr } = await bootstrap({});
    expect(code).to.equal(1);
    expect(stderr).to.match(/^Set DATABASE_URL\. .*$/);
  });
});
