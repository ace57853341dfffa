/** Starts PostgreSQL servers of the versions that Debian's packages install, each in its own folder. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { until } from "./until.js";

const POSTGRES_FOLDER = "/usr/lib/postgresql";

export function findInstalledVersions(): number[] {
  if (!existsSync(POSTGRES_FOLDER)) return [];
  const found = readdirSync(POSTGRES_FOLDER).filter((name) => existsSync(join(POSTGRES_FOLDER, name, "bin/initdb")));
  return found.map(Number).sort((a, b) => a - b);
}

/** Returns the account for the server, because PostgreSQL refuses to run as root; null if this process is not root. */
function postgresAccount(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const row = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((line) => line.startsWith("postgres:"));
  const [, , uid, gid] = row!.split(":");
  return { uid: Number(uid), gid: Number(gid) };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function createDatabase(url: string, database: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query(`CREATE DATABASE ${database}`);
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

export interface Server {
  /** URL of an empty database. */
  url: string;
  stop(): Promise<void>;
}

/**
 * Starts a server with an empty database, in a new folder.
 * @param bin folder of the server's programs; by default, Debian's folder of this version
 * @param moreSettings additional settings of the server, such as `max_connections=20`
 */
export async function startPostgresVersion(
  version: number,
  bin = join(POSTGRES_FOLDER, String(version), "bin"),
  moreSettings: readonly string[] = [],
): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), `svc-postgres-${version}-`));
  const account = postgresAccount();
  if (account) chownSync(folder, account.uid, account.gid);
  const options = { ...account, cwd: folder, env: { LC_ALL: "C" }, stdio: "ignore" } as const;
  const data = join(folder, "data");
  execFileSync(
    join(bin, "initdb"),
    ["-D", data, "-U", "svc", "--auth=trust", "--encoding=UTF8", "--locale=C", "-N"],
    options,
  );
  const port = await freePort();
  const settings = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${folder}`,
    "fsync=off",
    ...moreSettings,
  ];
  const child = spawn(join(bin, "postgres"), ["-D", data, ...settings.flatMap((setting) => ["-c", setting])], options);
  const serverExit = once(child, "exit");
  const base = `postgres://svc@127.0.0.1:${port}`;
  await until(() => createDatabase(`${base}/postgres`, "svc"));
  return {
    url: `${base}/svc`,
    async stop() {
      child.kill("SIGINT");
      await serverExit;
      rmSync(folder, { recursive: true });
    },
  };
}
