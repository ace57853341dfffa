/** Gives each run a realm of its own, in a worker whose own scope no author's code is in, and keeps the next one's ahead. Runs inside the browser. */
import type { LentPlatform } from "./lent-platform.js";
import type { ThreadMessage, ThreadStep } from "./messages.js";
import type { Sent, TakeTexts } from "./page-texts.js";
import type { HostCalls } from "./service-calls.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/** When a thread is given up, and with it all that realms have left in its memory; and how its answers go. */
export interface ThreadBounds {
  /**
   * How long the next run's realm waits until the last one's answer has gone its way: on few cores one is in the way of the other. It does not
   * where runs come one upon the other. In ms.
   */
  pauseMs: number;
  /** How long that and the end of what the last run left may take together. In ms. */
  readyWithinMs: number;
  /** How many runs a thread serves at most. */
  threadRuns: number;
  /** How many runs, and milliseconds of them, together there are before what the thread holds is looked at. */
  lookAfter: number;
  /** A longer answer is kept, to be had in parts. */
  messageCharacters: number;
}

/** Packages that are evaluated ahead of the run that has them, by texts that are kept. */
interface Ahead {
  key: string;
  scripts: readonly Sent[];
  namesJson: string | null;
}

/**
 * As `harnessCore`: evaluated by its source text. Returns the object that the host calls, and sends it messages of the type ThreadMessage.
 * Tells the page of each run's realm when it is there, so that nothing of the last run goes on. What has been made for a
 * realm is held until the thread ends, so that an ended one is left with as little as can be.
 * @param realm the source text of a realm's harness
 * @param take what has the scripts of a run: their texts are the same from run to run, by which V8 finds what it has compiled of them
 * @param lent what realms are lent of this scope; before an answer then stands how often `fetch` was called
 * @param calls the way of requests to the service, where there is one
 * @param ofNavigator what a run on trial is told of the navigator
 * @param standIns the JSON of the names to stand in for, by whose trial it is
 */
export function realmWorker(
  realm: string,
  take: TakeTexts,
  lent: LentPlatform | null,
  calls: HostCalls | null,
  ofNavigator: readonly string[],
  standIns: Readonly<Record<string, string>>,
  bounds: ThreadBounds,
): unknown {
  const { ShadowRealm, navigator, performance } = self;
  const navigatorJson = JSON.stringify(Object.fromEntries(ofNavigator.map((name) => [name, navigator[name]])));
  let say: (message: ThreadMessage) => void = () => {};
  let next: Any = null;
  let loan: Any = null;
  let end = () => {};
  /** Who may speak: the run, or what is evaluated ahead, of that number. */
  let count = 0;
  let pause: ReturnType<typeof setTimeout> | undefined;
  /** Whether the run came sooner than that after the last: the next one may, too. */
  let isHurried = false;
  /** What is evaluated ahead. */
  let loading: Promise<void> | null = null;
  /** Of the last run, and when it came. */
  let answer = "";
  let answeredAt = Number.POSITIVE_INFINITY;
  let runs = 0;
  let unseen = 0;
  /** The packages of the last run; those to be evaluated ahead, since the last two had the same; those that are; those that had better not be. */
  let lastKey: string | null = null;
  let ahead: Ahead | null = null;
  let aheadKey: string | null = null;
  const shunned = new Set<string>();

  const tellReady = () => self.postMessage(null);

  function makeRealm(): void {
    end();
    const own = lent?.forRun() ?? null;
    next = new ShadowRealm().evaluate(realm)(own?.lender ?? null, lent?.description ?? "");
    loan = own;
    end = () => void own?.end();
  }

  /** Evaluates packages in the realm that was made; where that is not good, there is another without them. */
  function load({ key, namesJson }: Ahead, texts: readonly string[]): void {
    const own = count;
    const { promise, resolve } = Promise.withResolvers<void>();
    loading = promise;
    const done = (isGood: boolean) => {
      if (own !== count) return;
      if (isGood) aheadKey = key;
      else {
        shunned.add(key);
        makeRealm();
      }
      tellReady();
      resolve();
    };
    end = next(done, "", null, null, "", namesJson, navigatorJson, ...texts);
  }

  /** Has nothing of the last run go on, and the next one's realm made. Too late for that, there is none: the host has given this thread up. */
  function prepare(): void {
    clearTimeout(pause);
    pause = undefined;
    if (performance.now() - answeredAt > bounds.pauseMs + bounds.readyWithinMs) return;
    count += 1;
    aheadKey = null;
    loading = null;
    makeRealm();
    const texts = ahead === null ? [] : take([], ahead.scripts);
    // One may have been forgotten.
    if (ahead === null || texts.includes(undefined as Any)) tellReady();
    else load(ahead, texts);
  }

  /** What names a run's packages, and whose trial it is; null where it has none, or one without a name of its content. */
  function keyOf(scripts: readonly Sent[], trialOf: string | null): string | null {
    const contents = scripts.slice(0, -1).map(([, , content]) => content);
    return contents.length === 0 || contents.includes("") ? null : [trialOf, ...contents].join("\n");
  }

  /** Has the packages of the run that begins evaluated ahead of the next, where the last run had them too. */
  function foresee(key: string | null, scripts: readonly Sent[], namesJson: string | null): void {
    // With a way out they could ask for something, which only a run may.
    const isAgain = lent === null && key !== null && key === lastKey && !shunned.has(key);
    const known = scripts.slice(0, -1).map(([name, , content]): Sent => [name, null, content, false]);
    ahead = isAgain ? { key, scripts: known, namesJson } : null;
    lastKey = key;
  }

  /** Counts a run of so many milliseconds. Returns the next step of the thread. */
  function spend(ms: number): ThreadStep {
    runs += 1;
    // One that took long may have left much.
    unseen += 1 + ms;
    if (runs >= bounds.threadRuns || lent?.isFull() === true) return "replace";
    if (unseen < bounds.lookAfter) return "reuse";
    unseen = 0;
    return "measure";
  }

  /** Ends a run of so many milliseconds. Returns the message with its answer, or with the length of a long answer. */
  function endOf(ms: number, text: string): ThreadMessage {
    const step = spend(ms);
    answer = `${step} ${text}`;
    answeredAt = performance.now();
    // A thread that is given up makes no more.
    if (step !== "replace") pause = setTimeout(prepare, step === "reuse" && !isHurried ? bounds.pauseMs : 0);
    return answer.length <= bounds.messageCharacters ? `answer ${step} ${text}` : `long-answer ${answer.length}`;
  }

  /** Receives what the run sends, until its answer. The answer leaves by the binding, since code that goes on would hold back a promise. */
  function listener(): (text: string) => void {
    count += 1;
    const own = count;
    const lastLoan = loan;
    return (text) => {
      if (own !== count) return;
      if (text.startsWith("console ")) return say(text as ThreadMessage);
      // Nothing more is heard of it.
      count += 1;
      calls?.drop();
      if (text === "needs-more") return say(endOf(0, text));
      const [, duration] = text.split(" ", 2);
      const result = text.slice(`answer ${duration} `.length);
      say(endOf(Number(duration), lastLoan === null ? result : `${lastLoan.end()} ${result}`));
    };
  }

  /** What the run's library asks the service by, until the run's answer. */
  function asker(): (hear: (...part: unknown[]) => void, text: string) => void {
    const own = count;
    return (hear, text) => {
      if (own === count) calls?.take(hear, text);
    };
  }

  return {
    __proto__: null,
    /** Has the first run's realm made. */
    begin(bindingName: string): void {
      say = self[bindingName];
      calls?.listen((text) => say(`service ${text}`));
      prepare();
    },
    /**
     * Returns as soon as the run has begun, or `late` if it cannot begin. The answer follows by the binding: a text, or its length. If realms
     * are lent something, that is said. `standInsJson`: the names to stand in for, where they are the scripts' own. `base`: that of the service,
     * where the run may ask it for something.
     */
    async run(
      payload: string,
      settings: string,
      forget: readonly string[],
      scripts: readonly Sent[],
      trialOf: string | null,
      standInsJson: string | null,
      base: string,
    ): Promise<string | number> {
      isHurried = runs > 0 && performance.now() - answeredAt < bounds.pauseMs;
      if (pause !== undefined) prepare();
      if (next === null) return "late";
      if (loading !== null) await loading;
      answer = "";
      const flat = take(forget, scripts);
      const namesJson = standInsJson ?? ((trialOf !== null && standIns[trialOf]) || null);
      const key = keyOf(scripts, trialOf);
      const isAhead = aheadKey !== null && aheadKey === key;
      if (aheadKey !== null && !isAhead) makeRealm();
      foresee(key, scripts, namesJson);
      const given = isAhead ? [null, navigatorJson, ...flat.slice(-2)] : [namesJson, navigatorJson, ...flat];
      const lastLoan = loan;
      const hear = listener();
      const drop = next(hear, base, asker(), payload, settings, ...given);
      next = null;
      end = () => {
        lastLoan?.end();
        drop();
      };
      return "";
    },
    /** A part of the service's answer to the call of that number. */
    answer: calls?.answer,
    /** Of the last answer. */
    part: (from: number, to: number): string => answer.slice(from, to),
  };
}
