/** Starts and stops a service on this machine with its own database, for `svc dev` and for tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ProcessEnvironment } from "./config.js";
import { CliError } from "./failure.js";

const PACKAGE_FOLDER = fileURLToPath(new URL("../../../../", import.meta.url));
const DATA_FOLDER = join(".svc", "server");
const CREDENTIALS_FILE = "credentials.json";
const POLL_MS = 200;
const START_TIMEOUT_MS = 180_000;
const OUTPUT_MAX_CHARACTERS = 4_000;

export interface LocalServer {
  url: string;
  app: number;
  /** Token of the service's first editor. */
  token: string;
  /** Promise that rejects if the service ends before `stop` is called. */
  failurePromise: Promise<never>;
  /** Stops the service. A call during a stop makes the service end sooner, so that running actions get less time to finish. */
  stop(): Promise<void>;
}

/** True if `svc dev` has started a service on this machine for this project before. */
export const isLocalProject = (root: string): boolean => existsSync(join(root, DATA_FOLDER));

export const hasLocalServerData = (root: string): boolean => existsSync(join(root, DATA_FOLDER, CREDENTIALS_FILE));

export async function isServerResponding(url: string): Promise<boolean> {
  try {
    await fetch(`${url}/health/live`, { redirect: "manual" });
    return true;
  } catch {
    return false;
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

/** Returns the arguments of Node in the start script of package.json. */
function readStartArguments(): string[] {
  const { scripts } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, "package.json"), "utf8")) as {
    scripts: { start: string };
  };
  return scripts.start.slice(scripts.start.lastIndexOf("exec node ") + "exec node ".length).split(" ");
}

function createDataFolder(root: string | null, isThrowAway: boolean): string {
  if (root === null) return mkdtempSync(join(tmpdir(), "svc-test-server-"));
  // Creates the folder even for a temporary service, because the folder marks a project that uses a local service.
  const folder = join(root, DATA_FOLDER);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(root, ".svc", ".gitignore"), "*\n");
  return isThrowAway ? mkdtempSync(join(tmpdir(), "svc-dev-server-")) : folder;
}

/**
 * Waits until the service is ready.
 * @throws the reason of `stopSignal` if it aborts first, the error of `failurePromise`, or CliError after START_TIMEOUT_MS
 */
async function waitUntilServerReady(
  url: string,
  failurePromise: Promise<never>,
  stopSignal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    stopSignal.throwIfAborted();
    const isReady = await Promise.race([
      fetch(`${url}/health/ready`, { signal: stopSignal }).then(
        ({ ok }) => ok,
        () => false,
      ),
      failurePromise,
    ]);
    if (isReady) return;
    if (Date.now() > deadline) throw new CliError("the service did not start in three minutes");
    await delay(POLL_MS);
  }
}

function collectOutput(child: ChildProcess): () => string {
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-OUTPUT_MAX_CHARACTERS);
    });
  return () => output;
}

/**
 * Starts the service. Aborting `stopSignal` cancels the start.
 * @param root root folder of the project; null for a service that leaves no data in the project
 * @param port port of an earlier start; null for any free port
 * @param isThrowAway true: the service stores its data in a temporary folder, which is deleted when the service stops
 * @throws CliError if the service does not start
 */
export async function startLocalServer(
  root: string | null,
  { isThrowAway, port, env: inputEnv }: { isThrowAway: boolean; port: number | null; env: ProcessEnvironment },
  stopSignal: AbortSignal,
): Promise<LocalServer> {
  const dataDir = createDataFolder(root, isThrowAway);
  const chosenPort = port ?? (await findFreePort());
  const url = `http://127.0.0.1:${chosenPort}`;
  const { DATABASE_URL: _, ...inheritedEnv } = inputEnv;
  const env = { ...inheritedEnv, PORT: String(chosenPort), HOST: "127.0.0.1", DATA_DIR: dataDir, LOG_LEVEL: "warn" };
  const child = spawn(process.execPath, readStartArguments(), {
    cwd: PACKAGE_FOLDER,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    // Starts the service in another process group, so that Ctrl C reaches only this process. This process then stops the service.
    detached: true,
  });
  const readOutput = collectOutput(child);
  const closePromise = once(child, "close");
  let isStopping = false;
  const failurePromise = closePromise.then(() => {
    if (isStopping) return new Promise<never>(() => undefined);
    throw new CliError(`the local service ended unexpectedly: ${readOutput().trim()}`);
  });
  // Prevents an unhandled rejection if the service ends before other code awaits `failurePromise`.
  failurePromise.catch(() => undefined);
  const stop = async () => {
    isStopping = true;
    child.kill("SIGTERM");
    await closePromise;
    if (isThrowAway) rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    await waitUntilServerReady(url, failurePromise, stopSignal);
    const { appId, tokens } = JSON.parse(readFileSync(join(dataDir, CREDENTIALS_FILE), "utf8"));
    return { url, app: appId, token: tokens.editor, failurePromise, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
