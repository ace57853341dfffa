/**
 * `npm run browser-flags`: prints the switches with which a browser of BROWSER_WS_ENDPOINTS must be started, one per line.
 * EGRESS_PROXY_HOST must have the same value as on the runner.
 */
import { readConfig } from "../config.js";
import { createBrowserFlags } from "../engine/browser/chromium-flags.js";
import { runCommand } from "./command.js";

await runCommand(async () => {
  process.stdout.write(`${createBrowserFlags(readConfig().egressProxyHost).join("\n")}\n`);
});
