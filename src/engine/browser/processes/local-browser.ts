/** Browsers of this machine: started here, seen through /proc, ended here. */
import type { Logger } from "pino";
import { StartError } from "../../../errors.js";
import type { BrowserSource } from "../browser-source.js";
import { type ChromiumOptions, startChromium, sweepFolders } from "./chromium.js";
import { proveSandbox } from "./sandbox-proof.js";

export function localBrowser({ log, ...options }: ChromiumOptions & { log: Logger }): BrowserSource {
  return {
    name: "Chromium",

    open(stopped) {
      sweepFolders();
      if (!options.sandbox)
        log.warn("Chromium runs WITHOUT its sandbox (CHROME_SANDBOX=off): actions are not contained");
      return startChromium(options, stopped);
    },

    async inspect(chromium) {
      const proof = await proveSandbox(chromium);
      const { pid } = chromium;
      if (!options.sandbox || proof === null) return { pid, sandbox: options.sandbox };
      const open = proof.processes.filter(({ contained }) => !contained).map(({ kind }) => kind);
      if (open.length === 0) return { pid, sandbox: true };
      throw new StartError(
        `Chromium's processes are not sandboxed here (${[...new Set(open)].join(", ")}); set CHROME_SANDBOX=off to run ` +
          "actions all the same",
      );
    },

    fault: (error) => error,
  };
}
