/**
 * Owns one Chromium process: its account, its folder, its arguments, the protocol connection and its end. Knows nothing
 * of contexts, pages or runs.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { ConnectionTransport } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { StartError } from "../../../errors.js";
import { BROWSER_START_TIMEOUT_MS, type Chromium, openConnection } from "../browser-source.js";
import { browserFlags } from "../chromium-flags.js";
import { BROWSER_PRIORITY } from "../watch/priorities.js";
import { createPipeTransport } from "./pipe-transport.js";

/** Where the lanes of this machine listen. */
const LANES_HOST = "127.0.0.1";
const STDERR_KEPT_CHARACTERS = 8_192;
/** What Chromium says before it gives up for want of a sandbox. */
const NO_SANDBOX = /No usable sandbox|new namespace|credentials\.cc|--no-sandbox is not supported/;
/** What a renderer says before it gives up for want of heap. */
const OUT_OF_HEAP = /V8 (javascript|process) OOM/;
/** The accounts of nobody from which a service that is root takes its browsers'. */
const FIRST_UID = 64_100;
const END_UID = 64_900;
const FOLDER_PREFIX = "svc-chromium-";

export interface ChromiumOptions {
  chromePath: string;
  /** false starts Chromium without its sandbox: for machines that cannot have one, never for strangers' code. */
  sandbox: boolean;
}

function chromiumArguments(options: ChromiumOptions, folder: string): string[] {
  return [
    "--headless",
    "--remote-debugging-pipe",
    `--user-data-dir=${folder}`,
    ...browserFlags(LANES_HOST),
    ...(options.sandbox ? [] : ["--no-sandbox"]),
  ];
}

/**
 * As root Chromium refuses its sandbox, so it gets an account of nobody: a uid without a name, without files, another
 * for each start. Elsewhere it runs as the service does.
 */
function nobody(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const id = randomInt(FIRST_UID, END_UID);
  return { uid: id, gid: id };
}

/** Whether a process under that uid may be a browser of this service. */
export function isBrowsersUid(uid: number): boolean {
  const own = process.getuid?.();
  return own === 0 ? uid >= FIRST_UID && uid < END_UID : uid === own;
}

function makeFolder(owner: { uid: number; gid: number } | null): string {
  const folder = mkdtempSync(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`));
  if (owner !== null) chownSync(folder, owner.uid, owner.gid);
  return folder;
}

/**
 * Removes what services left that were killed before they could do so themselves: a browser ends by itself when its service is gone,
 * unless it is too busy to notice.
 */
export function sweepFolders(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(FOLDER_PREFIX) ? Number(name.slice(FOLDER_PREFIX.length).split("-")[0]) : 0;
    if (!(pid > 0) || isAlive(pid)) continue;
    const folder = join(tmpdir(), name);
    for (const orphan of browsersIn(folder)) process.kill(orphan, "SIGKILL");
    removeFolder(folder);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** The processes of the folder's owner that were started on it; none where there is no /proc to say so. */
function browsersIn(folder: string): number[] {
  if (!existsSync("/proc")) return [];
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      try {
        const commandLine = readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
        const ours = commandLine.includes(`--user-data-dir=${folder}`);
        return ours && statSync(`/proc/${pid}`).uid === statSync(folder).uid;
      } catch {
        return false;
      }
    });
}

function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  } catch {
    // Another account's, or still written to: the next start sweeps it.
  }
}

function failure(options: ChromiumOptions, stderr: string, reason: string): Error {
  if (NO_SANDBOX.test(stderr)) {
    return new StartError(
      `Chromium's sandbox does not start on this machine (${options.chromePath}). Allow unprivileged user namespaces ` +
        "(sysctl kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0; in a container " +
        "a seccomp profile that lets them through), or set CHROME_SANDBOX=off to run every action without a sandbox.",
    );
  }
  const said = stderr.trim().split("\n").slice(-3).join(" | ");
  return new StartError(
    `Chromium did not start (${options.chromePath}): ${reason}${said === "" ? "" : `; it said: ${said}`}`,
  );
}

function listenToStderr(child: ChildProcess): { text(): string; exhaustedAt(): number } {
  let text = "";
  let exhaustedAt = 0;
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    // A line may come in two pieces.
    const news = text.slice(text.lastIndexOf("\n") + 1) + chunk;
    text = (text + chunk).slice(-STDERR_KEPT_CHARACTERS);
    if (OUT_OF_HEAP.test(news)) exhaustedAt = Date.now();
  });
  return { text: () => text, exhaustedAt: () => exhaustedAt };
}

function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

function pipeTo(child: ChildProcess, onClose: () => void): ConnectionTransport {
  const [, , , toBrowser, fromBrowser] = child.stdio as unknown as [null, null, null, Writable, Readable];
  // The process that was started may be a wrapper that outlives the browser, so its exit is not enough.
  fromBrowser.once("close", onClose);
  return createPipeTransport(toBrowser, fromBrowser);
}

/**
 * Starts Chromium with its sandbox on (unless told otherwise) and connects to it over a pipe. Aborting `stopped` ends the start.
 * @throws Error that says what to do when the sandbox or the binary does not start
 */
export async function startChromium(options: ChromiumOptions, stopped?: AbortSignal): Promise<Chromium> {
  const owner = nobody();
  const folder = makeFolder(owner);
  const child = spawn(options.chromePath, chromiumArguments(options, folder), {
    ...owner,
    cwd: folder,
    env: { HOME: folder, TMPDIR: folder, PATH: "/usr/bin:/bin", LANG: "C.UTF-8" },
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    detached: true,
  });
  // Before it has any other thread or child, which all get its priority.
  if (child.pid !== undefined) setPriority(child.pid, BROWSER_PRIORITY);
  const stderr = listenToStderr(child);
  let alive = true;
  const kill = () => {
    alive = false;
    killGroup(child);
  };
  const ended = new Promise<void>((resolve) => {
    const finish = () => {
      kill();
      removeFolder(folder);
      resolve();
    };
    child.once("exit", finish).once("error", finish);
  });
  process.once("exit", kill);
  runInBackground(ended.then(() => process.off("exit", kill)));

  const timer = setTimeout(kill, BROWSER_START_TIMEOUT_MS);
  stopped?.addEventListener("abort", kill);
  try {
    const failed = ended.then(() => Promise.reject(new Error("the process ended")));
    const connection = await Promise.race([openConnection(pipeTo(child, kill)), failed]);
    const stop = () => {
      kill();
      return ended;
    };
    return { connection, pid: child.pid!, ended, alive: () => alive, exhaustedAt: stderr.exhaustedAt, stop };
  } catch (error) {
    kill();
    await ended;
    throw failure(options, stderr.text(), (error as Error).message);
  } finally {
    clearTimeout(timer);
    stopped?.removeEventListener("abort", kill);
  }
}
