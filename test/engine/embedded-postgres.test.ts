import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { type Logger, pino } from "pino";
import { findRunningEmbeddedPostgres, startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";
import { isRunning, postmasterPid, query, usePostgresOwners } from "../harness/postgres-owners.js";
import { longTest } from "../harness/samples.js";
import { until } from "../harness/until.js";

const silent = pino({ level: "silent" });

describe("the embedded PostgreSQL", () => {
  const cluster = usePostgresOwners();

  it("serves UTF-8 in the C locale, with a password, and leaves no process when it stops", async () => {
    const postgres = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log: silent });
    const pid = postmasterPid(cluster.dataDir);
    const refusalOf = (url: string) =>
      query(url, "SELECT 1").then(
        () => "let in",
        (error: Error) => error.message,
      );
    expect(
      await query(
        postgres.url,
        `SELECT current_setting('server_encoding') AS encoding, datcollate AS collate, current_database() AS name,
              current_setting('synchronous_commit') AS sync, current_setting('fsync') AS fsync,
              current_setting('unix_socket_directories') AS sockets, current_setting('listen_addresses') AS listen
         FROM pg_database WHERE datname = current_database()`,
      ),
    ).to.deep.equal([
      { encoding: "UTF8", collate: "C", name: "svc", sync: "on", fsync: "on", sockets: ".", listen: "127.0.0.1" },
    ]);
    // The file with the URL is readable only by its owner, because the URL contains the password.
    const file = join(cluster.dataDir, "database-url");
    expect(readFileSync(file, "utf8").trim()).to.equal(postgres.url);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    // Only the owner can enter the folder of the socket. The socket requires the same password.
    expect(statSync(join(cluster.dataDir, "postgres")).mode & 0o077).to.equal(0);
    expect(
      await query(postgres.socketUrl, "SELECT inet_server_addr() AS address, current_database() AS name"),
    ).to.deep.equal([{ address: null, name: "svc" }]);
    for (const url of [postgres.url, postgres.socketUrl]) {
      expect(await refusalOf(url.replace(/:[^:@]+@/, ":wrong@"))).to.match(/password authentication failed/);
    }
    // Two calls stop the server only once.
    await Promise.all([postgres.stop(), postgres.stop()]);
    expect(isRunning(pid)).to.equal(false);
    expect(await findRunningEmbeddedPostgres(cluster.dataDir)).to.equal(null);
  });

  longTest("is found by a second process, which cannot start it too: one line has the first one's pid", async () => {
    const first = await cluster.start();
    expect(await findRunningEmbeddedPostgres(cluster.dataDir)).to.equal(first.printed.url);
    const second = await cluster.start();
    expect(second.printed.error).to.match(new RegExp(`in use by process ${first.child.pid}\\b`));
    expect(second.printed.error).to.not.include("\n");
    expect(await query(first.printed.url!, "SELECT 1 AS one")).to.deep.equal([{ one: 1 }]);
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

  it("waits at a stop for a client that is about to close its connection, and logs no warning", async () => {
    const warnings: string[] = [];
    const log: Logger = pino({ level: "warn" }, { write: (line: string) => void warnings.push(line) });
    const postgres = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log });
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    await Promise.all([client.query("SELECT pg_sleep(0.3)").finally(() => client.end()), postgres.stop()]);
    expect(warnings).to.deep.equal([]);
  });

  it("stops although a client keeps its connection", async () => {
    const postgres = await startEmbeddedPostgres({ dataDir: cluster.dataDir, log: silent });
    const pid = postmasterPid(cluster.dataDir);
    const client = new Client({ connectionString: postgres.url });
    const errors: Error[] = [];
    client.on("error", (error) => errors.push(error));
    await client.connect();
    await postgres.stop();
    expect(isRunning(pid)).to.equal(false);
    await until(() => errors.length > 0);
  });
});
