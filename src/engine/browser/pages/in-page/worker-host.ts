/** Keeps a fresh worker ahead of each run, in a page where no author's code ever runs. Runs inside the browser. */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Answers the object that the host talks to.
 * @param harness the source text of the worker's harness
 * @param leaveWithinMs how long a worker whose run has ended may take to answer once more
 */
export function workerHost(harness: string, leaveWithinMs: number): unknown {
  const { Worker, MessageChannel } = self;
  // An address of this kind gives the worker an origin that is nobody's: it has no storage, and shares none. A long one costs a
  // third of the start, so the harness comes by message.
  const url = "data:text/javascript,onmessage=(event)=>{onmessage=null;(0,eval)(event.data);onmessage(event)}";
  let print: (line: string) => void = () => {};
  let next: Any = null;

  function startWorker() {
    const worker = new Worker(url);
    const { port1: port, port2 } = new MessageChannel();
    const ready = Promise.withResolvers<boolean>();
    const answer = Promise.withResolvers<string>();
    const left = Promise.withResolvers<boolean>();
    port.onmessage = ({ data }: { data: string }) => {
      if (data[0] === "c") print(data.slice(1));
      else if (data[0] === "a") answer.resolve(data.slice(1));
      else if (data[0] === "b") left.resolve(true);
      else ready.resolve(true);
    };
    worker.postMessage(harness, [port2]);
    return { worker, port, ready: ready.promise, answer: answer.promise, left: left.promise };
  }

  /** Whether the worker's thread was still in hand: what is busy answers nothing, and its thread goes on for a while. */
  async function end({ worker, port, left }: Any): Promise<boolean> {
    port.postMessage(null);
    const late = new Promise<boolean>((resolve) => setTimeout(resolve, leaveWithinMs, false));
    const inHand = await Promise.race([left, late]);
    worker.terminate();
    port.close();
    return inHand;
  }

  return {
    __proto__: null,
    listen(bindingName: string): boolean {
      print = self[bindingName];
      return true;
    },
    run(source: string, name: string, payload: string, settings: string): Promise<string> {
      next.port.postMessage([source, name, payload, settings]);
      return next.answer;
    },
    /** Replaces the worker of the last run by a fresh one. Answers false when the page must be thrown away instead. */
    async renew(): Promise<boolean> {
      const last = next;
      next = startWorker();
      const [inHand] = await Promise.all([last === null || end(last), next.ready]);
      return inHand;
    },
  };
}
