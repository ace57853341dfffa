/** One Chromium for all services that the test files of this process start. Each service has its own browser contexts. */
import { type RemoteChromium, startRemoteChromium } from "./remote-chromium.js";
import { shareProcess, unshareProcess } from "./shared-processes.js";

let shared: Promise<RemoteChromium> | null = null;

async function startShared(): Promise<RemoteChromium> {
  const chromium = await startRemoteChromium();
  shareProcess(chromium.pid, chromium.kill);
  // Mocha's workers exit without closing their shared processes. So each process kills its Chromium when it exits.
  process.once("exit", () => void chromium.kill());
  return chromium;
}

/** Returns the endpoint of the shared browser for BROWSER_WS_ENDPOINTS. Starts the browser if none is running. */
export async function sharedBrowserEndpoint(): Promise<string> {
  const previous = await shared;
  if (previous?.running() === false) {
    unshareProcess(previous.pid);
    shared = null;
  }
  shared ??= startShared();
  return (await shared).endpoint;
}
