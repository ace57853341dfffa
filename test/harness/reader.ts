/** Runs the commands of a documentation page as a reader would: in a new folder, and in a shell with only PATH, HOME and the
 * variables that the test passes. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "./until.js";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const START_LIMIT_MS = 120_000;

export interface StartedService {
  log: Record<string, unknown>[];
  /** Returns the text of standard error so far. */
  stderr(): string;
  /** Sends SIGTERM to the service's own process, and waits for its end. @throws Error if the exit code is not 0 */
  stop(): Promise<void>;
}

export interface DocsReader {
  /** Folder in which the commands run. */
  folder: string;
  /** Runs the commands. Resolves with their standard output. @throws Error with all output if a command fails */
  paste(commands: string, environment?: Record<string, string>): Promise<string>;
  /** Runs commands that start a service. Resolves when the service is ready. @throws Error if they end earlier, or after `limitMs` */
  start(commands: string, environment?: Record<string, string>, limitMs?: number): Promise<StartedService>;
  /** Kills remaining processes and removes the folder. */
  cleanUp(): void;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Creates an empty folder that processes of all users can enter. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-reader-"));
  chmodSync(folder, 0o755);
  return folder;
}

/** Copies this checkout with its build, and links node_modules. The copies keep their file times, so `npm start` does not build again. */
export function freshCheckout(): string {
  const folder = freshFolder();
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: ROOT });
  execFileSync("cp", ["-a", "--parents", ...listed.toString().split("\0").filter(Boolean), folder], { cwd: ROOT });
  execFileSync("cp", ["-a", join(ROOT, "dist"), folder]);
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** Replaces placeholders in the text of a documentation page by this machine's values. @throws Error if the text lacks a placeholder */
export function fillPlaceholders(text: string, values: Record<string, string>): string {
  let result = text;
  for (const [placeholder, value] of Object.entries(values)) {
    if (!result.includes(placeholder)) throw new Error(`the text lacks the placeholder ${placeholder}: ${text}`);
    result = result.replaceAll(placeholder, value);
  }
  return result;
}

// biome-ignore lint/suspicious/noExplicitAny: each command prints another type
export const lastLine = (output: string): any => JSON.parse(output.trim().split("\n").at(-1)!);

function spawnShell(commands: string, folder: string, environment: Record<string, string>): ChildProcess {
  const { PATH = "", HOME = folder } = process.env;
  return spawn("bash", ["-e", "-o", "pipefail", "-c", commands], {
    cwd: folder,
    env: { PATH, HOME, ...environment },
    // The commands run in a separate process group, so that the test can end everything that they started.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

function killGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, "SIGKILL");
  } catch {
    // Ignores the error: all processes of the group have already ended.
  }
}

function readText(stream: NodeJS.ReadableStream | null): () => string {
  let text = "";
  stream!.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

async function startService(child: ChildProcess, commands: string, limitMs: number): Promise<StartedService> {
  const log: Record<string, unknown>[] = [];
  const complaints = readText(child.stderr);
  createInterface({ input: child.stdout! }).on("line", (line) => {
    if (line.startsWith("{")) log.push(JSON.parse(line));
  });
  const closed = once(child, "close").then(([code]) => Number(code));
  const ended = closed.then((code) => {
    throw new Error(`the commands ended with code ${code}: ${commands}\n${complaints()}`);
  });
  ended.catch(() => undefined);
  const ready = await Promise.race([until(() => log.find(({ msg }) => msg === "ready"), limitMs), ended]);
  return {
    log,
    stderr: complaints,
    async stop() {
      process.kill(Number(ready["pid"]), "SIGTERM");
      const code = await closed;
      if (code !== 0) throw new Error(`the service ended with code ${code}: ${complaints()}`);
    },
  };
}

export function reader(folder = freshCheckout()): DocsReader {
  const children: ChildProcess[] = [];
  function run(commands: string, environment: Record<string, string>): ChildProcess {
    const child = spawnShell(commands, folder, environment);
    children.push(child);
    return child;
  }
  return {
    folder,
    async paste(commands, environment = {}) {
      const child = run(commands, environment);
      const [printed, complaints] = [readText(child.stdout), readText(child.stderr)];
      const [code] = await once(child, "close");
      if (code !== 0) throw new Error(`the commands ended with code ${code}: ${commands}\n${printed()}${complaints()}`);
      return printed();
    },
    start: (commands, environment = {}, limitMs = START_LIMIT_MS) =>
      startService(run(commands, environment), commands, limitMs),
    cleanUp() {
      for (const child of children) if (child.exitCode === null) killGroup(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
