/** Source of browsers that run on this machine. */
import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { runInBackground } from "../../../background.js";
import { StartError } from "../../../errors.js";
import type { BrowserSource, Chromium } from "../browser-source.js";
import { type ChromiumOptions, removeLeftovers, startChromium } from "./chromium.js";
import { type ProcessProof, readProcesses, readSandboxState } from "./sandbox-proof.js";

const ZYGOTE_CHECK_INTERVAL_MS = 100;

/** True if the process has ended, or is a zombie: its parent has not collected its status. */
export function hasEnded(
  pid: number,
  readFile: (path: string) => string = (path) => readFileSync(path, "latin1"),
): boolean {
  try {
    return readFile(`/proc/${pid}/stat`).includes(") Z ");
  } catch (error) {
    // Other errors, such as too many open files, do not mean that the process has ended.
    return ["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

/**
 * Returns the zygotes (processes that fork renderers) of the browser's main process. Only its direct children are
 * returned, because a new renderer looks like a zygote until it has set its own command line.
 */
export function findZygotes(processes: readonly Pick<ProcessProof, "pid" | "parent" | "kind">[]): number[] {
  const main = new Set(processes.filter(({ kind }) => kind === "browser").map(({ pid }) => pid));
  return processes.filter(({ kind, parent }) => kind === "zygote" && main.has(parent)).map(({ pid }) => pid);
}

/**
 * Stops a browser whose zygote process has ended. Such a browser can start no renderers, and does not report when a
 * renderer ends.
 */
async function watchZygotes({ pid, ended, stop }: Chromium): Promise<void> {
  if (pid === null || process.platform !== "linux") return;
  const zygotes = findZygotes(await readProcesses(pid));
  const timer = setInterval(() => {
    if (zygotes.some((zygote) => hasEnded(zygote))) runInBackground(stop());
  }, ZYGOTE_CHECK_INTERVAL_MS);
  await ended;
  clearInterval(timer);
}

export function createLocalBrowserSource({ log, ...options }: ChromiumOptions & { log: Logger }): BrowserSource {
  return {
    name: "Chromium",

    async open(stopped) {
      removeLeftovers();
      if (!options.sandbox)
        log.warn("Chromium runs WITHOUT its sandbox (CHROME_SANDBOX=off): actions are not contained");
      const chromium = await startChromium(options, stopped);
      runInBackground(watchZygotes(chromium));
      return chromium;
    },

    async checkSandbox(chromium) {
      const proof = await readSandboxState(chromium);
      const { pid } = chromium;
      if (!options.sandbox || proof === null) return { pid, sandbox: options.sandbox };
      const open = proof.processes.filter(({ contained }) => !contained).map(({ kind }) => kind);
      if (open.length === 0) return { pid, sandbox: true };
      throw new StartError(
        `Chromium's processes are not sandboxed here (${[...new Set(open)].join(", ")}); set CHROME_SANDBOX=off to run ` +
          "actions without a sandbox",
      );
    },

    describeFailure: (error) => error,
  };
}
