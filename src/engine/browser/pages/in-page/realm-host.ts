/** Keeps a fresh realm ahead of each run, in a worker of a page; in neither is any author's code. Runs inside the browser. */
import type { Sent, TakeTexts } from "./page-texts.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/** When a thread is given up, and with it all that realms have left in its memory. */
export interface ThreadBounds {
  /** How long the last run's end and the next one's realm may take together, in milliseconds. */
  readyWithinMs: number;
  /** How long that waits until the run's answer has gone its way, unless the next run comes: on few cores one is in the way of the other. */
  pauseMs: number;
  /** How many runs a thread serves at most. */
  threadRuns: number;
  /** How many runs, and milliseconds of them, together there are before what the thread holds is looked at. */
  lookAfter: number;
}

/** Packages that are evaluated ahead of the run that has them, by texts that are kept. */
interface Ahead {
  key: string;
  scripts: readonly Sent[];
  namesJson: string | null;
}

/**
 * As `harnessCore`: evaluated by its source text. Answers the object that the host talks to. The page has one worker at a time, whose thread
 * serves runs one after the other: one for each run would cost more than all else of it.
 * @param harness the source text of the worker's harness
 * @param take what has the scripts of a run
 * @param ofNavigator what a run on trial is told of the navigator
 * @param standIns the JSON of the names to stand in for, by whose trial it is
 * @param withOrigin whether the worker has the page's origin
 */
export function realmHost(
  harness: string,
  take: TakeTexts,
  ofNavigator: readonly string[],
  standIns: Readonly<Record<string, string>>,
  withOrigin: boolean,
  bounds: ThreadBounds,
): unknown {
  const { navigator, Worker } = self;
  const navigatorJson = JSON.stringify(Object.fromEntries(ofNavigator.map((name) => [name, navigator[name]])));
  // A long address costs a third of the start, so the harness comes by message.
  const first = "onmessage=(event)=>{onmessage=null;(0,eval)(event.data)}";
  // By an address of its own data its origin is nobody's.
  const url = withOrigin ? URL.createObjectURL(new Blob([first])) : `data:text/javascript,${first}`;
  let print: (line: string) => void = () => {};
  let thread: Any = null;
  let prepared: Promise<unknown> = Promise.resolve();
  let pause: ReturnType<typeof setTimeout> | undefined;
  let late: ReturnType<typeof setTimeout> | undefined;
  /** The packages of the last run; those to be evaluated ahead, since the last two had the same; those that are; those that had better not be. */
  let lastKey: string | null = null;
  let ahead: Ahead | null = null;
  let aheadKey: string | null = null;
  const shunned = new Set<string>();

  const isSpent = () => thread === null || thread.runs >= bounds.threadRuns;

  /** Has a thread with little left in its memory. */
  function settleThread(): void {
    if (!isSpent()) return;
    thread?.worker.terminate();
    const worker = new Worker(url);
    worker.postMessage(harness);
    // `texts`: the contents that it has; `unseen`: the runs, and their milliseconds, since the last look at it.
    thread = { worker, texts: new Set(), runs: 0, unseen: 0 };
  }

  /** Counts a run of so many milliseconds. Answers how its answer is marked (worker-realm.ts). */
  function spend(ms: number): string {
    thread.runs += 1;
    // One that took long may have left much.
    thread.unseen += 1 + ms;
    // A new thread takes so long that the page had better not be asked meanwhile.
    if (isSpent()) return "t";
    if (thread.unseen < bounds.lookAfter) return "";
    thread.unseen = 0;
    return "l";
  }

  /** Resolves when nothing of the last run goes on, and the next one's realm is there. */
  function freshRealm({ worker }: Any): Promise<void> {
    const texts = ahead === null ? [] : take([], ahead.scripts);
    // One may have been forgotten.
    const wanted = texts.includes(undefined as Any) ? null : ahead;
    aheadKey = null;
    return new Promise((resolve) => {
      // What is printed from here on belongs to no run.
      worker.onmessage = ({ data }: { data: string }) => {
        if (data === "r") aheadKey = wanted?.key ?? null;
        else if (data === "n") shunned.add(wanted!.key);
        else return;
        resolve();
      };
      worker.postMessage(
        wanted && {
          scripts: forThread([], wanted.scripts, texts),
          namesJson: wanted.namesJson,
          navigatorJson,
        },
      );
    });
  }

  /** What names a run's packages, and whose trial it is; null where it has none, or one without a name of its content. */
  function keyOf(scripts: readonly Sent[], trialOf: string | null): string | null {
    const contents = scripts.slice(0, -1).map(([, , content]) => content);
    return contents.length === 0 || contents.includes("") ? null : [trialOf, ...contents].join("\n");
  }

  /** Has the packages of the run that begins evaluated ahead of the next, where the last run had them too. */
  function foresee(key: string | null, scripts: readonly Sent[], namesJson: string | null): void {
    // With the page's origin they could ask for something, which only a run may.
    const isAgain = !withOrigin && key !== null && key === lastKey && !shunned.has(key);
    const known = scripts.slice(0, -1).map(([name, , content]): Sent => [name, null, content, false]);
    ahead = isAgain ? { key, scripts: known, namesJson } : null;
    lastKey = key;
  }

  /** Has the last run come to its end, and the next one's realm made. Where that is late, an empty line says so: that run never begins. */
  function prepare(): void {
    clearTimeout(pause);
    pause = undefined;
    // What a thread that is given up had begun comes to no end.
    clearTimeout(late);
    settleThread();
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const own = setTimeout(() => {
      resolve(new Promise(() => {}));
      print("");
    }, bounds.readyWithinMs);
    late = own;
    prepared = promise;
    void freshRealm(thread).then(() => {
      clearTimeout(own);
      resolve(null);
    });
  }

  /** The same in a moment. What is printed from here on belongs to no run. */
  function prepareSoon(): void {
    thread.worker.onmessage = null;
    pause = setTimeout(prepare, bounds.pauseMs);
  }

  /** The scripts as the thread takes them: what it has is not sent again. */
  function forThread(forget: readonly string[], scripts: readonly Sent[], flat: readonly string[]): Sent[] {
    const { texts } = thread;
    const sent = scripts.map(([name, text, content, keep], at): Sent => {
      if (texts.has(content)) return [name, null, content, false];
      const isKept = keep || text === null;
      if (isKept) texts.add(content);
      return [name, flat[2 * at + 1]!, content, isKept];
    });
    for (const content of forget) texts.delete(content);
    return sent;
  }

  function answerTo({ worker }: Any, message: unknown): Promise<string> {
    return new Promise((resolve) => {
      worker.onmessage = ({ data }: { data: string }) => {
        if (data[0] === "c") print(data.slice(1));
        else if (data === "f") thread.runs = bounds.threadRuns;
        else if (data[0] === "a") resolve(data);
        else if (data[0] === "x") resolve("a0 x");
      };
      worker.postMessage(message);
    });
  }

  return {
    __proto__: null,
    listen(bindingName: string): void {
      print = self[bindingName];
    },
    async run(
      payload: string,
      settings: string,
      forget: readonly string[],
      scripts: readonly Sent[],
      trialOf: string | null,
    ): Promise<string> {
      const flat = take(forget, scripts);
      const namesJson = (trialOf !== null && standIns[trialOf]) || null;
      const key = keyOf(scripts, trialOf);
      if (pause !== undefined) prepare();
      await prepared;
      if (aheadKey !== null && aheadKey !== key) {
        ahead = null;
        prepare();
        await prepared;
      }
      const isAhead = aheadKey !== null;
      foresee(key, scripts, namesJson);
      const sent = forThread(forget, scripts, flat);
      const run = isAhead
        ? [forget, sent.slice(-1), payload, settings, null]
        : [forget, sent, payload, settings, namesJson];
      const answer = await answerTo(thread, [...run, navigatorJson]);
      const end = answer.indexOf(" ");
      const mark = spend(Number(answer.slice(1, end)));
      if (mark === "") prepareSoon();
      else prepare();
      return mark + answer.slice(end + 1);
    },
    /** Has the first run's realm prepared, as each run has the next one's. */
    async begin(): Promise<void> {
      prepare();
      await prepared;
    },
    /** Ends the thread, and has the next run's realm ready on another. */
    async replaceThread(): Promise<void> {
      thread.runs = bounds.threadRuns;
      prepare();
      await prepared;
    },
    /** Resolves when the next run's realm is ready. */
    async ready(): Promise<void> {
      await prepared;
    },
  };
}
