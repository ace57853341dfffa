/** Runs on the worker thread of an isolate: creates a ShadowRealm for each run, before the run starts. */
import type { Any } from "./any.js";
import type { WorkerPlatform } from "./host-platform.js";
import type { SentScript, ThreadMessage, ThreadUse } from "./messages.js";
import type { HostServiceCalls } from "./service-calls.js";

declare const self: Any;

export interface ThreadLimits {
  /** The thread is replaced after this many runs, because the memory of ended realms is freed only when their thread ends. */
  runsMax: number;
  /** The memory is measured when runs since the last measurement, plus their total milliseconds, reach this number. */
  measureAtCost: number;
  /** The service reads a longer answer in parts. */
  messageMaxCharacters: number;
}

/** Runs in the browser, which gets only the source text of this function. So it can use only globals and its own code. */
export function createRealmWorker(
  realmSource: string,
  platform: WorkerPlatform | null,
  serviceCalls: HostServiceCalls | null,
  navigatorMembers: readonly string[],
  limits: ThreadLimits,
): unknown {
  const { ShadowRealm, navigator, performance } = self;
  const navigatorJson = JSON.stringify(Object.fromEntries(navigatorMembers.map((name) => [name, navigator[name]])));
  let send: (message: ThreadMessage) => void = () => {};
  let startRunInRealm: Any = null;
  let runPlatform: Any = null;
  let removeRunGlobals = () => {};
  /** Number of the current run. The worker ignores messages of runs with another number. */
  let currentRunNumber = 0;
  let answer = "";
  let runCount = 0;
  let costSinceMeasurement = 0;
  /** Sources of packages, so that the service sends each of them only once. Actions have no access to this cache. */
  const sourceByKey = new Map<string, string>();

  /** Returns names and sources alternately. */
  const readScripts = (scripts: readonly SentScript[]): string[] =>
    scripts.flatMap(([name, text, key]) => {
      if (text !== null && key !== "") sourceByKey.set(key, text);
      return [name, text ?? sourceByKey.get(key)!];
    });

  function createRealm(): void {
    runPlatform = platform?.createRunPlatform() ?? null;
    const usePlatform = runPlatform?.usePlatform ?? null;
    startRunInRealm = new ShadowRealm().evaluate(realmSource)(usePlatform, platform?.description ?? "");
  }

  /** Removes what the last run has left, and creates the realm for the next run, unless the thread must be replaced. */
  function prepareRealm(): ThreadUse {
    removeRunGlobals();
    if (runCount >= limits.runsMax || platform?.isFull() === true) return "replace";
    createRealm();
    if (costSinceMeasurement < limits.measureAtCost) return "reuse";
    costSinceMeasurement = 0;
    return "measure";
  }

  /** Returns a function that gets the run's messages and answer. A promise of the answer would wait for all microtasks of the run. */
  function createReceiver(onAnswer: () => void): (text: string) => void {
    const runNumber = currentRunNumber;
    const startedAt = performance.now();
    return (text) => {
      if (runNumber !== currentRunNumber) return;
      if (text.startsWith("console ")) return send(text as ThreadMessage);
      // A new run number makes the worker ignore messages that this run sends after its answer.
      currentRunNumber += 1;
      serviceCalls?.reset();
      runPlatform?.end();
      runCount += 1;
      // The duration counts too, because a long run may have left much memory in use.
      costSinceMeasurement += 1 + performance.now() - startedAt;
      answer = text.slice("answer ".length);
      send(answer.length <= limits.messageMaxCharacters ? (text as ThreadMessage) : `long-answer ${answer.length}`);
      onAnswer();
    };
  }

  return {
    __proto__: null,
    initialize(bindingName: string): void {
      send = self[bindingName];
      serviceCalls?.connect((text) => send(`service ${text}`));
      createRealm();
    },
    /** Starts a run. Resolves after its microtasks, when the next run can start. `standInsJson`: stand-ins of a trial; otherwise null. */
    run(
      payload: string,
      settings: string,
      scripts: readonly SentScript[],
      standInsJson: string | null,
      base: string,
    ): Promise<ThreadUse> {
      currentRunNumber += 1;
      const { promise: answered, resolve: onAnswer } = Promise.withResolvers<void>();
      removeRunGlobals = startRunInRealm(
        createReceiver(onAnswer),
        base,
        serviceCalls?.open ?? null,
        payload,
        settings,
        standInsJson,
        navigatorJson,
        ...readScripts(scripts),
      );
      return answered.then(prepareRealm);
    },
    receiveResponsePart: serviceCalls?.receiveResponsePart,
    readAnswerPart: (from: number, to: number): string => answer.slice(from, to),
  };
}
