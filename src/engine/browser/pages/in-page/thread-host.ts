/** Keeps one worker in a page, in neither of which is any author's code. Runs inside the browser. */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Answers the object that the host talks to.
 * @param withOrigin whether the worker has the page's origin
 */
export function threadHost(withOrigin: boolean): unknown {
  const { Worker } = self;
  // What is evaluated before a worker's own script may find half of its globals.
  const first = "postMessage(null)";
  // By an address of its own data its origin is nobody's.
  const url = withOrigin ? URL.createObjectURL(new Blob([first])) : `data:text/javascript,${first}`;
  let worker: Any = null;
  /** Realms that it has made ahead of runs. */
  let made = 0;
  return {
    __proto__: null,
    /** Ends the worker, and starts another. */
    async replaceThread(): Promise<void> {
      worker?.terminate();
      worker = new Worker(url);
      await new Promise((resolve) => {
        worker.onmessage = resolve;
      });
      made = 0;
      worker.onmessage = () => {
        made += 1;
      };
    },
    /** Whether the realm of that number, counted from 1, is there. */
    hasMade: (realm: number): boolean => made >= realm,
  };
}
