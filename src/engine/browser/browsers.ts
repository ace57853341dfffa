/** Runs untrusted scripts in Chromium. Chooses a browser and a sandbox mode (docs/internals/execution.md) for each run. */

import { setTimeout as setTimeoutPromise } from "node:timers/promises";
import { runInBackground } from "../../background.js";
import { StartError } from "../../errors.js";
import { BROWSER_START_TIMEOUT_MS, type BrowserSource, type Chromium } from "./browser-source.js";
import { createCodeNeedsFinder } from "./mode.js";
import { type ProcessSandboxState, waitForProcessSandboxStates } from "./processes/sandbox-proof.js";
import {
  createFailedPageRunOutcome,
  EVALUATION_MODES,
  type EvaluationMode,
  hasOverflowedStack,
  modeHasNetwork,
  type PageRunOutcome,
  type PageRunRequest,
  type PageScript,
  type RunFailureCause,
} from "./run.js";
import { BrowserSupervisor, type BrowserSupervisorOptions, createCancelledOutcome } from "./supervisor.js";
import { RecentTrialFailures, TrialRunner } from "./trials.js";

export interface BrowsersOptions extends BrowserSupervisorOptions {
  sources: readonly BrowserSource[];
}

const MAX_START_ATTEMPTS = 3;
const BROWSER_POLL_MS = 20;

function chooseSupervisor(
  supervisors: readonly BrowserSupervisor[],
  triedSupervisors: ReadonlySet<BrowserSupervisor>,
): BrowserSupervisor | null {
  const [best = null] = supervisors
    .filter(({ current }) => current !== null)
    .sort(
      (a, b) =>
        Number(triedSupervisors.has(a)) - Number(triedSupervisors.has(b)) ||
        a.countActiveRuns() - b.countActiveRuns() ||
        a.current!.runCount - b.current!.runCount,
    );
  return best;
}

async function waitForBrowser(supervisors: readonly BrowserSupervisor[]): Promise<boolean> {
  const deadline = Date.now() + BROWSER_START_TIMEOUT_MS;
  while (Date.now() < deadline && supervisors.some(({ isStopped }) => !isStopped)) {
    if (supervisors.some(({ current }) => current !== null)) return true;
    await setTimeoutPromise(BROWSER_POLL_MS);
  }
  return false;
}

const findCodeNeeds = createCodeNeedsFinder();
const trialRunner = new TrialRunner();
/** Code that recently failed in a network isolate, for example with a crash. It now runs in a document (an empty page). */
const codeThatNeedsDocument = new RecentTrialFailures();

interface RunPlacement {
  mode: EvaluationMode;
  /** The run starts with a trial in which stand-ins replace the globals of this mode; null for no trial. */
  trialForMode: EvaluationMode | null;
  network: boolean;
}

function choosePlacement(request: PageRunRequest): RunPlacement {
  const { packages, source } = request;
  if (request.mode !== undefined) {
    const network = modeHasNetwork(request.mode) && request.network !== false;
    return { mode: request.mode, trialForMode: trialRunner.selectTrialMode(request, request.mode), network };
  }
  const definedGlobals = packages.flatMap((script) => ("source" in script && script.defines) || []);
  const sourceNeeds = findCodeNeeds(source, definedGlobals);
  const needs = [sourceNeeds, ...packages.map(getPackageNeeds)];
  const neededModeIndex = Math.max(...needs.map(({ mode }) => EVALUATION_MODES.indexOf(mode)));
  const mode = EVALUATION_MODES[neededModeIndex]!;
  const needsDocument = mode === "network-isolate" && codeThatNeedsDocument.has(request);
  return {
    mode: needsDocument ? "document" : mode,
    trialForMode: trialRunner.selectTrialMode(request, mode, sourceNeeds.mode),
    network: needs.some(({ network }) => network),
  };
}

function getPackageNeeds(script: PageScript): Pick<RunPlacement, "mode" | "network"> {
  if (!("source" in script)) return { mode: "document", network: true };
  const { mode = "document", network = modeHasNetwork(mode) } = script;
  return { mode, network };
}

const DOCUMENT_NEEDED_CAUSES: readonly RunFailureCause[] = ["retry", "browser", "memory"];

export class Browsers {
  private readonly supervisors: readonly BrowserSupervisor[];

  constructor(options: BrowsersOptions) {
    this.supervisors = options.sources.map((source) => new BrowserSupervisor(source, options));
  }

  private get firstChromium(): Chromium | null {
    return this.supervisors.find(({ current }) => current !== null)?.current?.chromium ?? null;
  }

  /** @throws StartError with instructions if no browser starts */
  async start(): Promise<void> {
    const { supervisors } = this;
    const attempts = await Promise.allSettled(supervisors.map((supervisor) => supervisor.startBrowser()));
    const faults = attempts.flatMap((attempt) => (attempt.status === "rejected" ? [attempt.reason as Error] : []));
    if (faults.length === supervisors.length) {
      await this.stop();
      const [first, ...others] = faults;
      throw others.length === 0 ? first! : new StartError(faults.map(({ message }) => message).join("; "));
    }
    for (const supervisor of supervisors) runInBackground(supervisor.keepRunning());
  }

  /** Executes a run, and never rejects. Repeats the run only if it had no effect: it sent no request, and no console line was printed. */
  readonly run = async (request: PageRunRequest): Promise<PageRunOutcome> => {
    const { mode, trialForMode, network } = choosePlacement(request);
    const { mayRequest: _mayRequest, onRequest: _onRequest, ...withoutRequests } = request;
    const placedRequest: PageRunRequest = network ? request : { ...withoutRequests, network };
    if (trialForMode !== null) {
      const outcome = await trialRunner.run(placedRequest, trialForMode, (trial) => this.runInMode(trial, "isolate"));
      if (outcome !== null) {
        placedRequest.onMode?.("isolate");
        return outcome;
      }
    }
    if (mode === "isolate") return this.runInDocument(placedRequest);
    placedRequest.onMode?.(mode);
    const startedAt = performance.now();
    const outcome = await this.runInMode(placedRequest, mode);
    if (mode !== "network-isolate" || outcome.ok) return outcome;
    if (!DOCUMENT_NEEDED_CAUSES.includes(outcome.cause) && !hasOverflowedStack(outcome)) return outcome;
    codeThatNeedsDocument.add(placedRequest);
    if (outcome.cause !== "retry") return outcome;
    // A run with the cause `retry` has sent no request and printed no line. So it can be repeated, with the rest of its time limit.
    const timeoutMs = Math.max(1, placedRequest.timeoutMs - (performance.now() - startedAt));
    return this.runInDocument({ ...placedRequest, timeoutMs });
  };

  isReady(): boolean {
    return this.firstChromium !== null;
  }

  /** `up`: browser sources that have a browser; `serving`: active runs. Idle pages are reserved for an app (`warm`) or unused (`spare`). */
  readonly countBrowsers = (): { up: number; serving: number; warm: number; spare: number } => {
    const browsers = this.supervisors.flatMap((supervisor) => [...supervisor.browsers]);
    const contexts = browsers.map(({ activeRuns, pool }) => ({ serving: activeRuns, ...pool.countIdlePages() }));
    const sum = (kind: "serving" | "warm" | "spare") => contexts.reduce((total, counts) => total + counts[kind], 0);
    const up = this.supervisors.filter(({ current }) => current !== null).length;
    return { up, serving: sum("serving"), warm: sum("warm"), spare: sum("spare") };
  };

  async waitForProcessSandboxStates(): Promise<ProcessSandboxState[] | null> {
    const { firstChromium } = this;
    return firstChromium === null ? null : waitForProcessSandboxStates(firstChromium);
  }

  getBrowserPid(): number | null {
    return this.firstChromium?.pid ?? null;
  }

  async stop(): Promise<void> {
    await Promise.all(this.supervisors.map((supervisor) => supervisor.stop()));
  }

  private runInDocument(request: PageRunRequest): Promise<PageRunOutcome> {
    request.onMode?.("document");
    return this.runInMode(request, "document");
  }

  private async runInMode(request: PageRunRequest, mode: EvaluationMode): Promise<PageRunOutcome> {
    const { supervisors } = this;
    const triedSupervisors = new Set<BrowserSupervisor>();
    for (let tries = 0; tries < MAX_START_ATTEMPTS; tries += 1) {
      if (request.signal?.aborted) return createCancelledOutcome();
      if (!(await waitForBrowser(supervisors))) break;
      // `supervisor.run` counts the run at once, before its first `await`. Otherwise, all concurrent runs would choose the same browser.
      const supervisor = chooseSupervisor(supervisors, triedSupervisors);
      const outcome = await supervisor?.run(request, mode);
      if (outcome) return outcome;
      if (supervisor) triedSupervisors.add(supervisor);
    }
    return createFailedPageRunOutcome("browser", "Error", "No browser was available for the run");
  }
}
