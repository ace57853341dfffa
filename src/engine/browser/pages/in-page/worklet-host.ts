/** Keeps a fresh worklet ahead of each run, in a page where no author's code ever runs. Runs inside the browser. */

import type { TakeTexts } from "./page-texts.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Answers the object that the host talks to. Worklets of a frame share a thread, one global
 * scope after the other, which ends with the frame: a thread of its own would cost a run more than all else of it.
 * @param harness the source text of the worklet's harness
 * @param take what has the scripts of a run
 * @param leaveWithinMs how long a worklet whose run has ended may take to answer once more
 * @param threadRuns how many runs a thread serves at most
 * @param threadRunMs how long they may last together, until the last begins
 */
export function workletHost(
  harness: string,
  take: TakeTexts,
  leaveWithinMs: number,
  threadRuns: number,
  threadRunMs: number,
): unknown {
  const { document, performance } = self;
  const url = `data:text/javascript,${encodeURIComponent(harness)}`;
  let print: (line: string) => void = () => {};
  let frame: Any = null;
  let runs = 0;
  let runMs = 0;
  let next: Any = null;

  /** The frame that holds a thread with little left in its memory. */
  function freshFrame(): Any {
    if (frame !== null && runs < threadRuns && runMs < threadRunMs) return frame;
    frame?.remove();
    runs = 0;
    runMs = 0;
    return document.body.appendChild(document.createElement("iframe"));
  }

  async function startWorklet() {
    frame = freshFrame();
    const { OfflineAudioContext, AudioWorkletNode } = frame.contentWindow;
    // Draws no sound: it is where worklets are had that share a thread.
    const audio = new OfflineAudioContext(1, 1, 44_100);
    await audio.audioWorklet.addModule(url);
    const node = new AudioWorkletNode(audio, "run");
    const ready = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string>();
    const left = Promise.withResolvers<boolean>();
    node.port.onmessage = ({ data }: { data: string }) => {
      if (data[0] === "c") print(data.slice(1));
      else if (data[0] === "a") answer.resolve(data.slice(1));
      else if (data[0] === "b") left.resolve(true);
      else ready.resolve();
    };
    await ready.promise;
    // All of it is held: the processor ends with what holds it.
    return { audio, node, answer: answer.promise, left: left.promise };
  }

  /** Whether the worklet was still in hand; else its thread goes on for a while. */
  async function end({ node: { port }, left }: Any): Promise<boolean> {
    port.postMessage(null);
    const late = new Promise<boolean>((resolve) => setTimeout(resolve, leaveWithinMs, false));
    const inHand = await Promise.race([left, late]);
    port.close();
    return inHand;
  }

  return {
    __proto__: null,
    listen(bindingName: string): boolean {
      print = self[bindingName];
      return true;
    },
    async run(payload: string, settings: string, forget: readonly string[], scripts: readonly Any[]): Promise<string> {
      const begun = performance.now();
      next.node.port.postMessage([payload, settings, ...take(forget, scripts)]);
      const answer = await next.answer;
      runs += 1;
      runMs += performance.now() - begun;
      return answer;
    },
    /** Replaces the worklet of the last run by a fresh one. Answers false when the page must be thrown away instead. */
    async renew(): Promise<boolean> {
      const last = next;
      if (last !== null && !(await end(last))) return false;
      next = await startWorklet();
      return true;
    },
  };
}
