/** Tests PostgreSQL on a full disk: a small file system with the service's database. Mounting this file system needs root or sudo. */
import { execFile, execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Client } from "pg";
import { pino } from "pino";
import { migrateDatabase } from "../../src/data/database.js";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { createFirstCredentials } from "../harness/service.js";
import { until } from "../harness/until.js";

const DOCTOR_PROGRAM = fileURLToPath(new URL("../../src/cli/doctor.js", import.meta.url));
const DISK_SIZE = "96m";
/** Switches off the service's own check of free space, which would reject writes before the disk is full. */
const ENVIRONMENT = { ROLES: "api,scheduler", DISK_FREE_MIN_MB: "0" };

const runAsRoot = (command: string, ...args: string[]) =>
  process.getuid?.() === 0 ? execFileSync(command, args) : execFileSync("sudo", [command, ...args]);

/** Fills the disk of the folder with one file. Returns a function that removes this file. */
function fillDisk(folder: string): () => void {
  const file = join(folder, "filler");
  const handle = openSync(file, "w");
  const part = Buffer.alloc(4_096, 1);
  try {
    for (;;) writeSync(handle, part);
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).to.equal("ENOSPC");
  } finally {
    closeSync(handle);
  }
  return () => rmSync(file);
}

describe("a full disk of PostgreSQL", function () {
  this.timeout(180_000);
  let folder: string;
  let disk: string;
  let postgres: EmbeddedPostgres;
  let service: ServiceProcess;
  let url: string;
  let databaseUrl: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-full-"));
    chmodSync(folder, 0o755);
    disk = join(folder, "disk");
    mkdirSync(disk);
    runAsRoot("mount", "-t", "tmpfs", "-o", `size=${DISK_SIZE},mode=777`, "tmpfs", disk);
    const log = pino({ level: "silent" });
    postgres = await startEmbeddedPostgres({ dataDir: join(folder, "postgres"), log });
    const location = join(disk, "space");
    mkdirSync(location);
    const { uid, gid } = statSync(join(folder, "postgres/postgres"));
    chownSync(location, uid, gid);
    const admin = new Client({ connectionString: postgres.url });
    await admin.connect();
    await admin.query(`CREATE TABLESPACE small LOCATION '${location}'`);
    await admin.query("CREATE DATABASE on_small TABLESPACE small");
    await admin.end();
    databaseUrl = Object.assign(new URL(postgres.url), { pathname: "/on_small" }).href;
    await migrateDatabase(databaseUrl);
    const dataDir = join(folder, "service");
    mkdirSync(dataDir);
    await createFirstCredentials(databaseUrl, dataDir);
    service = startProcess({ ...ENVIRONMENT, DATABASE_URL: databaseUrl, DATA_DIR: dataDir });
    url = await service.ready();
  });
  after(async () => {
    await service?.clean();
    await postgres?.stop();
    runAsRoot("umount", disk);
    rmSync(folder, { recursive: true, force: true });
  });

  const ready = async () => {
    const response = await fetch(`${url}/health/ready`);
    return { status: response.status, text: await response.text() };
  };
  const doctor = () =>
    new Promise<string>((resolve) => {
      const { PATH, PUPPETEER_CACHE_DIR = "" } = process.env;
      const env = { ...ENVIRONMENT, PATH, PUPPETEER_CACHE_DIR, DATABASE_URL: databaseUrl, DATA_DIR: service.dataDir };
      execFile(process.execPath, ["--no-node-snapshot", DOCTOR_PROGRAM], { env }, (_error, stdout) => resolve(stdout));
    });

  it("is reported by /health/ready, by responses, metrics and the doctor, and all are healthy when there is space again", async () => {
    const { appId, tokens } = service.credentials();
    const save = (name: string) =>
      fetch(`${url}/v1/apps/${appId}/settings`, {
        method: "POST",
        headers: { "auth-token": tokens.editor, "content-type": "application/json" },
        body: JSON.stringify({ [name]: "x".repeat(30_000) }),
      });
    const metric = async () => /^svc_database_disk_full (\d)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1];

    expect(await doctor()).to.match(/^ok {5}database disk: can be written$/m);
    const free = fillDisk(disk);
    let number = 0;
    // Writes first use the free pages that tables still have, so the test repeats the write until the service refuses it.
    const refused = await until(async () => {
      number += 1;
      const response = await save(`filler${number}`);
      return response.status === 503 ? response : null;
    }, 60_000);
    expect(refused.headers.get("retry-after")).to.match(/^\d+$/);
    expect(await refused.text()).to.contain("the database's disk is full");
    expect(await ready()).to.deep.include({ status: 503 });
    expect((await ready()).text).to.contain("its disk is full");
    expect(await metric()).to.equal("1");
    expect(await doctor()).to.match(
      /^WRONG {2}database disk: is full \(.*No space left on device\)\n {7}-> free space on the disk of PostgreSQL$/m,
    );

    free();
    await until(async () => (await ready()).status === 200, 60_000);
    expect((await save("after")).status).to.equal(200);
    expect(await metric()).to.equal("0");
    expect(await doctor()).to.match(/^ok {5}database disk: can be written$/m);
  });
});
