/** Starts and stops the PostgreSQL server of a cluster, including a server that a killed service has left running. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { createPostgresSpawnOptions, getDataFolderArgument, type PostgresClusterContext } from "./cluster.js";
import { EmbeddedPostgresError } from "./failure.js";
import { isPostmasterWithDataFolder, isProcessAlive, waitForProcessEnd } from "./processes.js";
import { createPostgresServerLog, POSTGRES_LOG_SETTINGS } from "./server-log.js";
import { startPostgresWatchdog } from "./watchdog.js";

const READY_TIMEOUT_MS = 120_000;
/**
 * Time between SIGTERM and SIGINT, in which the server processes of closed connections end. After SIGINT, each of them would log a warning.
 */
const SMART_STOP_TIMEOUT_MS = 1_000;
const FAST_STOP_TIMEOUT_MS = 20_000;
const IMMEDIATE_STOP_TIMEOUT_MS = 10_000;
const START_ATTEMPTS = 40;
const RETRY_MS = 100;

/** True if another program has taken the port, or a process of a killed server has not ended yet. */
const isTemporaryFault = (fault: string): boolean =>
  /pre-existing shared memory block|could not create any TCP\/IP sockets/.test(fault) ||
  (fault.includes("lock file") && fault.includes("already exists"));

export interface Postmaster {
  port: number;
  /** Path of the server's Unix socket. */
  socketPath: string;
  unexpectedExit: Promise<void>;
  stop(): Promise<void>;
}

export function readPostmasterPidFile(clusterDir: string): { pid: number; port: number; ready: boolean } | null {
  try {
    const lines = readFileSync(join(clusterDir, "postmaster.pid"), "utf8").split("\n");
    return { pid: Number(lines[0]), port: Number(lines[3]), ready: lines[7]?.trim() === "ready" };
  } catch {
    return null;
  }
}

/**
 * Stops a server. SIGTERM waits for the clients. SIGINT ends their transactions and writes a checkpoint. If this takes too long, SIGQUIT
 * ends the server at once; no commit is lost.
 * @throws EmbeddedPostgresError if the server still runs after SIGQUIT
 */
async function stopServer(pid: number): Promise<void> {
  for (const [signal, timeoutMs] of [
    ["SIGTERM", SMART_STOP_TIMEOUT_MS],
    ["SIGINT", FAST_STOP_TIMEOUT_MS],
    ["SIGQUIT", IMMEDIATE_STOP_TIMEOUT_MS],
  ] as const) {
    if (!isProcessAlive(pid)) return;
    process.kill(pid, signal);
    if (await waitForProcessEnd(pid, timeoutMs)) return;
  }
  throw new EmbeddedPostgresError(
    `PostgreSQL did not stop, even after the signal SIGQUIT (process ${pid}); check its disk, and start the service again after this process has ended`,
  );
}

/** Stops a server that a killed service has left running, so that its data folder is free. */
export async function stopOrphanedPostmaster(clusterDir: string, log: Logger): Promise<void> {
  const orphan = readPostmasterPidFile(clusterDir);
  if (!orphan || !isProcessAlive(orphan.pid)) return;
  if (isPostmasterWithDataFolder(orphan.pid, clusterDir)) {
    log.warn({ postmaster: orphan.pid }, "stopping the PostgreSQL that a killed service left behind");
    await stopServer(orphan.pid);
    return;
  }
  // The PID now belongs to another program. PostgreSQL would mistake this program for a running server, and not start. So the file is
  // removed.
  rmSync(join(clusterDir, "postmaster.pid"), { force: true });
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" && address ? address.port : 0;
}

const SOCKET_FILE_PREFIX = ".s.PGSQL.";

/** Removes the socket files of killed servers. New servers do not overwrite them, because each start uses another port. */
function removeSockets(clusterDir: string): void {
  for (const name of readdirSync(clusterDir)) {
    if (name.startsWith(SOCKET_FILE_PREFIX)) rmSync(join(clusterDir, name), { force: true });
  }
}

function createServerArguments(clusterDir: string, port: number, settings: Record<string, string>): string[] {
  const allSettings = {
    ...POSTGRES_LOG_SETTINGS,
    listen_addresses: "127.0.0.1",
    port: String(port),
    // The server creates its socket in the folder of the cluster, which only the server's account can open.
    unix_socket_directories: ".",
    ...settings,
  };
  return [
    "-D",
    getDataFolderArgument(clusterDir),
    ...Object.entries(allSettings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
}

interface LaunchResult {
  child: ChildProcess;
  /** Reason why the server does not accept connections; null if it does. */
  fault: string | null;
}

async function launchPostmaster(context: PostgresClusterContext, args: string[], log: Logger): Promise<LaunchResult> {
  // In its own session, the server does not get Ctrl-C, because the service must stop the database last.
  const options = { ...createPostgresSpawnOptions(context.account, context.clusterDir), detached: true };
  const child = spawn(context.binaries.postgres, args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
  const startResult = Promise.withResolvers<string | null>();
  const serverLog = createPostgresServerLog(log, () => startResult.resolve(null));
  createInterface({ input: child.stderr! }).on("line", serverLog.writeLine);
  child.once("error", (error) => startResult.resolve(error.message));
  child.once("close", (code) => startResult.resolve(serverLog.getLastFault() ?? `exit code ${code}`));
  const timer = setTimeout(
    () => startResult.resolve(`not ready within ${READY_TIMEOUT_MS / 1000} s`),
    READY_TIMEOUT_MS,
  );
  const fault = await startResult.promise;
  clearTimeout(timer);
  return { child, fault };
}

function supervisePostmaster(child: ChildProcess, port: number, clusterDir: string, log: Logger): Postmaster {
  let stopping: Promise<void> | null = null;
  const watchdog = startPostgresWatchdog(child.pid!);
  const closed = new Promise<void>((resolve) => {
    child.once("close", () => resolve(watchdog.stop()));
  });
  child.once("exit", (code, signal) => {
    if (!stopping) log.error({ code, signal }, "PostgreSQL stopped unexpectedly");
  });

  async function stop(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) await stopServer(child.pid!);
    await closed;
  }

  return {
    port,
    socketPath: join(clusterDir, `${SOCKET_FILE_PREFIX}${port}`),
    unexpectedExit: new Promise((resolve) => child.once("exit", () => !stopping && resolve())),
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** Starts the server and waits until it accepts connections. @throws EmbeddedPostgresError with the server's own reason */
export async function startPostmaster(
  context: PostgresClusterContext,
  settings: Record<string, string>,
  log: Logger,
): Promise<Postmaster> {
  removeSockets(context.clusterDir);
  for (let attempt = 1; ; attempt += 1) {
    const port = await findFreePort();
    const { child, fault } = await launchPostmaster(
      context,
      createServerArguments(context.clusterDir, port, settings),
      log,
    );
    if (fault === null) return supervisePostmaster(child, port, context.clusterDir, log);
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) await stopServer(child.pid);
    if (attempt === START_ATTEMPTS || !isTemporaryFault(fault)) {
      throw new EmbeddedPostgresError(`PostgreSQL did not start: ${fault}`);
    }
    await delay(RETRY_MS);
  }
}
