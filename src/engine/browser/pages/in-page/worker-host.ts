/** Keeps a fresh worker ahead of each run, in a page where no author's code ever runs. Runs inside the browser. */

import type { TakeTexts } from "./page-texts.js";
import type { HostCalls } from "./service-calls.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Answers the object that the host talks to.
 * @param harness the source text of the worker's harness
 * @param take what has the scripts of a run
 * @param calls the way of requests to the service
 * @param withOrigin whether the worker has the page's origin
 * @param leaveWithinMs how long a worker whose run has ended may take to answer once more
 * @param readyWithinMs how long that and the next one's start may take where it is begun with the run's end
 */
export function workerHost(
  harness: string,
  take: TakeTexts,
  calls: HostCalls,
  withOrigin: boolean,
  leaveWithinMs: number,
  readyWithinMs: number,
): unknown {
  const { Worker, MessageChannel } = self;
  // A long address costs a third of the start, so the harness comes by message.
  const first = "onmessage=(event)=>{onmessage=null;(0,eval)(event.data);onmessage(event)}";
  // By an address of its own data a worker's origin is nobody's: it has no storage, and shares none.
  const url = withOrigin ? URL.createObjectURL(new Blob([first])) : `data:text/javascript,${first}`;
  let print: (line: string) => void = () => {};
  let next: Any = null;
  let prepared: Promise<unknown> = Promise.resolve();

  function startWorker() {
    const worker = new Worker(url);
    const { port1: port, port2 } = new MessageChannel();
    const ready = Promise.withResolvers<boolean>();
    const answer = Promise.withResolvers<string>();
    const left = Promise.withResolvers<boolean>();
    let over = false;
    port.onmessage = ({ data }: { data: string | [unknown, string] }) => {
      // What comes after the answer belongs to no run.
      if (typeof data !== "string") {
        const [own, text] = data;
        if (!over) calls.take((...part) => port.postMessage([own, ...part]), text);
      } else if (data[0] === "c") {
        if (!over) print(data.slice(1));
      } else if (data[0] === "a") {
        over = true;
        answer.resolve(data.slice(1));
      } else if (data[0] === "b") left.resolve(true);
      else ready.resolve(true);
    };
    worker.postMessage(harness, [port2]);
    return { worker, port, ready: ready.promise, answer: answer.promise, left: left.promise };
  }

  /** Whether it came in time: what is busy answers nothing. */
  function inTime(answer: Promise<boolean>): Promise<boolean> {
    const late = new Promise<boolean>((resolve) => setTimeout(resolve, leaveWithinMs, false));
    return Promise.race([answer, late]);
  }

  /** Whether the worker's thread was still in hand; else it goes on for a while. */
  async function end({ worker, port, left }: Any): Promise<boolean> {
    port.postMessage(null);
    const inHand = await inTime(left);
    worker.terminate();
    port.close();
    return inHand;
  }

  /** Replaces the worker of the last run by a fresh one. Answers false when the page must be thrown away instead. */
  async function renew(): Promise<boolean> {
    const last = next;
    calls.drop();
    next = startWorker();
    const [inHand] = await Promise.all([last === null || end(last), next.ready]);
    return inHand;
  }

  /** Begins to renew for the run to come; where that fails or is late, an empty line says so, and the run never begins. */
  function prepare(): void {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const giveUp = () => {
      resolve(new Promise(() => {}));
      print("");
    };
    const late = setTimeout(giveUp, readyWithinMs);
    prepared = promise.finally(() => clearTimeout(late));
    renew().then((inHand) => (inHand ? resolve(null) : giveUp()), giveUp);
  }

  return {
    __proto__: null,
    listen(bindingName: string): void {
      print = self[bindingName];
    },
    /**
     * `base`: that of the service, where the run may ask it for something. Where it has a network, how often it called `fetch` stands before
     * its answer.
     */
    async run(
      payload: string,
      settings: string,
      forget: readonly string[],
      scripts: readonly Any[],
      trialOf: string | null,
      _standInsJson: string | null,
      base: string,
    ): Promise<string> {
      const texts = take(forget, scripts);
      // Here a trial of what names more would cost as much as the run itself.
      if (trialOf !== null && trialOf !== "language") return "x";
      await prepared;
      next.port.postMessage([payload, settings, base, ...texts]);
      const answer: string = await next.answer;
      if (withOrigin) return answer;
      prepare();
      return answer.slice(answer.indexOf(" ") + 1);
    },
    listenService(bindingName: string): void {
      calls.listen(self[bindingName]);
    },
    answer: calls.answer,
    /** As the function of that name: a worker with the page's origin is renewed when its requests have come to their end, others with each run. */
    renew,
    /** Resolves when the first run's worker is ready. */
    async begin(): Promise<void> {
      prepare();
      await prepared;
    },
  };
}
