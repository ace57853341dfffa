/** Runs on the worker thread of an isolate: creates a ShadowRealm for each run, and the next one in advance. */
import type { Any } from "./any.js";
import type { WorkerPlatform } from "./host-platform.js";
import type { SentScript, ThreadMessage, ThreadUseAfterRun } from "./messages.js";
import type { HostServiceCalls } from "./service-calls.js";

declare const self: Any;

/** The memory of ended realms is freed only when their thread ends, so the thread is replaced after these limits. */
export interface ThreadLimits {
  /** Delay in milliseconds before the next realm is created. There is none if runs follow faster, or if the memory is measured. */
  pauseMs: number;
  /** Time limit in milliseconds, counted from the end of the delay, for remaining code of the last run to end. */
  readyWithinMs: number;
  threadRuns: number;
  /** The thread's memory is measured when the number of runs plus their total milliseconds reaches this number. */
  measureAfter: number;
  messageCharacters: number;
}

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createRealmWorker(
  realmSource: string,
  host: WorkerPlatform | null,
  calls: HostServiceCalls | null,
  navigatorMembers: readonly string[],
  limits: ThreadLimits,
): unknown {
  const { ShadowRealm, navigator, performance } = self;
  const navigatorJson = JSON.stringify(Object.fromEntries(navigatorMembers.map((name) => [name, navigator[name]])));
  let send: (message: ThreadMessage) => void = () => {};
  let startRunInRealm: Any = null;
  let hostRun: Any = null;
  let endLastRun = () => {};
  /** Number of the current run. The worker ignores messages of runs with another number. */
  let currentRunNumber = 0;
  let pauseTimer: ReturnType<typeof setTimeout> | undefined;
  /** True if the current run started within `pauseMs` after the previous one. The next realm is then created without delay. */
  let isHurried = false;
  let answer = "";
  let answeredAt = Number.POSITIVE_INFINITY;
  let runs = 0;
  let unmeasured = 0;
  /** Sources of packages, so that the service sends each of them only once. Actions have no access to this cache. */
  const sources = new Map<string, string>();

  /** Returns names and sources alternately. */
  const readScripts = (scripts: readonly SentScript[]): string[] =>
    scripts.flatMap(([name, text, content]) => {
      if (text !== null && content !== "") sources.set(content, text);
      return [name, text ?? sources.get(content)!];
    });

  /** Ends the last run, and creates the next realm. Does nothing after `readyWithinMs`, because the service then discards the page. */
  function prepareNextRealm(): void {
    clearTimeout(pauseTimer);
    pauseTimer = undefined;
    if (performance.now() - answeredAt > limits.pauseMs + limits.readyWithinMs) return;
    currentRunNumber += 1;
    endLastRun();
    const hostOfRun = host?.createForRun() ?? null;
    startRunInRealm = new ShadowRealm().evaluate(realmSource)(hostOfRun?.usePlatform ?? null, host?.description ?? "");
    hostRun = hostOfRun;
    endLastRun = () => void hostOfRun?.end();
    self.postMessage(null);
  }

  /** Counts a run that took `ms` milliseconds. Returns what to do with the thread afterwards. */
  function countRun(ms: number): ThreadUseAfterRun {
    runs += 1;
    // A long run may have left much memory in use.
    unmeasured += 1 + ms;
    if (runs >= limits.threadRuns || host?.isFull() === true) return "replace";
    if (unmeasured < limits.measureAfter) return "reuse";
    unmeasured = 0;
    return "measure";
  }

  /** Stores the answer `text` of the run, and schedules the next realm. Returns the message for the service. */
  function endRun(ms: number, text: string): ThreadMessage {
    const threadUse = countRun(ms);
    answer = `${threadUse} ${text}`;
    answeredAt = performance.now();
    if (threadUse !== "replace")
      pauseTimer = setTimeout(prepareNextRealm, threadUse === "reuse" && !isHurried ? limits.pauseMs : 0);
    return answer.length <= limits.messageCharacters ? `answer ${threadUse} ${text}` : `long-answer ${answer.length}`;
  }

  /** Returns a function that the run calls with its messages and answer. A promise would settle only after remaining code of the run. */
  function createReceiver(): (text: string) => void {
    currentRunNumber += 1;
    const runNumber = currentRunNumber;
    const hostOfRun = hostRun;
    const startedAt = performance.now();
    return (text) => {
      if (runNumber !== currentRunNumber) return;
      if (text.startsWith("console ")) return send(text as ThreadMessage);
      // A new run number makes the worker ignore messages that this run sends after its answer.
      currentRunNumber += 1;
      calls?.reset();
      if (text === "needs-more") return send(endRun(0, text));
      const result = text.slice("answer ".length);
      const ms = performance.now() - startedAt;
      send(endRun(ms, hostOfRun === null ? result : `${hostOfRun.end()} ${result}`));
    };
  }

  /** Returns a function that sends requests of the client library. It does nothing after the run's answer. */
  function createRequestSender(): (receivePart: (...part: unknown[]) => void, text: string) => number {
    const runNumber = currentRunNumber;
    return (receivePart, text) => (runNumber === currentRunNumber && calls ? calls.send(receivePart, text) : 0);
  }

  return {
    __proto__: null,
    begin(bindingName: string): void {
      send = self[bindingName];
      calls?.connect((text) => send(`service ${text}`));
      prepareNextRealm();
    },
    /** Returns `late` if there is no realm for the run. `standInsJson`: globals that a trial replaces. `base`: URL of the service. */
    run(
      payload: string,
      settings: string,
      scripts: readonly SentScript[],
      standInsJson: string | null,
      base: string,
    ): string {
      isHurried = runs > 0 && performance.now() - answeredAt < limits.pauseMs;
      if (pauseTimer !== undefined) prepareNextRealm();
      if (startRunInRealm === null) return "late";
      answer = "";
      const texts = readScripts(scripts);
      const hostOfRun = hostRun;
      const receive = createReceiver();
      const removeRunGlobals = startRunInRealm(
        receive,
        base,
        createRequestSender(),
        payload,
        settings,
        standInsJson,
        navigatorJson,
        ...texts,
      );
      startRunInRealm = null;
      endLastRun = () => {
        hostOfRun?.end();
        removeRunGlobals();
      };
      return "";
    },
    answer: calls?.answer,
    part: (from: number, to: number): string => answer.slice(from, to),
  };
}
