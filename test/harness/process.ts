/**
 * Starts the service as a separate process, as users do. Tests can send signals to the process, read its output, and find the processes
 * that it leaves behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { FirstCredentials } from "../../src/operations/access/bootstrap.js";
import { programEnvironment } from "./program-environment.js";
import { until } from "./until.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const START_LIMIT_MS = 150_000;

/** Returns the arguments of `node` with which `npm start` starts the service, so that tests start it in the same way. */
function readStartArguments(root: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const command = /exec node (.*)$/.exec(scripts.start)?.[1];
  if (!command) throw new Error("the start script of package.json does not end in `exec node …`");
  return command.split(" ");
}

export interface ServiceProcess {
  pid: number;
  dataDir: string;
  /** Resolves to the URL when the service listens on its port. Rejects if the process ends earlier. */
  listening(): Promise<string>;
  /** Resolves to the URL when the service reports that it is ready. Rejects if the process ends earlier. */
  ready(): Promise<string>;
  /** JSON lines of standard output so far. */
  log: Record<string, unknown>[];
  /** Text of standard error so far. */
  stderr(): string;
  /** URL of the embedded database. */
  databaseUrl(): string;
  /** Content of credentials.json: the IDs and tokens of the first app. The service writes this file only if its database is embedded. */
  credentials(): FirstCredentials;
  signal(name: NodeJS.Signals): void;
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Command lines of live processes that the service started, or that use its folder. The service itself is not included. */
  listRemainingProcesses(): string[];
  /** Kills the service and its remaining processes, and removes its folder. */
  clean(): Promise<void>;
}

interface ProcessRow {
  pid: number;
  parent: number;
  state: string;
  command: string;
  cwd: string;
}

function readProcess(pid: number): ProcessRow | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return { pid, parent: Number(parent), state, command, cwd: readlinkSync(`/proc/${pid}/cwd`) };
  } catch {
    return null;
  }
}

function listProcesses(): ProcessRow[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => readProcess(Number(pid)) ?? []).filter(({ state }) => state !== "Z");
}

/** Returns the descendants of a process, processes in `known`, processes that run in the data folder, and those of its Chromium. */
function descendantsOf(pid: number, dataDir: string, known: Set<number>): ProcessRow[] {
  const all = listProcesses();
  const family = new Set([pid]);
  for (let size = 0; size !== family.size; ) {
    size = family.size;
    for (const row of all) if (family.has(row.parent)) family.add(row.pid);
  }
  const found = all.filter(
    (row) =>
      row.pid !== pid &&
      (family.has(row.pid) ||
        known.has(row.pid) ||
        row.cwd.startsWith(dataDir) ||
        row.command.includes(`svc-chromium-${pid}-`)),
  );
  for (const row of found) known.add(row.pid);
  return found;
}

/** Collects the process's output. `waitForLogLine` resolves to the first log line with this message, `ended` to the exit code or signal. */
function readOutput(child: ChildProcess) {
  const log: Record<string, unknown>[] = [];
  let stderrText = "";
  child.stderr!.setEncoding("utf8").on("data", (chunk: string) => {
    stderrText += chunk;
  });
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal }));
  createInterface({ input: child.stdout! }).on("line", (line) => {
    if (line.startsWith("{")) log.push(JSON.parse(line));
  });
  const waitForLogLine = async (message: string): Promise<Record<string, unknown>> => {
    const findEntry = () => log.find((entry) => entry["msg"] === message);
    const gone = ended.then(({ code }) => {
      throw new Error(`the process ended with code ${code} before it logged "${message}": ${stderrText}`);
    });
    return Promise.race([until(findEntry, START_LIMIT_MS), gone]);
  };
  return { log, waitForLogLine, ended, stderr: () => stderrText };
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Ignores the error: the process has already ended.
  }
}

/**
 * Starts the service. `environment` overrides the defaults: a free port, no rate limits and a new data folder.
 * @param entry module that runs instead of the service's entry point, and its arguments
 * @param root folder of the release to start; by default, this checkout
 */
export function startProcess(
  environment: Record<string, string> = {},
  entry?: readonly string[],
  root = ROOT,
): ServiceProcess {
  const command = readStartArguments(root);
  const dataDir = environment["DATA_DIR"] ?? mkdtempSync(join(tmpdir(), "svc-process-"));
  const child = spawn(process.execPath, entry ? [...command.slice(0, -1), ...entry] : command, {
    cwd: root,
    env: {
      // The environment names V8's compile cache. With this cache, a start takes a fifth of the time.
      ...programEnvironment(),
      HOME: process.env["HOME"],
      PORT: "0",
      DATA_DIR: dataDir,
      RATE_LIMIT_MANAGE: "0",
      RATE_LIMIT_RUN: "0",
      RATE_LIMIT_PUBLISH: "0",
      RATE_LIMIT_COMMUNICATE: "0",
      RATE_LIMIT_MCP: "0",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const pid = child.pid!;
  const known = new Set<number>();
  const { log, waitForLogLine, ended, stderr } = readOutput(child);
  return {
    pid,
    dataDir,
    log,
    stderr,
    listening: async () => String((await waitForLogLine("listening"))["url"]),
    ready: async () => String((await waitForLogLine("ready"))["url"]),
    databaseUrl: () => readFileSync(join(dataDir, "database-url"), "utf8").trim(),
    credentials: () => JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")),
    signal: (name) => void child.kill(name),
    ended,
    listRemainingProcesses: () =>
      descendantsOf(pid, dataDir, known).map(({ command, pid: id }) => `${id} ${command.slice(0, 80)}`),
    async clean() {
      child.kill("SIGKILL");
      for (const descendant of descendantsOf(pid, dataDir, known)) end(descendant.pid);
      await ended;
      await until(() => descendantsOf(pid, dataDir, known).length === 0);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
