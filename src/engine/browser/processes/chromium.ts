/** Source of browsers on this machine: starts and ends Chromium processes, with their user account, profile folder and DevTools connection. */

import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { chownSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { Logger } from "pino";
import type { ConnectionTransport } from "puppeteer";
import { StartError } from "../../../errors.js";
import {
  BROWSER_START_TIMEOUT_MS,
  type BrowserSource,
  type Chromium,
  openBrowserConnection,
} from "../browser-source.js";
import { createBrowserFlags } from "../chromium-flags.js";
import { lowerBrowserPriority } from "../watch/priorities.js";
import { listProcesses, signalProcess } from "../watch/processes.js";
import { waitForProcessSandboxStates } from "./sandbox-proof.js";

const PROXY_HOST = "127.0.0.1";
const STDERR_MAX_CHARACTERS = 8_192;
const NO_SANDBOX_OUTPUT_PATTERN = /No usable sandbox|new namespace|credentials\.cc|--no-sandbox is not supported/;
const OUT_OF_HEAP_OUTPUT_PATTERN = /V8 (javascript|process) OOM/;
/** If the service is root, its browsers run under user IDs of this range, which no account has. */
const FIRST_UID = 64_100;
const UID_RANGE_END = 64_900;
const FOLDER_PREFIX = "svc-chromium-";

export interface ChromiumOptions {
  chromePath: string;
  /** False starts Chromium without its sandbox. Never use this for untrusted code. */
  sandbox: boolean;
}

/** If the service is root, returns another account for a browser: Chromium's sandbox does not run as root. Otherwise returns null. */
function chooseUnusedAccount(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const id = randomInt(FIRST_UID, UID_RANGE_END);
  return { uid: id, gid: id };
}

export function isBrowserUid(uid: number): boolean {
  const serviceUid = process.getuid?.();
  return serviceUid === 0 ? uid >= FIRST_UID && uid < UID_RANGE_END : uid === serviceUid;
}

function createProfileFolder(account: { uid: number; gid: number } | null): string {
  const folder = mkdtempSync(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`));
  if (account !== null) chownSync(folder, account.uid, account.gid);
  return folder;
}

const readOwnerUid = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.uid;

/** Removes profile folders of services that were killed, and ends their browsers, which may outlive their service. */
function removeOrphanedBrowsers(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(FOLDER_PREFIX) ? Number(name.slice(FOLDER_PREFIX.length).split("-")[0]) : 0;
    if (!(pid > 0) || isProcessAlive(pid)) continue;
    const folder = join(tmpdir(), name);
    const ownerUid = readOwnerUid(folder);
    for (const { pid: orphanPid, commandLine } of ownerUid === undefined ? [] : listProcesses()) {
      const usesFolder = commandLine.split("\0").includes(`--user-data-dir=${folder}`);
      if (usesFolder && readOwnerUid(`/proc/${orphanPid}`) === ownerUid) signalProcess(orphanPid, "SIGKILL");
    }
    removeProfileFolder(folder);
  }
}

function isProcessAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function removeProfileFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  } catch {
    // The profile folder belongs to another account, or is still in use. The next start of the service tries again.
  }
}

function createStartError(options: ChromiumOptions, stderr: string, reason: string): Error {
  if (NO_SANDBOX_OUTPUT_PATTERN.test(stderr)) {
    return new StartError(
      `Chromium's sandbox does not start on this machine (${options.chromePath}). Allow unprivileged user namespaces ` +
        "(sysctl kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0; in a container " +
        "a seccomp profile that lets them through), or set CHROME_SANDBOX=off to run every action without a sandbox.",
    );
  }
  const output = stderr.trim().split("\n").slice(-3).join(" | ");
  return new StartError(
    `Chromium did not start (${options.chromePath}): ${reason}${output === "" ? "" : `; its output: ${output}`}`,
  );
}

function listenToStderr(child: ChildProcess): { getText(): string; getHeapFullTime(): number } {
  let text = "";
  let heapFullAt = 0;
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    // Keeps the last incomplete line, because one line of the output may arrive in two chunks.
    const newText = text.slice(text.lastIndexOf("\n") + 1) + chunk;
    text = (text + chunk).slice(-STDERR_MAX_CHARACTERS);
    if (OUT_OF_HEAP_OUTPUT_PATTERN.test(newText)) heapFullAt = Date.now();
  });
  return { getText: () => text, getHeapFullTime: () => heapFullAt };
}

/** Transports DevTools messages, each with NUL at its end. Other processes could connect to a port, but not to this pipe. */
function createPipeTransport(child: ChildProcess, onClose: () => void): ConnectionTransport {
  const [, , , toBrowser, fromBrowser] = child.stdio as unknown as [null, null, null, Writable, Readable];
  let incompleteMessage = "";
  const transport: ConnectionTransport = {
    send: (message) => toBrowser.write(`${message}\0`),
    close: () => fromBrowser.destroy(),
  };
  fromBrowser.setEncoding("utf8").on("data", (chunk: string) => {
    const messages = chunk.split("\0");
    messages[0] = incompleteMessage + messages[0];
    incompleteMessage = messages.pop()!;
    for (const message of messages) transport.onmessage?.(message);
  });
  // The started process may be a wrapper script that outlives the browser. So the end of the pipe counts as the end of the browser.
  fromBrowser.once("close", () => {
    onClose();
    toBrowser.destroy();
    transport.onclose?.();
  });
  // A write to a browser that has ended fails with EPIPE. The close event follows, so this error is ignored.
  for (const pipe of [toBrowser, fromBrowser]) pipe.on("error", () => {});
  return transport;
}

/** @throws StartError with instructions if the sandbox or the binary does not start */
export async function startChromium(options: ChromiumOptions, stopSignal: AbortSignal): Promise<Chromium> {
  const account = chooseUnusedAccount();
  const folder = createProfileFolder(account);
  const flags = [
    "--headless",
    "--remote-debugging-pipe",
    `--user-data-dir=${folder}`,
    ...createBrowserFlags(PROXY_HOST),
  ];
  const child = spawn(options.chromePath, options.sandbox ? flags : [...flags, "--no-sandbox"], {
    ...account,
    cwd: folder,
    env: { HOME: folder, TMPDIR: folder, PATH: "/usr/bin:/bin", LANG: "C.UTF-8" },
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    detached: true,
  });
  if (child.pid !== undefined) lowerBrowserPriority(child.pid);
  const stderr = listenToStderr(child);
  let alive = true;
  const kill = () => {
    alive = false;
    if (child.pid !== undefined) signalProcess(-child.pid, "SIGKILL");
  };
  const ended = new Promise<void>((resolve) => {
    const finish = () => {
      kill();
      process.off("exit", kill);
      removeProfileFolder(folder);
      resolve();
    };
    child.once("exit", finish).once("error", finish);
  });
  process.once("exit", kill);

  const timer = setTimeout(kill, BROWSER_START_TIMEOUT_MS);
  stopSignal.addEventListener("abort", kill);
  try {
    const reason = `the process could not be started, exited early, or did not respond within ${BROWSER_START_TIMEOUT_MS / 1_000} seconds`;
    const startFailure = ended.then(() => Promise.reject(new Error(reason)));
    const connection = await Promise.race([openBrowserConnection(createPipeTransport(child, kill)), startFailure]);
    const stop = () => {
      kill();
      return ended;
    };
    return { connection, pid: child.pid!, ended, isAlive: () => alive, getHeapFullTime: stderr.getHeapFullTime, stop };
  } catch (error) {
    kill();
    await ended;
    throw createStartError(options, stderr.getText(), (error as Error).message);
  } finally {
    clearTimeout(timer);
    stopSignal.removeEventListener("abort", kill);
  }
}

export function createLocalBrowserSource({ log, ...options }: ChromiumOptions & { log: Logger }): BrowserSource {
  return {
    name: "Chromium",

    async open(stopSignal) {
      removeOrphanedBrowsers();
      if (!options.sandbox)
        log.warn("Chromium runs WITHOUT its sandbox (CHROME_SANDBOX=off): actions are not contained");
      return startChromium(options, stopSignal);
    },

    async checkSandbox(chromium) {
      const { pid } = chromium;
      const states = options.sandbox ? await waitForProcessSandboxStates(chromium) : null;
      if (states === null) return { pid, sandbox: options.sandbox };
      const unsandboxedKinds = states.filter(({ contained }) => !contained).map(({ kind }) => kind);
      if (unsandboxedKinds.length === 0) return { pid, sandbox: true };
      throw new StartError(
        `these Chromium processes run without a sandbox: ${[...new Set(unsandboxedKinds)].join(", ")}; allow unprivileged user ` +
          "namespaces and seccomp filters on this machine (docs/operate/containers.md), or set CHROME_SANDBOX=off to run every action without a sandbox",
      );
    },
  };
}
