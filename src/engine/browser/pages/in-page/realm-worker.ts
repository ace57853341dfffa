/**
 * Runs on the worker thread of an isolate page: creates one ShadowRealm for each run, and the next one in advance. No code of actions runs in
 * the worker's own global scope.
 */
import type { HostPlatform } from "./host-platform.js";
import type { ThreadMessage, ThreadStep } from "./messages.js";
import type { SentScript, TextsOf } from "./page-texts.js";
import type { HostCalls } from "./service-calls.js";

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;
declare const self: Any;

/** Limits after which a thread is replaced, because the memory of ended realms is freed only with the thread. */
export interface ThreadBounds {
  /**
   * Delay in ms between an answer and the creation of the next realm, so that the two do not compete on few cores. There is no delay while
   * runs follow each other sooner than this.
   */
  pauseMs: number;
  /** Maximum time in ms after the delay in which the last run's remaining code must end. */
  readyWithinMs: number;
  /** Maximum number of runs on one thread. */
  threadRuns: number;
  /** Sum of runs and of their milliseconds after which the memory of the thread is measured. */
  measureAfter: number;
  /** Length above which answers are read in parts. */
  messageCharacters: number;
}

/**
 * Its source text is evaluated in the browser, like `harnessCore`. Returns the object whose methods the service calls, and sends messages of the type
 * ThreadMessage. Posts a message to the page for each realm that exists: by then nothing of the last run is active. Objects made for a realm
 * stay in memory until the thread ends, so each realm creates few of them.
 * @param realm source text of the realm's harness
 * @param textsOf returns the scripts of a run; V8 reuses compiled code if the texts are identical
 * @param host the functions of this global scope that realms can use; the answer of a run then starts with its number of `fetch` calls
 * @param calls sends requests to the service; null without a network
 * @param ofNavigator members of `navigator` that a trial can read
 */
export function realmWorker(
  realm: string,
  textsOf: TextsOf,
  host: HostPlatform | null,
  calls: HostCalls | null,
  ofNavigator: readonly string[],
  bounds: ThreadBounds,
): unknown {
  const { ShadowRealm, navigator, performance } = self;
  const navigatorJson = JSON.stringify(Object.fromEntries(ofNavigator.map((name) => [name, navigator[name]])));
  let send: (message: ThreadMessage) => void = () => {};
  /** Starts a run in the realm that was created in advance. Null while there is none. */
  let startRun: Any = null;
  let hostRun: Any = null;
  let endLastRun = () => {};
  /** Number of the run whose messages are accepted. */
  let current = 0;
  let pause: ReturnType<typeof setTimeout> | undefined;
  /** True if the run has started within `pauseMs` after the previous one. The next realm is then created without a delay. */
  let isHurried = false;
  let answer = "";
  let answeredAt = Number.POSITIVE_INFINITY;
  let runs = 0;
  let unmeasured = 0;

  /**
   * Ends what the last run has left, and creates the next realm. Does nothing if it is too late for that, so that the
   * service discards the page.
   */
  function prepare(): void {
    clearTimeout(pause);
    pause = undefined;
    if (performance.now() - answeredAt > bounds.pauseMs + bounds.readyWithinMs) return;
    current += 1;
    endLastRun();
    const hostOfRun = host?.forRun() ?? null;
    startRun = new ShadowRealm().evaluate(realm)(hostOfRun?.hostScope ?? null, host?.description ?? "");
    hostRun = hostOfRun;
    endLastRun = () => void hostOfRun?.end();
    self.postMessage(null);
  }

  /** Counts a run with this duration. Returns the next step of the thread. */
  function countRun(ms: number): ThreadStep {
    runs += 1;
    // A long run may leave much memory in use.
    unmeasured += 1 + ms;
    if (runs >= bounds.threadRuns || host?.isFull() === true) return "replace";
    if (unmeasured < bounds.measureAfter) return "reuse";
    unmeasured = 0;
    return "measure";
  }

  /** Ends a run with this duration. Returns the message with its answer, or with the length of a long answer. */
  function endRun(ms: number, text: string): ThreadMessage {
    const step = countRun(ms);
    answer = `${step} ${text}`;
    answeredAt = performance.now();
    if (step !== "replace") pause = setTimeout(prepare, step === "reuse" && !isHurried ? bounds.pauseMs : 0);
    return answer.length <= bounds.messageCharacters ? `answer ${step} ${text}` : `long-answer ${answer.length}`;
  }

  /**
   * Returns the function that receives the run's messages until its answer. The answer is sent by the binding, because
   * code that continues would delay a promise.
   */
  function receiver(): (text: string) => void {
    current += 1;
    const runNumber = current;
    const hostOfRun = hostRun;
    return (text) => {
      if (runNumber !== current) return;
      if (text.startsWith("console ")) return send(text as ThreadMessage);
      // Later messages of this run are ignored.
      current += 1;
      calls?.reset();
      if (text === "needs-more") return send(endRun(0, text));
      const [, duration] = text.split(" ", 2);
      const result = text.slice(`answer ${duration} `.length);
      send(endRun(Number(duration), hostOfRun === null ? result : `${hostOfRun.end()} ${result}`));
    };
  }

  /** Returns the function by which the library in the run sends requests to the service until the run's answer. */
  function requester(): (receivePart: (...part: unknown[]) => void, text: string) => number {
    const runNumber = current;
    return (receivePart, text) => (runNumber === current && calls ? calls.send(receivePart, text) : 0);
  }

  return {
    __proto__: null,
    /** Creates the realm of the first run. */
    begin(bindingName: string): void {
      send = self[bindingName];
      calls?.connect((text) => send(`service ${text}`));
      prepare();
    },
    /**
     * Starts a run. Returns `late` if there is no realm for it. The answer follows by the binding.
     * @param standInsJson the names with a stand-in in a trial; null if the run is no trial
     * @param base address of the service that the run can call, or ""
     */
    run(
      payload: string,
      settings: string,
      forget: readonly string[],
      scripts: readonly SentScript[],
      standInsJson: string | null,
      base: string,
    ): string {
      isHurried = runs > 0 && performance.now() - answeredAt < bounds.pauseMs;
      if (pause !== undefined) prepare();
      if (startRun === null) return "late";
      answer = "";
      const texts = textsOf(forget, scripts);
      const hostOfRun = hostRun;
      const receive = receiver();
      const drop = startRun(receive, base, requester(), payload, settings, standInsJson, navigatorJson, ...texts);
      startRun = null;
      endLastRun = () => {
        hostOfRun?.end();
        drop();
      };
      return "";
    },
    /** Receives a part of the service's response to the request with that number. */
    answer: calls?.answer,
    /** Returns a part of the last answer, which was too long for one message. */
    part: (from: number, to: number): string => answer.slice(from, to),
  };
}
