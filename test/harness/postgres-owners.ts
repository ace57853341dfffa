/**
 * Starts processes that each own an embedded PostgreSQL. Tests end these processes in different ways, and check the files and processes
 * that remain.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client } from "pg";

export const DIST_FOLDER = fileURLToPath(new URL("../../", import.meta.url));
/** Path of the program that owns an embedded PostgreSQL, relative to DIST_FOLDER. */
export const OWNER_PROGRAM = "test/engine/postgres-owner.js";

export interface Owner {
  child: ChildProcess;
  /** Content of the line that the process prints once its server has started or failed. */
  printed: { url?: string; error?: string };
}

export interface OwnerOptions {
  nodeFlags?: readonly string[];
  /** Folder of the compiled code from which the process runs. */
  dist?: string;
  /** Destination of the process's standard error. */
  stderr?: "inherit" | "ignore";
}

export async function startOwner(dataDir: string, options: OwnerOptions = {}): Promise<Owner> {
  const { nodeFlags = [], dist = DIST_FOLDER, stderr = "inherit" } = options;
  const command = [...nodeFlags, join(dist, OWNER_PROGRAM), dataDir];
  const child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", stderr] });
  const [line] = await once(createInterface({ input: child.stdout! }), "line");
  return { child, printed: JSON.parse(line) };
}

/** Sends the signal and waits for the end of the process. @returns the exit code; null if a signal ended the process */
export async function endOwner({ child }: Owner, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }
  return child.exitCode;
}

export async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return (await client.query(sql).finally(() => client.end())).rows;
}

export function postmasterPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, "postgres/postmaster.pid"), "utf8").split("\n")[0]);
}

export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.charAt(stat.lastIndexOf(")") + 2) !== "Z";
  } catch {
    return false;
  }
}

export interface PostgresOwners {
  /** Folder of the current test, with mode 0700. If the tests run as root, PostgreSQL's account cannot enter this folder. */
  readonly folder: string;
  readonly dataDir: string;
  start(dist?: string): Promise<Owner>;
}

/** Gives each test of the enclosing suite a folder, and ends the processes that the test started. */
export function usePostgresOwners(): PostgresOwners {
  let folder = "";
  const owners: Owner[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-postgres-"));
  });
  afterEach(async () => {
    for (const owner of owners.splice(0)) await endOwner(owner, "SIGTERM");
    await rm(folder, { recursive: true, force: true });
  });
  return {
    get folder() {
      return folder;
    },
    get dataDir() {
      return join(folder, "data");
    },
    async start(dist = DIST_FOLDER) {
      const owner = await startOwner(join(folder, "data"), { dist });
      owners.push(owner);
      return owner;
    },
  };
}
