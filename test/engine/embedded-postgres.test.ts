import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type Logger, pino } from "pino";
import { attachEmbeddedPostgres, startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import { isRunning, postgresOwners, postmasterPid, query } from "../harness/postgres-owners.js";
import { until } from "../harness/until.js";

const silent = pino({ level: "silent" });

describe("the embedded PostgreSQL", () => {
  const cluster = postgresOwners();

  it("serves UTF-8 in the C locale, with commits on disk before they are acknowledged", async () => {
    const postgres = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log: silent });
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
    const postgres = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log: silent });
    const file = join(cluster.dataDir, "database-url");
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
    const postgres = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log: silent });
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
    expect(statSync(join(cluster.dataDir, "postgres")).mode & 0o077).to.equal(0);
  });

  it("leaves no process behind when it stops, and stops once however often it is asked", async () => {
    const postgres = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log: silent });
    const pid = postmasterPid(cluster.dataDir);
    await query(postgres.url, "SELECT 1");
    await Promise.all([postgres.stop(), postgres.stop()]);
    expect(isRunning(pid)).to.equal(false);
    expect(await attachEmbeddedPostgres(cluster.dataDir)).to.equal(null);
  });

  it("is found by a second process while it serves", async () => {
    const { said } = await cluster.start();
    expect(await attachEmbeddedPostgres(cluster.dataDir)).to.equal(said.url);
  });

  it("refuses a second owner in one line that names the first one's pid", async () => {
    const first = await cluster.start();
    const second = await cluster.start();
    expect(second.said.error).to.match(new RegExp(`in use by process ${first.child.pid}\\b`));
    expect(second.said.error).to.not.include("\n");
    expect(await query(first.said.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
  });

  it("logs that a statement failed, never the statement or a value in it", async () => {
    const lines: string[] = [];
    const log: Logger = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
    const postgres = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log });
    await query(postgres.url, "CREATE TABLE t (id text PRIMARY KEY); INSERT INTO t VALUES ('hush-1')");
    for (const sql of ["INSERT INTO t VALUES ('hush-1')", "SELECT 'hush-2'::int", "SELECT hush3 FROM t"]) {
      await query(postgres.url, sql).catch(() => {});
    }
    await until(() => lines.filter((line) => line.includes('"severity":"ERROR"')).length === 3);
    await postgres.stop();
    expect(lines.join("")).to.include('"sqlState":"23505"').and.not.include("hush");
  });
});
