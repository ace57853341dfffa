/** Starts PgBouncer in transaction mode in front of a PostgreSQL server. Tests skip it where PgBouncer is not installed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { until } from "./until.js";

const PROGRAM = "/usr/sbin/pgbouncer";

export function hasPgbouncer(): boolean {
  try {
    accessSync(PROGRAM, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export interface ConnectionPooler {
  /** Returns the URL by which clients reach the database at `url` through PgBouncer. */
  urlThroughPooler(url: string): string;
  stop(): Promise<void>;
}

async function isAnswering(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Starts PgBouncer for the server of `url`. It opens few connections to the server, so that client sessions have to share them. */
export async function startPgbouncer(url: string): Promise<ConnectionPooler> {
  const { hostname, port, username, password } = new URL(url);
  const folder = mkdtempSync(join(tmpdir(), "svc-pgbouncer-"));
  const poolerPort = await freePort();
  writeFileSync(join(folder, "users"), `"${username}" "${password}"\n`);
  writeFileSync(
    join(folder, "ini"),
    `[databases]
* = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${poolerPort}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, "users")}
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
admin_users = ${username}
`,
  );
  chmodSync(folder, 0o755);
  // PgBouncer refuses to run as root. In this case, it runs under the account `nobody`.
  const account = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child: ChildProcess = spawn(PROGRAM, ["-q", ...account, join(folder, "ini")], { stdio: "ignore" });
  const gone = once(child, "exit");
  const urlThroughPooler = (target: string) => Object.assign(new URL(target), { host: `127.0.0.1:${poolerPort}` }).href;
  await until(() => isAnswering(urlThroughPooler(url)));
  return {
    urlThroughPooler,
    async stop() {
      child.kill("SIGKILL");
      await gone;
      rmSync(folder, { recursive: true });
    },
  };
}
