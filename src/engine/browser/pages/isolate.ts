/** Isolate modes: each run gets a ShadowRealm on the worker thread of a page. The page has an origin and a network, or neither. */
import type { CDPSession, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { PageNetwork } from "../network/page-network.js";
import { ServiceCalls } from "../network/service-calls.js";
import { type EvaluationMode, NO_SERVICE_BASE_URL, type PageRunOutcome, type PageRunRequest } from "../run.js";
import { NEEDS_OTHER_MODE_ANSWER } from "./answer.js";
import {
  CONSOLE_BINDING_NAME,
  callHarnessMethod,
  installHarness,
  navigatePage,
  readAnswer,
  readUsedBytes,
  serveEmptyDocument,
} from "./fresh-document.js";
import {
  CODE_ACTIVE_AFTER_RUN_MAX_MS,
  ISOLATE_HARNESS_SCRIPTS,
  NETWORK_ISOLATE_HARNESS_SCRIPTS,
  PAUSE_BEFORE_NEXT_REALM_MS,
} from "./harness.js";
import type { ThreadUseAfterRun } from "./in-page/messages.js";
import { splitFirstWord } from "./long-text.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import { ThreadTextCache } from "./thread-text-cache.js";

interface IsolateKind {
  harnessScripts: { page: string; worker: string };
  /** Directives of the page's Content-Security-Policy in addition to `default-src 'none'`. */
  policy: string;
  /** Memory above which the thread is replaced, because V8 frees the memory of a realm only when its thread ends. */
  workerMaxBytes: number;
}

const KIND_BY_MODE: Readonly<Record<Exclude<EvaluationMode, "document">, IsolateKind>> = {
  isolate: {
    harnessScripts: ISOLATE_HARNESS_SCRIPTS,
    policy: "worker-src data:",
    // With a lower limit, a few runs with a large package would replace the thread, and each new thread compiles the package.
    workerMaxBytes: 48 * 1024 * 1024,
  },
  "network-isolate": {
    harnessScripts: NETWORK_ISOLATE_HARNESS_SCRIPTS,
    // WebSockets are not allowed, because they would bypass the check of URLs.
    policy: "worker-src blob:; connect-src http: https: data: blob:",
    // Low, because a large heap makes garbage collections likely, which can crash a page while code runs (chromium-flags.ts).
    workerMaxBytes: 16 * 1024 * 1024,
  },
};

/** Returns the `base` of the run's client library: NO_SERVICE_BASE_URL if it calls only other services, "" if the run does not use it. */
const getServiceBase = ({ service, outgoing }: PageRunRequest): string =>
  service?.base ?? (outgoing ? NO_SERVICE_BASE_URL : "");

const NO_REALM_RESULT = "late";
const CATCH_UP_TIMEOUT_MS = 200;
/** A thread that has created no new realm this long after the end of a run counts as stuck. */
const STUCK_AFTER_MS = PAUSE_BEFORE_NEXT_REALM_MS + CODE_ACTIVE_AFTER_RUN_MAX_MS + 250;
/** Runs between two forced garbage collections of the page, which free ended workers. */
const RUNS_PER_GARBAGE_COLLECTION = 50;

interface IsolateWorker {
  session: CDPSession;
  harnessId: string;
  texts: ThreadTextCache;
  runs: number;
}

export class Isolate implements Sandbox {
  private pageHarnessId = "";
  private pageRuns = 0;
  private worker: IsolateWorker | null = null;
  private startPromise: Promise<void> = Promise.resolve();
  private onWorkerAttached: (session: CDPSession) => void = () => {};
  private threadUseAfterRun: ThreadUseAfterRun = "reuse";
  private endedAt = 0;
  private onAnswer: (answer: string | number) => void = () => {};
  private stuckTimer: NodeJS.Timeout | null = null;
  private readonly kind: IsolateKind;
  private readonly network: PageNetwork | null;
  private readonly serviceCalls: ServiceCalls | null;
  /** Number of `fetch` calls of the last run; null if it is unknown. */
  private fetchCount: number | null = 0;

  constructor(
    private readonly options: SandboxOptions,
    mode: keyof typeof KIND_BY_MODE,
  ) {
    this.kind = KIND_BY_MODE[mode];
    // There are no events of WebSockets to wait for, because the Content-Security-Policy forbids WebSockets.
    this.network = mode === "isolate" ? null : new PageNetwork({ ...options, waitForSentEvents: async () => {} });
    this.serviceCalls =
      this.network && new ServiceCalls(this.network.admitRequest, (...part) => this.callWorker("answer", ...part));
    options.session.on("Target.attachedToTarget", ({ sessionId }) => {
      const session = options.session.connection()?.session(sessionId);
      if (session) this.onWorkerAttached(session);
    });
  }

  async prepare(): Promise<void> {
    const { session } = this.options;
    await this.openPage();
    session.on("Fetch.requestPaused", (event) => this.network?.continueOrBlock(session, event));
    await this.replaceThread();
  }

  async reset(): Promise<boolean> {
    const { network } = this;
    if (this.fetchCount === null) return false;
    if (network && !network.requests.haveAllEnded(this.fetchCount)) {
      await this.waitForSentEvents();
      await network.requests.waitUntilAllEnded();
    }
    await Promise.all([this.resetThread(), network?.clearCachesAndCookies()]);
    return network?.hasLateRequest() !== true;
  }

  async execute(request: PageRunRequest): Promise<unknown> {
    const { network, serviceCalls } = this;
    if (network === null) return this.evaluate(request, "");
    this.fetchCount = null;
    // If this call has enabled the check of URLs, the thread is replaced: requests of earlier threads may not be checked.
    if (await network.beginRun(request)) await this.replaceThread();
    serviceCalls?.beginRun(request);
    const answer = await this.evaluate(request, getServiceBase(request));
    if (answer === undefined) return answer;
    if (answer === NEEDS_OTHER_MODE_ANSWER) {
      this.fetchCount = 0;
      return answer;
    }
    const [fetchCount, runAnswer] = splitFirstWord(answer);
    this.fetchCount = Number(fetchCount);
    return runAnswer;
  }

  getMaxMsUntilReady(): number {
    return Math.max(0, this.endedAt + STUCK_AFTER_MS - performance.now());
  }

  endRun(): void {
    this.serviceCalls?.endRun();
    this.endedAt = performance.now();
    this.scheduleStuckCheck(STUCK_AFTER_MS);
  }

  async explainFailure(outcome: PageRunOutcome): Promise<PageRunOutcome> {
    if (this.network === null) return outcome;
    const { requests } = this.network;
    // Events about requests come from other threads of the browser, so they may arrive after the run's answer.
    if (requests.isPending(outcome)) await this.waitForSentEvents().catch(() => {});
    return requests.explainFailure(outcome);
  }

  stop(): void {
    this.serviceCalls?.endRun();
    clearTimeout(this.stuckTimer ?? undefined);
  }

  private async resetThread(): Promise<void> {
    const { threadUseAfterRun, kind, options } = this;
    const mustReplace =
      threadUseAfterRun === "replace" ||
      (threadUseAfterRun === "measure" && (await readUsedBytes(this.worker!.session)) > kind.workerMaxBytes);
    if (mustReplace) await this.replaceThread();
    this.pageRuns += 1;
    if (this.pageRuns % RUNS_PER_GARBAGE_COLLECTION === 0) await options.session.send("HeapProfiler.collectGarbage");
  }

  private async openPage(): Promise<void> {
    const { session, origin } = this.options;
    const value = `default-src 'none'; script-src 'unsafe-eval'; ${this.kind.policy}`;
    const header = { name: "Content-Security-Policy", value };
    const answer = ({ requestId }: Protocol.Fetch.RequestPausedEvent) =>
      serveEmptyDocument(session, requestId, [header]);
    await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
    session.on("Fetch.requestPaused", answer);
    await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
    const { loaded } = await navigatePage(session, `${origin}/`);
    [this.pageHarnessId] = await Promise.all([installHarness(session, this.kind.harnessScripts.page), loaded]);
    // The enabled Fetch domain would make the start of each worker and each request slower.
    await session.send("Fetch.disable");
    session.off("Fetch.requestPaused", answer);
  }

  private replaceThread(): Promise<void> {
    this.startPromise = this.startThread();
    return this.startPromise;
  }

  /** Resolves when all events that the worker has sent so far have arrived. Rejects if the worker is busy for too long. */
  private async waitForSentEvents(): Promise<void> {
    await this.worker?.session.send("Runtime.getIsolateId", undefined, { timeout: CATCH_UP_TIMEOUT_MS });
  }

  private async callWorker(method: string, ...values: readonly unknown[]): Promise<unknown> {
    if (this.worker === null)
      throw new Error("the isolate's web worker is not running: it did not start, or it has ended");
    return callHarnessMethod(this.worker.session, this.worker.harnessId, method, values);
  }

  /** Resolves with the answer of the run. `base` is a result of `getServiceBase`. */
  private async evaluate(request: PageRunRequest, base: string): Promise<string | Buffer | undefined> {
    const worker = this.worker!;
    const answer = await new Promise<string | number>((resolve) => {
      this.onAnswer = resolve;
      // An error means that the worker has ended, which the browser reports as the loss of the page.
      this.callWorker("run", ...worker.texts.createRunArguments(request), base).then(
        (reply) => reply === NO_REALM_RESULT && resolve(reply),
        () => {},
      );
    });
    if (answer === NO_REALM_RESULT) {
      this.options.markLost("unready");
      return undefined;
    }
    worker.runs += 1;
    return this.readThreadUse(await readAnswer(answer, (from, to) => this.callWorker("part", from, to)));
  }

  /** Stores the first word of an answer, a ThreadUseAfterRun, and returns the rest of the answer. */
  private readThreadUse(answer: string | Buffer | undefined): string | Buffer | undefined {
    const [threadUse, text] = answer === undefined ? ["replace", answer] : splitFirstWord(answer);
    this.threadUseAfterRun = threadUse as ThreadUseAfterRun;
    return text;
  }

  private async startThread(): Promise<void> {
    const attached = new Promise<CDPSession>((resolve) => {
      this.onWorkerAttached = resolve;
    });
    await callHarnessMethod(this.options.session, this.pageHarnessId, "replaceThread", []);
    const session = await attached;
    const worker: IsolateWorker = { session, harnessId: "", texts: new ThreadTextCache(), runs: 0 };
    this.worker = worker;
    session.on("Runtime.bindingCalled", ({ name, payload }) => {
      if (name === CONSOLE_BINDING_NAME && worker === this.worker) this.receiveMessage(payload);
    });
    const harness = installHarness(session, this.kind.harnessScripts.worker);
    [worker.harnessId] = await Promise.all([harness, this.network?.watch(session)]);
    await this.callWorker("begin", CONSOLE_BINDING_NAME);
  }

  private receiveMessage(payload: string): void {
    const nameEnd = payload.indexOf(" ");
    const [tag, content] = [payload.slice(0, nameEnd), payload.slice(nameEnd + 1)];
    if (tag === "console") this.options.print(content);
    else if (tag === "service" && this.serviceCalls) {
      this.options.onServiceRequest();
      runInBackground(this.serviceCalls.receiveMessage(content));
    } else this.onAnswer(tag === "long-answer" ? Number(content) : content);
  }

  private scheduleStuckCheck(ms: number): void {
    this.stuckTimer ??= setTimeout(() => {
      // The check fails only if the page has closed or its thread was replaced.
      this.checkStuck().catch(() => {});
    }, ms);
    this.stuckTimer.unref();
  }

  /** Discards the page if code of the last run blocks the thread, because the next run could never start. */
  private async checkStuck(): Promise<void> {
    this.stuckTimer = null;
    const remainingMs = this.endedAt + STUCK_AFTER_MS - performance.now();
    if (remainingMs > 0) return this.scheduleStuckCheck(remainingMs);
    const { startPromise } = this;
    await startPromise;
    // A thread that is being replaced creates no more realms.
    if (this.threadUseAfterRun === "replace" || startPromise !== this.startPromise) return;
    const { session } = this.options;
    const hasRealm = await callHarnessMethod(session, this.pageHarnessId, "hasCreatedRealms", [this.worker!.runs + 1]);
    if (hasRealm === false) this.options.markLost("unready");
  }
}
