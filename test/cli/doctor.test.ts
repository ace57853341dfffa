/** Tests `npm run doctor` as a process, and its checks in this process on simulated machines with one fault each. */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Client } from "pg";
import { checkDatabase } from "../../src/cli/doctor/database.js";
import { formatDiagnostic } from "../../src/cli/doctor/diagnostic.js";
import { collectDiagnostics } from "../../src/cli/doctor/diagnostics.js";
import { checkDataDir, checkNodeVersion } from "../../src/cli/doctor/machine.js";
import { readConfig } from "../../src/config.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { programEnvironment } from "../harness/program-environment.js";
import { longTest } from "../harness/samples.js";

const PROGRAM = fileURLToPath(new URL("../../src/cli/doctor.js", import.meta.url));
const KEY = Buffer.alloc(32, 7).toString("base64");

/** Environment for `npm run doctor`: `environment`, and the variables of this process that locate Chromium. */
function environmentWith(environment: Record<string, string>): Record<string, string> {
  const { PUPPETEER_CACHE_DIR, CHROME_PATH } = process.env;
  return {
    ...(PUPPETEER_CACHE_DIR && { PUPPETEER_CACHE_DIR }),
    ...(CHROME_PATH && { CHROME_PATH }),
    ...environment,
  };
}

/** Runs the checks in this process and returns their output. A separate process would take two seconds, mostly to load modules. */
async function runChecks(environment: Record<string, string>): Promise<string> {
  return (await collectDiagnostics(environmentWith(environment)))
    .map((diagnostic) => `${formatDiagnostic(diagnostic)}\n`)
    .join("");
}

/** Runs the doctor as a process. @param prefix program and arguments that start the doctor with fewer permissions */
function runDoctor(
  environment: Record<string, string>,
  prefix: readonly string[] = [],
): Promise<{ code: number; stdout: string }> {
  const env = { ...programEnvironment(), ...environmentWith(environment) };
  return new Promise((resolve) => {
    const [command, ...args] = [...prefix, process.execPath, "--no-node-snapshot", PROGRAM];
    execFile(command!, args, { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout: stdout + stderr }),
    );
  });
}

describe("npm run doctor", function () {
  this.timeout(180_000);
  let database: FreshDatabase;
  let folder: string;
  let environment: Record<string, string>;
  before(async () => {
    database = await freshDatabase();
    folder = mkdtempSync(join(tmpdir(), "svc-doctor-"));
    environment = { DATABASE_URL: database.url, DATA_DIR: folder, DISK_FREE_MIN_MB: "1", ROLES: "api" };
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });

  it("reports nothing if all is well, and proves the browser's sandbox", async () => {
    const { code, stdout } = await runDoctor({ ...environment, ROLES: "api,scheduler,runner" });
    expect([code, stdout.includes("WRONG")], stdout).to.deep.equal([0, false]);
    for (const title of [
      "settings",
      "Node",
      "isolate",
      "DATA_DIR",
      "disk",
      "settings key",
      "packages of npm",
      "sandbox",
      "database",
      "rights",
      "clock",
      "database disk",
      "schema",
      "connections",
    ]) {
      expect(stdout).to.match(new RegExp(`^ok {5}${title}: `, "m"));
    }
    expect(stdout).to.match(/Nothing is wrong\.\n$/);
  });

  it("reports each fault with its remedy, and ends with code 1", async () => {
    writeFileSync(join(folder, "settings-key"), `${KEY}\n`);
    chmodSync(join(folder, "settings-key"), 0o644);
    const { code, stdout } = await runDoctor({ ...environment, DISK_FREE_MIN_MB: "1000000" });
    rmSync(join(folder, "settings-key"));
    expect(code).to.equal(1);
    expect(stdout).to.match(
      /^WRONG {2}disk: \d+ MB free under .*\n {7}-> free space: below 1000000 MB \(DISK_FREE_MIN_MB\), the service rejects uploads$/m,
    );
    expect(stdout).to.match(/^WRONG {2}settings key: others on this machine can read .*\n {7}-> chmod 600 /m);
    expect(stdout).to.match(/2 to fix\.\n$/);
  });

  it("names what the service rejects while the disk of DATA_DIR has too little space", async () => {
    const find = async (variables: Record<string, string>) =>
      (await checkDataDir(readConfig({ DATA_DIR: folder, ...variables }))).find(({ subject }) => subject === "disk")!;
    const low = { DISK_FREE_MIN_MB: "1000000" };
    expect((await find(low)).advice).to.equal(
      "free space: below 1000000 MB (DISK_FREE_MIN_MB), the service rejects uploads and other new data, and below half of this also new runs",
    );
    expect((await find({ ...low, DATABASE_URL: database.url })).advice).to.equal(
      "free space: below 1000000 MB (DISK_FREE_MIN_MB), the service rejects uploads",
    );
    expect((await find({ DISK_FREE_MIN_MB: "0" })).advice).to.equal(null);
  });

  longTest("recognizes a machine without user namespaces, on which npm packages are rejected", async () => {
    const none = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"';
    const prefix = ["unshare", "--user", "--map-root-user", "sh", "-c", none];
    const words =
      /^WRONG {2}packages of npm: this machine does not allow user namespaces.*\n {7}-> allow user namespaces/m;
    const strict = await runDoctor(environment, prefix);
    expect([strict.code, words.test(strict.stdout)], strict.stdout).to.deep.equal([1, true]);
    const open = await runDoctor({ ...environment, NPM_SANDBOX: "off" }, prefix);
    expect(open.stdout).to.match(
      /^WRONG {2}packages of npm: are bundled in a process with network access \(NPM_SANDBOX=off\)$/m,
    );
  });

  it("names an invalid variable and checks the rest", async () => {
    const stdout = await runChecks({ ...environment, PORT: "many" });
    expect(stdout).to.contain("PORT must be a whole number from 0 to 65535").and.to.contain("ok     isolate");
  });

  it("does not print the password of a database that does not respond", async () => {
    const stdout = await runChecks({
      ...environment,
      DATABASE_URL: "postgres://someone:a-password@127.0.0.1:1/none",
    });
    expect(stdout)
      .to.match(/^WRONG {2}database: does not respond \(ECONNREFUSED\)$/m)
      .and.to.not.contain("a-password");
  });

  it("reports if PostgreSQL allows fewer connections than the processes need", async () => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      await client.query(`ALTER DATABASE ${client.database} CONNECTION LIMIT 20`);
      const stdout = await runChecks({ ...environment, ROLES: "api" });
      expect(stdout).to.match(
        /^WRONG {2}connections: a process with these ROLES needs up to 24 connections, and PostgreSQL allows 20\n {7}-> raise max_connections/m,
      );
    } finally {
      await client.query(`ALTER DATABASE ${client.database} CONNECTION LIMIT -1`);
      await client.end();
    }
  });

  it("reports a difference above two seconds between this machine's clock and the database's", async () => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    const url = new URL(database.url);
    url.searchParams.set("options", "-c search_path=other_clock,pg_catalog,public");
    const { now: realNow } = Date;
    const time = realNow();
    const checkClockAhead = async (aheadMs: number) => {
      await client.query(
        `CREATE OR REPLACE FUNCTION other_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql
         RETURN to_timestamp(${time + aheadMs} / 1000.0)`,
      );
      Date.now = () => time;
      const diagnostics = await checkDatabase(readConfig({ ...environment, DATABASE_URL: url.href }));
      return diagnostics.map(formatDiagnostic).find((lines) => lines.includes(" clock: "));
    };
    const differenceText = "the clocks of this machine and of the database differ by at least";
    try {
      await client.query("CREATE SCHEMA other_clock");
      for (const aheadMs of [1_900, -1_900])
        expect(await checkClockAhead(aheadMs)).to.equal(`ok     clock: ${differenceText} 1900 ms`);
      for (const aheadMs of [2_100, -2_100])
        expect(await checkClockAhead(aheadMs)).to.contain(`WRONG  clock: ${differenceText} 2100 ms\n`);
    } finally {
      Date.now = realNow;
      await client.query("DROP SCHEMA other_clock CASCADE");
      await client.end();
    }
  });

  longTest("reports a difference between this machine's clock and the database's", async () => {
    const clockAheadCode = "const real = Date.now; Date.now = () => real() + 90_000";
    const { code, stdout } = await runDoctor({
      ...environment,
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(clockAheadCode)}`,
    });
    expect(code).to.equal(1);
    expect(stdout).to.match(
      /^WRONG {2}clock: the clocks of this machine and of the database differ by at least \d{5} ms/m,
    );
  });

  longTest("reports that another media store has the database's files", async () => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      await client.query("UPDATE media_store SET identity = 'another'");
      const stdout = await runChecks(environment);
      expect(stdout).to.match(/^WRONG {2}media store: .* does not contain the files of this database$/m);
      await client.query("UPDATE media_store SET identity = NULL");
      expect(await runChecks(environment)).to.match(/^ok {5}media store: /m);
    } finally {
      await client.end();
    }
  });

  longTest("reports that EGRESS_ADDRESS is no address of this machine", async () => {
    expect(await runChecks({ ...environment, EGRESS_ADDRESS: "192.0.2.7" })).to.match(
      /^WRONG {2}egress: EGRESS_ADDRESS 192\.0\.2\.7 is not an address of this machine\n {7}-> set EGRESS_ADDRESS to an address of this machine/m,
    );
    const right = await runChecks({ ...environment, EGRESS_ADDRESS: "127.0.0.1" });
    expect(right)
      .to.match(/^ok {5}egress: 127\.0\.0\.1 is an address of this machine$/m)
      .and.not.contain("WRONG");
  });

  longTest("reports that a proxy's X-Forwarded-For is ignored", async () => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      const living =
        "INSERT INTO instance (id, roles, lease_until, ignored_proxy) VALUES (gen_random_uuid(), '{api}', ";
      await client.query(`${living} now() - interval '1 minute', '10.0.0.8')`);
      expect(await runChecks(environment)).to.match(/^ok {5}proxy: /m);
      await client.query(`${living} now() + interval '5 minutes', '10.0.0.7')`);
      const stdout = await runChecks(environment);
      expect(stdout).to.match(/^WRONG {2}proxy: requests from 10\.0\.0\.7 have .*\n {7}-> set TRUST_PROXY /m);
    } finally {
      await client.query("DELETE FROM instance");
      await client.end();
    }
  });

  it("lists the data sources of users, and those with a hashed column but without isUsers", async () => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      expect(await runChecks(environment)).to.match(
        /^ok {5}app users: no data source contains app users \(isUsers\)$/m,
      );
      await client.query("INSERT INTO organization (id, name) OVERRIDING SYSTEM VALUE VALUES (900, 'of users')");
      await client.query("INSERT INTO app (id, organization_id, name) OVERRIDING SYSTEM VALUE VALUES (900, 900, 'a')");
      await client.query(
        `INSERT INTO data_source (app_id, organization_id, name, hashed_columns, is_users)
         SELECT app.id, organization_id, given.name, hashed::jsonb, users FROM app,
                (VALUES ('members', '["Password"]', true), ('quiet', '["Password"]', false), ('feedback', '[]', false))
                AS given (name, hashed, users)`,
      );
      const stdout = await runChecks(environment);
      expect(stdout).to.not.contain("WRONG");
      expect(stdout).to.match(
        /^ok {5}app users: in "members" of app \d+; "quiet" of app \d+ has a hashed column but is not isUsers: these entries cannot sign in on pages until an editor sets isUsers$/m,
      );
    } finally {
      await client.query("DELETE FROM organization");
      await client.end();
    }
  });

  it("recognizes wrong keys, a newer schema, and a dead scheduler", async () => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      await client.query("DELETE FROM settings_key");
      await client.query("INSERT INTO settings_key (fingerprint) VALUES ('0123456789abcdef')");
      await client.query("INSERT INTO migration (timestamp, name) VALUES (1, 'OfTomorrow1')");
      await client.query("INSERT INTO organization (name) VALUES ('o')");
      await client.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
      await client.query(
        `INSERT INTO action (app_id, name, code, active, environment, action_version, triggers, dependencies, assets, updated_at)
         VALUES (1, 'job', '', true, 'server', 'v3', '[]', '[]', '[]', now())`,
      );
      await client.query(
        "INSERT INTO schedule (action_id, app_id, frequency, next_tick) VALUES (1, 1, '0 4 * * *', now() - interval '2 minutes')",
      );
      await client.query(
        "INSERT INTO instance (id, roles, lease_until) VALUES (gen_random_uuid(), '{api}', now() + interval '1 minute')",
      );
      const stdout = await runChecks({ ...environment, SETTINGS_KEY: KEY });
      expect(stdout)
        .to.contain("WRONG  keys: cannot decrypt the settings")
        .and.to.contain(
          "WRONG  schema: the database's schema is of a newer release (it has the migration OfTomorrow1)",
        );
      expect(stdout).to.match(
        /^WRONG {2}schedules: a scheduled run has been due for 12\d s, but no scheduler has processed it$/m,
      );
    } finally {
      await client.end();
    }
  });
});

describe("the doctor's check of Node", () => {
  it("reports a version that is too old", () => {
    expect(checkNodeVersion("24.11.0").advice).to.equal(null);
    expect(checkNodeVersion("25.0.0").advice).to.equal(null);
    for (const old of ["24.10.9", "20.20.2"])
      expect(checkNodeVersion(old).advice).to.contain("use Node 24.11 or later");
  });
});
