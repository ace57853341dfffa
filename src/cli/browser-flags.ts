/**
 * `npm run browser-flags`: prints the command-line switches that each browser of BROWSER_WS_ENDPOINTS needs, one per line.
 * EGRESS_PROXY_HOST must have the same value as for the process that runs actions.
 */
import { readConfig } from "../config.js";
import { createBrowserFlags } from "../engine/browser/chromium-flags.js";
import { runCommand } from "./command.js";

await runCommand(async () => {
  process.stdout.write(`${createBrowserFlags(readConfig().egressProxyHost).join("\n")}\n`);
});
