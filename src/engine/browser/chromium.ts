/**
 * Owns one Chromium process: its account, its folder, its arguments, the protocol connection and its end. Knows nothing
 * of contexts, pages or runs.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { Connection } from "puppeteer-core";
import { connect } from "puppeteer-core";
import { StartError } from "../../errors.js";
import { createPipeTransport } from "./pipe-transport.js";

/** Heap of one page's script; buffers outside it are watched from /proc (memory-watch.ts). */
const HEAP_MAX_MB = 384;
const START_TIMEOUT_MS = 20_000;
const STDERR_KEPT_CHARACTERS = 8_192;
/** What Chromium says before it gives up for want of a sandbox. */
const NO_SANDBOX = /No usable sandbox|new namespace|credentials\.cc|--no-sandbox is not supported/;
/** What a renderer says before it gives up for want of heap. */
const OUT_OF_HEAP = /V8 (javascript|process) OOM/;
const FOLDER_PREFIX = "svc-chromium-";

export interface ChromiumOptions {
  chromePath: string;
  /** false starts Chromium without its sandbox: for machines that cannot have one, never for strangers' code. */
  sandbox: boolean;
}

export interface Chromium {
  readonly connection: Connection;
  readonly pid: number;
  /** Resolves once the process has ended and its folder is gone. */
  readonly ended: Promise<void>;
  alive(): boolean;
  /** When a renderer last said that V8 reached its heap limit; Unix time in milliseconds, 0 for never. */
  exhaustedAt(): number;
  /** Ends the whole process group; resolves as `ended` does. */
  stop(): Promise<void>;
}

const NETWORK_FLAGS = [
  // Without a lane of its own (see Lane) a context reaches nothing: port 9 refuses.
  "--proxy-server=http://127.0.0.1:9",
  "--proxy-bypass-list=<-loopback>",
  // Which of the two spellings counts differs between builds; with the other alone WebRTC sends UDP past the proxy.
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
  "--disable-quic",
  // A WebSocket would go through a tunnel that is open already, unasked (request-guard.ts).
  "--disable-http2",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-sync",
  "--no-first-run",
  "--no-pings",
];

/** What would let a document outlive its navigation, or work ahead of one. */
const FEATURES_OFF = [
  "BackForwardCache",
  "FetchLaterAPI",
  "Prerender2",
  "SpeculationRulesPrefetchFuture",
  "NoStatePrefetch",
  "MediaRouter",
  "OptimizationHints",
  "Translate",
  "AutofillServerCommunication",
  // A new frame host for every navigation cost a third of it; the document and its global are fresh without.
  "RenderDocument",
];

function chromiumArguments(options: ChromiumOptions, folder: string): string[] {
  return [
    "--headless",
    "--remote-debugging-pipe",
    `--user-data-dir=${folder}`,
    ...NETWORK_FLAGS,
    `--disable-features=${FEATURES_OFF.join(",")}`,
    "--disable-back-forward-cache",
    // Their requests are seen by no page's session; a run has no use for either.
    "--disable-shared-workers",
    "--block-new-web-contents",
    // Its storage is kept outside what an origin is said to use, where page.ts looks.
    "--disable-blink-features=StorageBuckets",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-hang-monitor",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--mute-audio",
    "--no-default-browser-check",
    "--password-store=basic",
    "--use-mock-keychain",
    `--js-flags=--max-old-space-size=${HEAP_MAX_MB}`,
    ...(options.sandbox ? [] : ["--no-sandbox"]),
    "--no-startup-window",
  ];
}

/**
 * As root Chromium refuses its sandbox, so it gets an account of nobody: a uid without a name, without files, another
 * for each start. Elsewhere it runs as the service does.
 */
function account(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const id = randomInt(64_100, 64_900);
  return { uid: id, gid: id };
}

function makeFolder(owner: { uid: number; gid: number } | null): string {
  const folder = mkdtempSync(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`));
  if (owner !== null) chownSync(folder, owner.uid, owner.gid);
  return folder;
}

/** Removes the folders of services that were killed before they could do so themselves. */
export function sweepFolders(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(FOLDER_PREFIX) ? Number(name.slice(FOLDER_PREFIX.length).split("-")[0]) : 0;
    if (pid > 0 && pid !== process.pid && !existsSync(`/proc/${pid}`)) removeFolder(join(tmpdir(), name));
  }
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
    text = (text + chunk).slice(-STDERR_KEPT_CHARACTERS);
    if (OUT_OF_HEAP.test(chunk)) exhaustedAt = Date.now();
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

async function openConnection(child: ChildProcess): Promise<Connection> {
  const [, , , toBrowser, fromBrowser] = child.stdio as unknown as [null, null, null, Writable, Readable];
  const browser = await connect({ transport: createPipeTransport(toBrowser, fromBrowser), defaultViewport: null });
  const connection = (await browser.target().createCDPSession()).connection();
  if (connection === undefined) throw new Error("the connection closed");
  // Puppeteer would set up a page object for every target; here pages are driven over the protocol itself.
  await connection.send("Target.setAutoAttach", { autoAttach: false, waitForDebuggerOnStart: false, flatten: true });
  return connection;
}

/**
 * Starts Chromium with its sandbox on (unless told otherwise) and connects to it over a pipe.
 * @throws Error that says what to do when the sandbox or the binary does not start
 */
export async function startChromium(options: ChromiumOptions): Promise<Chromium> {
  const owner = account();
  const folder = makeFolder(owner);
  const child = spawn(options.chromePath, chromiumArguments(options, folder), {
    ...owner,
    cwd: folder,
    env: { HOME: folder, TMPDIR: folder, PATH: "/usr/bin:/bin", LANG: "C.UTF-8" },
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    detached: true,
  });
  const stderr = listenToStderr(child);
  let exited = false;
  const ended = new Promise<void>((resolve) => {
    const finish = () => {
      exited = true;
      killGroup(child);
      removeFolder(folder);
      resolve();
    };
    child.once("exit", finish).once("error", finish);
  });
  const killWithService = () => killGroup(child);
  process.once("exit", killWithService);
  void ended.then(() => process.off("exit", killWithService));

  const timer = setTimeout(() => killGroup(child), START_TIMEOUT_MS);
  try {
    const stopped = ended.then(() => Promise.reject(new Error("the process ended")));
    const connection = await Promise.race([openConnection(child), stopped]);
    const stop = () => {
      killGroup(child);
      return ended;
    };
    return { connection, pid: child.pid!, ended, alive: () => !exited, exhaustedAt: stderr.exhaustedAt, stop };
  } catch (error) {
    killGroup(child);
    await ended;
    throw failure(options, stderr.text(), (error as Error).message);
  } finally {
    clearTimeout(timer);
  }
}
