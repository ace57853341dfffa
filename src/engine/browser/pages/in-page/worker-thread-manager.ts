/** Runs in the page of an isolate: starts and replaces its worker, and counts the worker's realms (ShadowRealms). */
import type { Any } from "./any.js";

declare const self: Any;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createWorkerThreadManager(withOrigin: boolean): unknown {
  const { Worker } = self;
  // This message of a new worker reports that the worker is ready. Until then, some of its globals are missing.
  const first = "postMessage(null)";
  // A worker from a data: URL has an opaque origin.
  const url = withOrigin ? URL.createObjectURL(new Blob([first])) : `data:text/javascript,${first}`;
  let worker: Any = null;
  let realms = 0;
  return {
    __proto__: null,
    async replaceThread(): Promise<void> {
      worker?.terminate();
      worker = new Worker(url);
      await new Promise((resolve) => {
        worker.onmessage = resolve;
      });
      realms = 0;
      worker.onmessage = () => {
        realms += 1;
      };
    },
    hasMade: (realm: number): boolean => realms >= realm,
  };
}
