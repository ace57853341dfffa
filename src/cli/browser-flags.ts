/**
 * `npm run browser-flags`: the switches with which a browser of BROWSER_WS_ENDPOINTS is to be started, one a line. EGRESS_PROXY_HOST
 * as the runner has it.
 */
import { readConfig } from "../config.js";
import { browserFlags } from "../engine/browser/chromium-flags.js";
import { runCommand } from "./command.js";

await runCommand(async () => {
  process.stdout.write(`${browserFlags(readConfig().egressProxyHost).join("\n")}\n`);
});
