/** Starts and stops the embedded PostgreSQL server in the data folder. */
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Logger } from "pino";
import { createClient } from "../postgres.js";
import { changeFolderOwner, chooseClusterAccount } from "./embedded-postgres/account.js";
import { preparePostgresBinaries } from "./embedded-postgres/binaries.js";
import {
  createPostgresCluster,
  hasPostgresCluster,
  type PostgresClusterContext,
  resetSuperuserPassword,
  SUPERUSER,
} from "./embedded-postgres/cluster.js";
import { acquireDataFolderLock, findDataFolderLockHolder } from "./embedded-postgres/owner-lock.js";
import {
  type Postmaster,
  readPostmasterPidFile,
  startPostmaster,
  stopOrphanedPostmaster,
} from "./embedded-postgres/postmaster.js";

const DATABASE_NAME = "svc";

export interface EmbeddedPostgres {
  /** URL with the password. The file `database-url` in the data folder (mode 0600) contains the same URL. */
  url: string;
  /** URL for the server's Unix socket. If the path of the socket is too long, this is the same as `url`. */
  socketUrl: string;
  /** Resolves if the server ends unexpectedly. The service must then restart. */
  unexpectedExit: Promise<void>;
  /** Rolls back open transactions, and waits until all processes of the server have ended. May be called twice. */
  stop(): Promise<void>;
}

interface EmbeddedPostgresOptions {
  /** Absolute path of the service's data folder, which is created if it is missing. Its subfolder `postgres` has the database files. */
  dataDir: string;
  log: Logger;
  /** Additional server settings, which only tests pass. `fsync: "off"` also makes the first start faster. */
  settings?: Record<string, string>;
}

const getClusterFolder = (dataDir: string) => join(dataDir, "postgres");
const getLockFilePath = (dataDir: string) => join(dataDir, "service.lock");
const getUrlFilePath = (dataDir: string) => join(dataDir, "database-url");

/** Maximum length of a Unix socket's path that every system allows. */
const SOCKET_PATH_MAX_BYTES = 103;

function createSocketUrl(url: string, { port, socketPath }: Postmaster): string {
  if (Buffer.byteLength(socketPath) > SOCKET_PATH_MAX_BYTES) return url;
  return url.replace(`@127.0.0.1:${port}/`, `@${encodeURIComponent(dirname(socketPath))}:${port}/`);
}

function readSavedUrl(dataDir: string): URL | null {
  try {
    return new URL(readFileSync(getUrlFilePath(dataDir), "utf8").trim());
  } catch {
    return null;
  }
}

function saveUrl(dataDir: string, password: string, port: number): string {
  const url = `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${DATABASE_NAME}`;
  const temporaryPath = `${getUrlFilePath(dataDir)}.new`;
  writeFileSync(temporaryPath, `${url}\n`, { mode: 0o600 });
  renameSync(temporaryPath, getUrlFilePath(dataDir));
  return url;
}

/**
 * Creates a missing cluster, and returns the superuser's password. This is a new one if there was no cluster, or if no password was saved.
 */
async function prepareCluster(context: PostgresClusterContext, dataDir: string, sync: boolean): Promise<string> {
  const savedPassword = readSavedUrl(dataDir)?.password;
  const exists = hasPostgresCluster(context.clusterDir);
  if (exists) changeFolderOwner(context.account, context.clusterDir);
  if (exists && savedPassword) return savedPassword;
  const password = randomBytes(24).toString("hex");
  await (exists ? resetSuperuserPassword(context, password) : createPostgresCluster(context, password, sync));
  return password;
}

async function ensureDatabase(url: string): Promise<void> {
  const maintenanceUrl = new URL(url);
  maintenanceUrl.pathname = "/postgres";
  const client = createClient(maintenanceUrl.href);
  await client.connect();
  try {
    const databases = await client.query("SELECT FROM pg_database WHERE datname = $1", [DATABASE_NAME]);
    if (databases.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE_NAME}`);
  } finally {
    await client.end();
  }
}

/**
 * Starts PostgreSQL in `dataDir/postgres`, with a Unix socket and a free port of 127.0.0.1. First stops a server of a killed service.
 * @throws EmbeddedPostgresError if another process uses the folder, there is no PostgreSQL for the platform, or the server failed
 */
export async function startEmbeddedPostgres({
  dataDir,
  log,
  settings = {},
}: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const root = realpathSync(dataDir);
  const clusterDir = getClusterFolder(root);
  const lock = acquireDataFolderLock(getLockFilePath(root), dataDir);
  try {
    const account = chooseClusterAccount(clusterDir);
    const context = { binaries: preparePostgresBinaries(account), account, clusterDir };
    await stopOrphanedPostmaster(clusterDir, log);
    const password = await prepareCluster(context, root, settings["fsync"] !== "off");
    const postmaster = await startPostmaster(context, settings, log);
    const url = saveUrl(root, password, postmaster.port);
    await ensureDatabase(url).catch(async (error) => {
      await postmaster.stop();
      throw error;
    });
    const { unexpectedExit, stop } = postmaster;
    return {
      url,
      socketUrl: createSocketUrl(url, postmaster),
      unexpectedExit,
      stop: () => stop().finally(lock.release),
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Returns the database URL; null if no running service has started a server in `dataDir`, or if the server is not ready. */
export async function findRunningEmbeddedPostgres(dataDir: string): Promise<string | null> {
  if (findDataFolderLockHolder(getLockFilePath(dataDir)) === null) return null;
  const url = readSavedUrl(dataDir);
  const pidFile = readPostmasterPidFile(getClusterFolder(dataDir));
  return url && pidFile?.ready && Number(url.port) === pidFile.port ? url.href : null;
}
