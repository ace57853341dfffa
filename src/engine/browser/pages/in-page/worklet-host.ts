/** Keeps a fresh worklet ahead of each run, in a page where no author's code ever runs. Runs inside the browser. */
import type { TakeTexts } from "./page-texts.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/** When a thread is given up, and before it the scopes on it. */
export interface WorkletBounds {
  /** How long the last run's worklet and the next one's start may take together, in milliseconds. */
  readyWithinMs: number;
  /** How many runs a thread serves at most, and how long their authors' own code may have taken together, or in one, until the last begins. */
  threadRuns: number;
  threadMs: number;
  runMs: number;
  /** How many ended scopes are kept at most, and of how many characters of packages. */
  scopes: number;
  scopeCharacters: number;
  /** Of packages' characters, how many a millisecond takes at least, where the machine does much else; what takes longer counts as the author's own. */
  charactersAMs: number;
}

/**
 * As `harnessCore`: evaluated by its source text. Answers the object that the host talks to. Worklets of a page share a thread, one global
 * scope after the other, and what it has compiled of a text; it ends with the last of their frames. A thread of its own would cost a run
 * more than all else of it. A scope ends with its frame.
 * @param harness the source text of the worklet's harness
 * @param take what has the scripts of a run
 * @param ofNavigator what a run on trial is told of the navigator
 * @param standIns the JSON of the names to stand in for, by whose trial it is
 */
export function workletHost(
  harness: string,
  take: TakeTexts,
  ofNavigator: readonly string[],
  standIns: Readonly<Record<string, string>>,
  bounds: WorkletBounds,
): unknown {
  const { document, navigator } = self;
  const navigatorJson = JSON.stringify(Object.fromEntries(ofNavigator.map((name) => [name, navigator[name]])));
  const url = `data:text/javascript,${encodeURIComponent(harness)}`;
  let print: (line: string) => void = () => {};
  /** A frame and a scope that hold the thread, and nothing else. */
  let thread: Any = null;
  /** The frame of the last scopes. */
  let crowd: Any = null;
  let last: Any = null;
  let next: Promise<Any>;

  const addFrame = () => document.body.appendChild(document.createElement("iframe"));

  async function addScope({ contentWindow: { OfflineAudioContext } }: Any, module: string): Promise<Any> {
    // Draws no sound: it is where worklets are had that share a thread.
    const audio = new OfflineAudioContext(1, 1, 44_100);
    await audio.audioWorklet.addModule(module);
    return audio;
  }

  function endCrowd(): void {
    crowd?.frame.remove();
    crowd = null;
  }

  const isSpent = () => thread === null || thread.runs >= bounds.threadRuns || thread.ms >= bounds.threadMs;

  /** Has a thread with little left in its memory. */
  async function settleThread(): Promise<void> {
    if (!isSpent()) return;
    endCrowd();
    thread?.frame.remove();
    const frame = addFrame();
    thread = { frame, audio: await addScope(frame, "data:text/javascript,"), runs: 0, ms: 0 };
  }

  /** The frame of the next scope; those that have ended are gone where they may hold much. */
  function frameOfNext(): Any {
    if (crowd !== null && (crowd.runs >= bounds.scopes || crowd.characters >= bounds.scopeCharacters)) endCrowd();
    crowd ??= { frame: addFrame(), runs: 0, characters: 0 };
    return crowd.frame;
  }

  async function startWorklet(onFailure: () => void) {
    if (last !== null) {
      last.node.port.postMessage(null);
      // Before the thread is asked for another: the page would wait for it with all that it has, timers too.
      await last.left;
      last.node.port.close();
    }
    await settleThread();
    const frame = frameOfNext();
    const audio = await addScope(frame, url);
    const node = new frame.contentWindow.AudioWorkletNode(audio, "run");
    const answer = Promise.withResolvers<string>();
    const left = Promise.withResolvers<void>();
    const settle = (text: string) => {
      // What it prints from here on belongs to no run.
      node.port.onmessage = ({ data }: { data: string }) => data === "b" && left.resolve();
      answer.resolve(text);
    };
    node.port.onmessage = ({ data }: { data: string }) => {
      if (data[0] === "c") print(data.slice(1));
      else if (data[0] === "a") settle(data);
      else if (data[0] === "x") settle("a0 0 x");
    };
    node.onprocessorerror = onFailure;
    // All of it is held: the processor ends with what holds it.
    return { audio, node, answer: answer.promise, left: left.promise };
  }

  /** Has the last worklet come to its end, and the next run's started. Where that fails or is late, an empty line says so: that run never begins. */
  function prepare(): void {
    const { promise, resolve } = Promise.withResolvers<Any>();
    const giveUp = () => {
      resolve(new Promise(() => {}));
      print("");
    };
    const late = setTimeout(giveUp, bounds.readyWithinMs);
    next = promise.finally(() => clearTimeout(late));
    startWorklet(giveUp).then(resolve, giveUp);
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
      const namesJson = trialOf === null ? null : standIns[trialOf];
      last = await next;
      last.node.port.postMessage([payload, settings, namesJson, navigatorJson, ...texts]);
      const answer: string = await last.answer;
      // Names and texts in turn, the author's own last.
      const ofPackages = texts.slice(0, -2).reduce((sum, text, at) => sum + (at % 2 === 0 ? 0 : text.length), 0);
      const [packagesMs, ownMs] = answer.split(" ", 2) as [string, string];
      crowd.runs += 1;
      crowd.characters += ofPackages;
      thread.runs += 1;
      const ms = Number(ownMs) + Math.max(0, Number(packagesMs.slice(1)) - ofPackages / bounds.charactersAMs);
      // One that took long may have left much at once.
      thread.ms += ms < bounds.runMs ? ms : bounds.threadMs;
      // A new thread takes so long that the page had better not be asked meanwhile.
      const mark = isSpent() ? "t" : "";
      prepare();
      return mark + answer.slice(packagesMs.length + ownMs.length + 2);
    },
    /** Has the first run's worklet prepared, as each run has the next one's. */
    async begin(): Promise<void> {
      prepare();
      await next;
    },
    /** Resolves when the next run's worklet is ready. */
    async ready(): Promise<void> {
      await next;
    },
  };
}
