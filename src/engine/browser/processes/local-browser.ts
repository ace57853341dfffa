/** Source of browsers that run on this machine. */
import type { Logger } from "pino";
import { StartError } from "../../../errors.js";
import type { BrowserSource } from "../browser-source.js";
import { type ChromiumOptions, removeOrphanedBrowsers, startChromium } from "./chromium.js";
import { waitForProcessSandboxStates } from "./sandbox-proof.js";

export function createLocalBrowserSource({ log, ...options }: ChromiumOptions & { log: Logger }): BrowserSource {
  return {
    name: "Chromium",

    async open(stopped) {
      removeOrphanedBrowsers();
      if (!options.sandbox)
        log.warn("Chromium runs WITHOUT its sandbox (CHROME_SANDBOX=off): actions are not contained");
      return startChromium(options, stopped);
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
