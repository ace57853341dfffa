/**
 * Starts and replaces the worker of an isolate's page, and counts the realms (ShadowRealms) that the worker has
 * created. Runs in the page. Code of actions runs only in realms.
 */
import type { Any } from "./any.js";

declare const self: Any;

/**
 * Returns the object whose methods the service calls. The browser evaluates this function's source text (see
 * `createHarnessCore`).
 * @param withOrigin true if the worker has the page's origin, as it needs for requests
 */
export function createThreadHost(withOrigin: boolean): unknown {
  const { Worker } = self;
  // Script of a new worker. Its message reports that the worker is ready, because some globals of the worker are
  // missing until then.
  const first = "postMessage(null)";
  // A worker from a data: URL has an opaque origin.
  const url = withOrigin ? URL.createObjectURL(new Blob([first])) : `data:text/javascript,${first}`;
  let worker: Any = null;
  /** Number of realms that the current worker has created. */
  let realms = 0;
  return {
    __proto__: null,
    /** Ends the current worker, and starts a new one. */
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
    /** True if the worker has created at least `realm` realms. */
    hasMade: (realm: number): boolean => realms >= realm,
  };
}
