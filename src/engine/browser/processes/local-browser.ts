/** Source of browsers that run on this machine. */
import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { runInBackground } from "../../../background.js";
import { StartError } from "../../../errors.js";
import type { BrowserSource, Chromium } from "../browser-source.js";
import { type ChromiumOptions, removeOrphanedBrowsers, startChromium } from "./chromium.js";
import { type ProcessSandboxState, readProcessSandboxStates, waitForProcessSandboxStates } from "./sandbox-proof.js";

const ZYGOTE_CHECK_INTERVAL_MS = 100;

/** True also for a zombie: it has exited, but its parent has not yet read its exit status. */
export function hasProcessEnded(
  pid: number,
  readFile: (path: string) => string = (path) => readFileSync(path, "latin1"),
): boolean {
  try {
    return readFile(`/proc/${pid}/stat`).includes(") Z ");
  } catch (error) {
    // Other errors, such as too many open files, do not show that the process has ended.
    return ["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

/** Zygotes are processes that fork renderers. Only children of the main process count, because a new renderer first looks like a zygote. */
export function findZygotePids(processes: readonly Pick<ProcessSandboxState, "pid" | "parent" | "kind">[]): number[] {
  const mainPids = new Set(processes.filter(({ kind }) => kind === "browser").map(({ pid }) => pid));
  return processes.filter(({ kind, parent }) => kind === "zygote" && mainPids.has(parent)).map(({ pid }) => pid);
}

/** Stops a browser whose zygote has ended. Such a browser can start no renderers, and does not report when a renderer ends. */
async function watchZygotes({ pid, ended, stop }: Chromium): Promise<void> {
  if (pid === null || process.platform !== "linux") return;
  const zygotes = findZygotePids(readProcessSandboxStates(pid));
  const timer = setInterval(() => {
    if (zygotes.some((zygote) => hasProcessEnded(zygote))) runInBackground(stop());
  }, ZYGOTE_CHECK_INTERVAL_MS);
  await ended;
  clearInterval(timer);
}

export function createLocalBrowserSource({ log, ...options }: ChromiumOptions & { log: Logger }): BrowserSource {
  return {
    name: "Chromium",

    async open(stopped) {
      removeOrphanedBrowsers();
      if (!options.sandbox)
        log.warn("Chromium runs WITHOUT its sandbox (CHROME_SANDBOX=off): actions are not contained");
      const chromium = await startChromium(options, stopped);
      runInBackground(watchZygotes(chromium));
      return chromium;
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

    describeFailure: (error) => error,
  };
}
