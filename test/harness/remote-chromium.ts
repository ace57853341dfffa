/** Starts a separate Chromium with a debugging port, to which a service can connect, and with the flags that the service requires. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "puppeteer";
import { createBrowserFlags } from "../../src/engine/browser/chromium-flags.js";

const CHROME_CANDIDATES = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/google-chrome"];
/** Account that runs the browser if the tests run as root, because Chromium's sandbox does not work as root. */
const BROWSER_ACCOUNT = { uid: 64_950, gid: 64_950 };

export function chromePath(): string {
  const path = process.env["CHROME_PATH"] ?? CHROME_CANDIDATES.find((candidate) => existsSync(candidate));
  if (path === undefined) throw new Error("Chromium is not installed; set CHROME_PATH to the path of a Chromium");
  return path;
}

export interface RemoteChromium {
  pid: number;
  port: number;
  /** URL of the browser, `ws://127.0.0.1:PORT`. */
  endpoint: string;
  /** WebSocket URL of the browser, with the random path that Chromium generates at each start. */
  socketUrl: string;
  /** Returns the number of browser contexts, without the default context. */
  contexts(): Promise<number>;
  running(): boolean;
  /** Kills all processes of the browser with SIGKILL. */
  kill(): Promise<void>;
}

export interface RemoteChromiumOptions {
  /** Port of the browser; a free one by default. */
  port?: number;
  /** Host of the egress proxies, the only host to which the browser can connect. */
  egressHost?: string;
  /** Flags to use; by default those that the service requires. */
  flags?: readonly string[];
  /** Additional flags. */
  more?: readonly string[];
}

export async function startRemoteChromium(options: RemoteChromiumOptions = {}): Promise<RemoteChromium> {
  const { port = 0, egressHost = "127.0.0.1", flags = createBrowserFlags(egressHost), more = [] } = options;
  const folder = mkdtempSync(join(tmpdir(), "svc-remote-"));
  const account = process.getuid?.() === 0 ? BROWSER_ACCOUNT : {};
  if (process.getuid?.() === 0) chownSync(folder, BROWSER_ACCOUNT.uid, BROWSER_ACCOUNT.gid);
  const requiredFlags = ["--headless", `--remote-debugging-port=${port}`, `--user-data-dir=${folder}`];
  const child = spawn(chromePath(), [...requiredFlags, ...flags, ...more], {
    ...account,
    cwd: folder,
    env: { HOME: folder, TMPDIR: folder, PATH: "/usr/bin:/bin" },
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  const exited = once(child, "exit").finally(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  let stderr = "";
  const socketUrl = await new Promise<string>((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk;
      const [, url] = /listening on (ws:\S+)/.exec(stderr) ?? [];
      if (url) resolve(url);
    });
    child.once("exit", () => reject(new Error(`Chromium ended: ${stderr}`)));
  });
  const { host } = new URL(socketUrl);
  return {
    pid: child.pid!,
    port: Number(new URL(socketUrl).port),
    endpoint: `ws://${host}`,
    socketUrl,
    async contexts() {
      const browser = await connect({ browserWSEndpoint: socketUrl, defaultViewport: null });
      const count = browser.browserContexts().length;
      await browser.disconnect();
      return count - 1;
    },
    running: () => child.exitCode === null && child.signalCode === null,
    async kill() {
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, "SIGKILL");
      await exited;
    },
  };
}
