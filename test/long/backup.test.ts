/**
 * Backs up a gigabyte of rows and files during writes, with little memory, and restores it into every installed version of PostgreSQL. Also
 * restores files into a bucket, and databases of older releases.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Client } from "pg";
import { readConfig } from "../../src/config.js";
import { migrateSchema } from "../../src/data/database.js";
import { MIGRATIONS } from "../../src/data/migrations.js";
import { startService } from "../../src/service.js";
import { allAnswers, backUp, fillService, KEY, restoreTo } from "../backup/support.js";
import { findInstalledVersions, startPostgresVersion } from "../harness/debian-postgres.js";
import { emptyDatabase } from "../harness/postgres.js";
import { startS3 } from "../harness/s3.js";
import { startTestService, type TestService } from "../harness/service.js";
import { mediaOf, noise } from "../media/support.js";

const MB = 2 ** 20;
const ROWS_MB = 700;
const FILES_MB = 300;
const FILE_MB = 50;
/** Memory limit of the backup process in MB. Node needs about half of this limit to load the service's code. */
const MEMORY_MAX_MB = 320;

/** Runs a command of the service. Returns the JSON in the last line of its output, and its peak memory in MB. @throws Error if it fails */
async function runCommand(name: string, args: string[], environment: Record<string, string>) {
  const program = fileURLToPath(new URL(`../../src/cli/${name}.js`, import.meta.url));
  const { PATH } = process.env;
  const child = spawn(process.execPath, ["--no-node-snapshot", program, ...args], { env: { PATH, ...environment } });
  let [stdout, stderr, peak] = ["", "", 0];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const watch = setInterval(() => {
    try {
      // A process that has ended but still has a process entry reports no memory.
      const found = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
      peak = Math.max(peak, Number(found ?? 0) / 1024);
    } catch {
      // The process has ended since its last check.
    }
  }, 100);
  const [code] = await once(child, "close");
  clearInterval(watch);
  if (code !== 0) throw new Error(stderr);
  return { summary: JSON.parse(stdout.trim().split("\n").at(-1)!), peak };
}

const SELECT_CONTENT_SUMS = `
  SELECT (SELECT count(*)::int FROM execution_log) AS entries, (SELECT sum(hashtext(data::text)::bigint) FROM execution_log) AS sum,
         (SELECT count(*)::int FROM data_source_entry) AS rows, (SELECT sum(hashtext(doc::text)::bigint) FROM data_source_entry) AS docs`;

async function readContentSums(url: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client
    .query(SELECT_CONTENT_SUMS)
    .then(({ rows }) => rows[0])
    .finally(() => client.end());
}

async function readAllAnswers(databaseUrl: string, dataDir: string, token: string): Promise<Record<string, string>> {
  const service = await startService(
    readConfig({
      ...{ PORT: "0", DATABASE_URL: databaseUrl, DATA_DIR: dataDir, LOG_LEVEL: "silent", NPM_PACKAGES: "off" },
      ROLES: "api",
    }),
  );
  return allAnswers(service.url, token).finally(() => service.stop());
}

describe("a backup of a gigabyte", function () {
  this.timeout(1_800_000);
  let service: TestService;
  let folder: string;
  let file: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-backup-size-"));
    file = join(folder, "backup");
    writeFileSync(join(folder, "key"), (KEY as { bytes: Buffer }).bytes.toString("base64"));
    service = await startTestService({ ROLES: "api", INTAKE_QUOTA_MB: "0", LOG_MAX_MB: "0", DISK_FREE_MIN_MB: "0" });
    await fillService(service);
    // Each row has about a kilobyte. A separate client, which has no statement timeout, inserts the rows.
    const client = new Client({ connectionString: service.databaseUrl });
    await client.connect();
    await client.query(`
      CREATE FUNCTION pg_temp.noise(n int) RETURNS text LANGUAGE sql AS
        $$ SELECT repeat(string_agg(md5(random()::text || n || i), ''), 2) FROM generate_series(1, 16) AS i $$;
      INSERT INTO data_source_entry (app_id, data_source_id, data)
        SELECT 1, 1, json_build_object('Seat', n, 'Text', pg_temp.noise(n)) FROM generate_series(1, ${ROWS_MB * 512}) AS n;
      INSERT INTO execution_log (app_id, task_id, run_id, type, data)
        SELECT 1, 1, n, 'app.task.completed', json_build_object('result', pg_temp.noise(n))
          FROM generate_series(1, ${ROWS_MB * 512}) AS n;
      UPDATE data_source_tally SET entries = (SELECT count(*) FROM data_source_entry)`);
    await client.end();
    const media = mediaOf(service);
    for (let n = 0; n < FILES_MB / FILE_MB; n += 1) await media.upload(`file ${n}`, noise(FILE_MB * MB));
  });
  after(async () => {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("uses little memory while the service writes, and has the state of one moment", async () => {
    let over = false;
    let sent = 0;
    const failed: number[] = [];
    const write = async () => {
      while (!over) {
        const body = { type: "order.made", data: { sent } };
        const { http } = await service.rest("POST", `/v1/apps/${service.appId}/logs`, { body });
        if (http >= 300) failed.push(http);
        sent += 1;
      }
    };
    const writing = write();
    const environment = { DATABASE_URL: service.databaseUrl, DATA_DIR: service.dataDir };
    const startedAt = performance.now();
    const made = await runCommand("backup", [file, "--key-file", join(folder, "key")], environment).finally(() => {
      over = true;
    });
    await writing;
    const seconds = (performance.now() - startedAt) / 1_000;
    process.stderr.write(
      `      ${Math.round(statSync(file).size / MB)} MB in ${seconds.toFixed(1)} s, ${Math.round(made.peak)} MB of memory, ${sent} writes meanwhile\n`,
    );
    expect(failed).to.deep.equal([]);
    expect(sent).to.be.greaterThan(10);
    expect(made.summary.files).to.be.greaterThan(FILES_MB / FILE_MB);
    expect(made.peak).to.be.within(1, MEMORY_MAX_MB);
  });

  const versions = findInstalledVersions();
  if (versions.length === 0)
    process.stderr.write("not run, because no PostgreSQL of Debian is installed: the restore into another version\n");
  for (const version of versions) {
    it(`is restored into PostgreSQL ${version} with little memory, and the service responds as before`, async () => {
      const targetServer = await startPostgresVersion(version);
      const dataDir = join(folder, `data-${version}`);
      try {
        const environment = { DATABASE_URL: targetServer.url, DATA_DIR: dataDir };
        const startedAt = performance.now();
        const restored = await runCommand("restore", [file, "--key-file", join(folder, "key")], environment);
        const seconds = (performance.now() - startedAt) / 1_000;
        process.stderr.write(`      ${seconds.toFixed(1)} s, ${Math.round(restored.peak)} MB of memory\n`);
        expect(restored.peak).to.be.within(1, MEMORY_MAX_MB);
        expect(await readContentSums(targetServer.url)).to.deep.equal(await readContentSums(service.databaseUrl));
        const answers = await readAllAnswers(targetServer.url, dataDir, service.tokens.editor);
        expect(answers).to.deep.equal(await allAnswers(service.url, service.tokens.editor));
      } finally {
        await targetServer.stop();
      }
    });
  }
});

describe("a small backup", function () {
  this.timeout(300_000);
  const KEYS = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-backup-kinds-"));
    Object.assign(process.env, KEYS);
  });
  after(() => {
    for (const name of Object.keys(KEYS)) delete process.env[name];
    rmSync(folder, { recursive: true, force: true });
  });

  it("reads files from a bucket, and is restored into a bucket that has other files", async () => {
    const s3 = await startS3();
    const bucket = `s3://media/one?endpoint=${s3.url}`;
    const service = await startTestService({ ROLES: "api", MEDIA_URL: bucket });
    const targetDatabase = await emptyDatabase();
    try {
      writeFileSync(join(folder, "key"), Buffer.alloc(32, 5).toString("base64"));
      const media = mediaOf(service);
      const contents = noise(9 * MB);
      const { id } = await media.upload("in a bucket", contents);
      const from = { DATABASE_URL: service.databaseUrl, DATA_DIR: service.dataDir, MEDIA_URL: bucket, ...KEYS };
      const to = { ...from, DATABASE_URL: targetDatabase.url, DATA_DIR: join(folder, "bucket") };
      const args = [join(folder, "bucket-backup"), "--key-file", join(folder, "key")];
      expect((await runCommand("backup", args, from)).summary.files).to.equal(1);
      expect((await runCommand("restore", args, to)).summary.files).to.equal(1);
      expect(existsSync(join(folder, "bucket", "media", "incoming"))).to.equal(true);
      const config = { PORT: "0", ...to, LOG_LEVEL: "silent", NPM_PACKAGES: "off", ROLES: "api" };
      const restored = await startService(readConfig(config));
      const answer = await fetch(`${restored.url}${media.root}/files/${id}/contents`, {
        headers: { "auth-token": service.tokens.editor },
      });
      expect(Buffer.from(await answer.arrayBuffer()).equals(contents)).to.equal(true);
      await restored.stop();
    } finally {
      await service.stop();
      await targetDatabase.drop();
      await s3.stop();
    }
  });

  for (const last of ["Foundation1763600000000", "KeptScripts1763600140000", "BoundsChecked1763600180100"]) {
    it(`of a database whose last migration was ${last} is restored with the current schema`, async () => {
      const [old, targetDatabase] = [await emptyDatabase(), await emptyDatabase()];
      try {
        const time = (name: string) => Number(name.slice(-13));
        await migrateSchema(
          old.url,
          MIGRATIONS.filter(({ name }) => time(name) <= time(last)),
        );
        const client = new Client({ connectionString: old.url });
        await client.connect();
        await client.query("INSERT INTO organization (name) SELECT 'o' || n FROM generate_series(1, 7) AS n");
        await client.query("INSERT INTO app (organization_id, name) VALUES (1, 'a')");
        await client.end();
        const [path, dataDir] = [join(folder, last), join(folder, `old-${last}`)];
        mkdirSync(dataDir);
        writeFileSync(join(dataDir, "settings-key"), `${Buffer.alloc(32, 9).toString("base64")}\n`);
        await backUp({ databaseUrl: old.url, dataDir }, path);
        await restoreTo({ url: targetDatabase.url, dataDir }, path);
        const there = new Client({ connectionString: targetDatabase.url });
        await there.connect();
        const { rows } = await there.query(
          "SELECT (SELECT count(*)::int FROM migration) AS n, (SELECT max(id)::int FROM organization) AS last",
        );
        expect(rows[0]).to.deep.equal({ n: MIGRATIONS.length, last: 7 });
        expect((await there.query("INSERT INTO organization (name) VALUES ('next') RETURNING id")).rows[0].id).to.equal(
          8,
        );
        await there.end();
      } finally {
        await old.drop();
        await targetDatabase.drop();
      }
    });
  }
});
