/** Runs in the page of an isolate: starts and replaces its worker. */
import type { Any } from "./any.js";

declare const self: Any;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createWorkerThreadManager(hasOrigin: boolean): unknown {
  const { Worker } = self;
  // This message of a new worker reports that the worker is ready. Until then, some of its globals are missing.
  const readyScript = "postMessage(null)";
  // A worker from a data: URL has an opaque origin.
  const url = hasOrigin ? URL.createObjectURL(new Blob([readyScript])) : `data:text/javascript,${readyScript}`;
  let worker: Any = null;
  return {
    __proto__: null,
    /** Returns false if the browser cannot run isolates. */
    async replaceThread(): Promise<boolean> {
      if (!self.ShadowRealm || !self.Uint8Array.fromBase64) return false;
      worker?.terminate();
      worker = new Worker(url);
      await new Promise((resolve) => {
        worker.onmessage = resolve;
      });
      return true;
    },
  };
}
