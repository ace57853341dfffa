/**
 * Runs in the page of an isolate. Starts and replaces its one worker, and counts the realms that the worker has
 * created. No code of actions runs in the page or in the worker's scope.
 */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;
declare const self: Any;

/**
 * Its source text is evaluated in the browser, like `harnessCore`. Returns the object whose methods the service calls.
 * @param withOrigin true if the worker has the page's origin
 */
export function threadHost(withOrigin: boolean): unknown {
  const { Worker } = self;
  // Before a worker has evaluated its script, some of its globals are missing.
  const first = "postMessage(null)";
  // A worker from a data: URL has an opaque origin.
  const url = withOrigin ? URL.createObjectURL(new Blob([first])) : `data:text/javascript,${first}`;
  let worker: Any = null;
  /** Number of realms that the worker has created. */
  let realms = 0;
  return {
    __proto__: null,
    /** Ends the worker, and starts another. */
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
    /** True if the realm with this number, counted from 1, exists. */
    hasMade: (realm: number): boolean => realms >= realm,
  };
}
