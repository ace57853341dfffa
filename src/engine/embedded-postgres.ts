/** A PostgreSQL server of our own under a data folder. Knows folders, ports and passwords; no table, no migration. */
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Logger } from "pino";
import { createClient } from "../postgres.js";
import { accountFor, giveTo } from "./embedded-postgres/account.js";
import { findBinaries } from "./embedded-postgres/binaries.js";
import {
  type ClusterContext,
  clusterExists,
  createCluster,
  resetPassword,
  SUPERUSER,
} from "./embedded-postgres/cluster.js";
import { acquireOwnerLock, lockHolder } from "./embedded-postgres/owner-lock.js";
import { type Postmaster, readPidFile, startPostmaster, stopOrphan } from "./embedded-postgres/postmaster.js";

const DATABASE = "svc";

export interface EmbeddedPostgres {
  /** postgres:// with its password; the same as in the file `database-url` of the data folder (mode 0600). */
  url: string;
  /** The same by the server's socket, where the path of that is no longer than one may be. */
  socketUrl: string;
  /** Resolves when the server ends without having been asked to: what it served is to be started anew. */
  failed: Promise<void>;
  /** Rolls open transactions back and waits for every process to end. May be called twice. */
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** Absolute path; made when missing. The cluster is its folder `postgres`. */
  dataDir: string;
  log: Logger;
  /** Server settings on top; `fsync: "off"` also makes the first start cheaper. For tests. */
  settings?: Record<string, string>;
}

const clusterOf = (dataDir: string) => join(dataDir, "postgres");
const lockOf = (dataDir: string) => join(dataDir, "service.lock");
const urlFileOf = (dataDir: string) => join(dataDir, "database-url");

/** In bytes, on every system. A socket saves each statement a twentieth of what both sides do for it over TCP. */
const SOCKET_PATH_MAX = 103;

function socketUrlOf(url: string, { port, socketPath }: Postmaster): string {
  if (Buffer.byteLength(socketPath) > SOCKET_PATH_MAX) return url;
  return url.replace(`@127.0.0.1:${port}/`, `@${encodeURIComponent(dirname(socketPath))}:${port}/`);
}

function savedUrl(dataDir: string): URL | null {
  try {
    return new URL(readFileSync(urlFileOf(dataDir), "utf8").trim());
  } catch {
    return null;
  }
}

function saveUrl(dataDir: string, password: string, port: number): string {
  const url = `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${DATABASE}`;
  const draft = `${urlFileOf(dataDir)}.new`;
  writeFileSync(draft, `${url}\n`, { mode: 0o600 });
  renameSync(draft, urlFileOf(dataDir));
  return url;
}

/** The password that opens the cluster: the saved one, or a new one where there is no cluster or no file. */
async function prepareCluster(context: ClusterContext, dataDir: string, sync: boolean): Promise<string> {
  const saved = savedUrl(dataDir)?.password;
  const exists = clusterExists(context.clusterDir);
  if (exists) giveTo(context.account, context.clusterDir);
  if (exists && saved) return saved;
  const password = randomBytes(24).toString("hex");
  await (exists ? resetPassword(context, password) : createCluster(context, password, sync));
  return password;
}

async function ensureDatabase(url: string): Promise<void> {
  const maintenance = new URL(url);
  maintenance.pathname = "/postgres";
  const client = createClient(maintenance.href);
  await client.connect();
  try {
    const found = await client.query("SELECT FROM pg_database WHERE datname = $1", [DATABASE]);
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end();
  }
}

/**
 * Starts PostgreSQL on `dataDir/postgres`, on a socket there and on a free port of 127.0.0.1, after stopping one that a killed service left.
 * @throws EmbeddedPostgresError one line: the folder is another process's, the platform has no PostgreSQL, or its own reason
 */
export async function startEmbeddedPostgres({
  dataDir,
  log,
  settings = {},
}: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const root = realpathSync(dataDir);
  const clusterDir = clusterOf(root);
  const lock = acquireOwnerLock(lockOf(root), dataDir);
  try {
    const account = accountFor(clusterDir);
    const context = { binaries: findBinaries(account), account, clusterDir };
    await stopOrphan(clusterDir, log);
    const password = await prepareCluster(context, root, settings["fsync"] !== "off");
    const postmaster = await startPostmaster(context, settings, log);
    const url = saveUrl(root, password, postmaster.port);
    await ensureDatabase(url).catch(async (error) => {
      await postmaster.stop();
      throw error;
    });
    const { failed, stop } = postmaster;
    return { url, socketUrl: socketUrlOf(url, postmaster), failed, stop: () => stop().finally(lock.release) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The URL of the server that a living service runs on `dataDir`; null when there is none, or it is not ready yet. */
export async function attachEmbeddedPostgres(dataDir: string): Promise<string | null> {
  if (lockHolder(lockOf(dataDir)) === null) return null;
  const url = savedUrl(dataDir);
  const running = readPidFile(clusterOf(dataDir));
  return url && running?.ready && Number(url.port) === running.port ? url.href : null;
}
