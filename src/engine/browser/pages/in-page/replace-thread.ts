/** Runs in the page of an isolate: ends the isolate's previous worker, if there is one, and starts a new worker. */
import type { Any } from "./any.js";

declare const self: Any;

/** Resolves with false if the browser cannot run isolates. The browser evaluates this function's source text. */
export async function replaceThread(hasOrigin: boolean): Promise<boolean> {
  if (!self.ShadowRealm || !self.Uint8Array.fromBase64) return false;
  // This message of a new worker reports that the worker is ready. Until then, some of its globals are missing.
  const readyScript = "postMessage(null)";
  // A worker from a data: URL has an opaque origin, so it can be used only by an isolate without an origin.
  self.threadUrl ??= hasOrigin ? URL.createObjectURL(new Blob([readyScript])) : `data:text/javascript,${readyScript}`;
  self.thread?.terminate();
  self.thread = new self.Worker(self.threadUrl);
  await new Promise((resolve) => {
    self.thread.onmessage = resolve;
  });
  return true;
}
