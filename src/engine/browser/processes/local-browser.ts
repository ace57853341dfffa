/** Starts and checks browsers on this machine. */
import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { runInBackground } from "../../../background.js";
import { StartError } from "../../../errors.js";
import type { BrowserSource, Chromium } from "../browser-source.js";
import { type ChromiumOptions, startChromium, sweepFolders } from "./chromium.js";
import { type ProcessProof, processesOf, proveSandbox } from "./sandbox-proof.js";

const ZYGOTE_CHECK_INTERVAL_MS = 100;

/** True if the process has ended. A process whose parent has not collected its status is a zombie. */
export function hasEnded(
  pid: number,
  read: (path: string) => string = (path) => readFileSync(path, "latin1"),
): boolean {
  try {
    return read(`/proc/${pid}/stat`).includes(") Z ");
  } catch (error) {
    // Any other error, such as too many open files, says nothing about the process.
    return ["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

/**
 * Returns the zygotes that the browser's main process has started. A process that a zygote has just forked also counts
 * as a zygote until it has set its own command line, although it may be a renderer, which ends without its browser.
 */
export function zygotesAmong(processes: readonly Pick<ProcessProof, "pid" | "parent" | "kind">[]): number[] {
  const main = new Set(processes.filter(({ kind }) => kind === "browser").map(({ pid }) => pid));
  return processes.filter(({ kind, parent }) => kind === "zygote" && main.has(parent)).map(({ pid }) => pid);
}

/** Ends a browser whose zygote has ended, because it cannot start a renderer and does not report the end of its renderers. */
async function watchZygotes({ pid, ended, stop }: Chromium): Promise<void> {
  if (pid === null || process.platform !== "linux") return;
  const zygotes = zygotesAmong(await processesOf(pid));
  const timer = setInterval(() => {
    if (zygotes.some((zygote) => hasEnded(zygote))) runInBackground(stop());
  }, ZYGOTE_CHECK_INTERVAL_MS);
  await ended;
  clearInterval(timer);
}

export function localBrowser({ log, ...options }: ChromiumOptions & { log: Logger }): BrowserSource {
  return {
    name: "Chromium",

    async open(stopped) {
      sweepFolders();
      if (!options.sandbox)
        log.warn("Chromium runs WITHOUT its sandbox (CHROME_SANDBOX=off): actions are not contained");
      const chromium = await startChromium(options, stopped);
      runInBackground(watchZygotes(chromium));
      return chromium;
    },

    async inspect(chromium) {
      const proof = await proveSandbox(chromium);
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
