/** Keeps a fresh worklet ahead of each run, in a page where no author's code ever runs. Runs inside the browser. */

import type { StandIn } from "../worker-globals.js";
import type { TakeTexts } from "./page-texts.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Answers the object that the host talks to. Worklets of a frame share a thread, one global
 * scope after the other, which ends with the frame: a thread of its own would cost a run more than all else of it.
 * @param harness the source text of the worklet's harness
 * @param take what has the scripts of a run
 * @param ofNavigator what a run on trial is told of the navigator
 * @param standIns names to stand in for, by whose trial it is
 * @param leaveWithinMs how long a worklet whose run has ended may take to answer once more
 * @param threadRuns how many runs a thread serves at most
 * @param threadRunMs how long they may last together, until the last begins, beside what their packages' texts account for
 * @param threadCharacters how much of packages' texts it evaluates, until the last begins
 * @param charactersAMs of them, how many a millisecond takes
 */
export function workletHost(
  harness: string,
  take: TakeTexts,
  ofNavigator: readonly string[],
  standIns: Readonly<Record<string, readonly StandIn[]>>,
  leaveWithinMs: number,
  threadRuns: number,
  threadRunMs: number,
  threadCharacters: number,
  charactersAMs: number,
): unknown {
  const { document, navigator } = self;
  const navigatorJson = JSON.stringify(Object.fromEntries(ofNavigator.map((name) => [name, navigator[name]])));
  const url = `data:text/javascript,${encodeURIComponent(harness)}`;
  let print: (line: string) => void = () => {};
  let frame: Any = null;
  let runs = 0;
  let runMs = 0;
  let characters = 0;
  let next: Any = null;

  /** The frame that holds a thread with little left in its memory. */
  function freshFrame(): Any {
    if (frame !== null && runs < threadRuns && runMs < threadRunMs && characters < threadCharacters) return frame;
    frame?.remove();
    runs = 0;
    runMs = 0;
    characters = 0;
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
      else if (data[0] === "a") answer.resolve(data);
      else if (data[0] === "x") answer.resolve("a0 x");
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
    async run(
      payload: string,
      settings: string,
      forget: readonly string[],
      scripts: readonly Any[],
      trialOf: string | null,
    ): Promise<string> {
      const texts = take(forget, scripts);
      const names = trialOf === null ? null : standIns[trialOf];
      next.node.port.postMessage([payload, settings, names, navigatorJson, ...texts]);
      const answer: string = await next.answer;
      const end = answer.indexOf(" ");
      // Names and texts in turn, the author's own last.
      const ofPackages = texts.slice(0, -2).reduce((sum, text, at) => sum + (at % 2 === 0 ? 0 : text.length), 0);
      runs += 1;
      characters += ofPackages;
      // As its thread saw it: what it waited for the machine meanwhile, or in line, left nothing in the memory.
      runMs += Math.max(0, Number(answer.slice(1, end)) - ofPackages / charactersAMs);
      return answer.slice(end + 1);
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
