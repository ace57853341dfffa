/** Isolate modes: each run gets a ShadowRealm on the worker thread of a page. The page has an origin and a network, or neither. */
import type { CDPSession, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { listDocumentStandIns, NETWORK_ISOLATE_STAND_INS } from "../globals.js";
import { findDocumentGlobalNames } from "../mode.js";
import { PageNetwork } from "../network/page-network.js";
import { ServiceCalls } from "../network/service-calls.js";
import {
  DEFAULT_SOURCE_NAME,
  type EvaluationMode,
  NO_SERVICE_BASE_URL,
  type PageRunOutcome,
  type PageRunRequest,
} from "../run.js";
import { wrapInFunction } from "./action-script.js";
import { NEEDS_OTHER_MODE_ANSWER } from "./answer.js";
import {
  CONSOLE_BINDING_NAME,
  callHarnessMethod,
  installHarness,
  navigatePage,
  readAnswer,
  readUsedMemoryBytes,
  serveEmptyDocument,
} from "./fresh-document.js";
import { ISOLATE_HARNESS_SCRIPTS, NETWORK_ISOLATE_HARNESS_SCRIPTS } from "./harness.js";
import type { SentScript, ThreadUse } from "./in-page/messages.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";

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
    // Low, because a large heap makes garbage collections likely. A collection while code runs can crash the page (chromium-flags.ts).
    workerMaxBytes: 16 * 1024 * 1024,
  },
};

/** Returns the service's URL for the client library; NO_SERVICE_BASE_URL if it calls only other services; "" if the run does not use it. */
const getServiceBase = ({ service, outgoing }: PageRunRequest): string =>
  service?.base ?? (outgoing ? NO_SERVICE_BASE_URL : "");

/** Returns the stand-ins of a trial; null if the run is no trial. */
function createStandInsJson({ packages, source, trialForMode }: PageRunRequest): string | null {
  if (trialForMode === "network-isolate") return JSON.stringify(NETWORK_ISOLATE_STAND_INS);
  if (trialForMode !== "document") return null;
  const names = packages.flatMap((script) =>
    "source" in script ? findDocumentGlobalNames(script.source, script.content) : [],
  );
  return JSON.stringify(listDocumentStandIns([...names, ...findDocumentGlobalNames(source)]));
}

/** Lists the scripts of a run. Omits the text of a package whose key is in `storedTexts`; otherwise, adds its key. */
function listScripts(request: PageRunRequest, storedTexts: Set<string>): SentScript[] {
  const { packages, sourceName: name = DEFAULT_SOURCE_NAME, source } = request;
  const scripts = packages.flatMap((script): SentScript[] => {
    if (!("source" in script)) return [];
    const text = `${script.source}\n//# sourceURL=${script.name}`;
    if (!script.content) return [[script.name, text, ""]];
    // The stored text contains the name of the script, so the key contains it too.
    const key = `${script.name}\n${script.content}`;
    const isStored = storedTexts.has(key);
    storedTexts.add(key);
    return [[script.name, isStored ? null : text, key]];
  });
  return [...scripts, [name, wrapInFunction({ name, source }), ""]];
}

const SENT_EVENTS_TIMEOUT_MS = 200;

interface IsolateWorker {
  session: CDPSession;
  harnessId: string;
  /** Keys of the packages whose texts the thread stores. */
  storedTexts: Set<string>;
}

export class Isolate implements Sandbox {
  /** Null in a browser that cannot run isolates, for example because it has no ShadowRealm. */
  private worker: IsolateWorker | null = null;
  private onWorkerAttached: (session: CDPSession) => void = () => {};
  private onAnswer: (answer: string | number) => void = () => {};
  /** Resolves when the thread is ready for another run. */
  private threadUse: Promise<ThreadUse> = Promise.resolve("reuse");
  private readonly kind: IsolateKind;
  private readonly network: PageNetwork | null;
  private readonly serviceCalls: ServiceCalls | null;

  constructor(
    private readonly options: SandboxOptions,
    mode: keyof typeof KIND_BY_MODE,
  ) {
    this.kind = KIND_BY_MODE[mode];
    // There are no events of WebSockets to wait for, because the Content-Security-Policy forbids WebSockets.
    this.network = mode === "isolate" ? null : new PageNetwork({ ...options, waitForSentEvents: async () => {} });
    this.serviceCalls =
      this.network &&
      new ServiceCalls(this.network.admitRequest, (...part) => this.callWorker("receiveResponsePart", ...part));
    options.session.on("Target.attachedToTarget", ({ sessionId }) => {
      const session = options.session.connection()?.session(sessionId);
      if (session) this.onWorkerAttached(session);
    });
  }

  async prepare(): Promise<void> {
    const { session } = this.options;
    await this.openPage();
    session.on("Fetch.requestPaused", (event) => this.network?.continueOrBlockRequest(session, event));
    await this.startThread();
  }

  async reset(): Promise<boolean> {
    const { network } = this;
    if (this.worker === null) return true;
    // If code of the last run still blocks the thread, the time limit of the reset passes, and the page is discarded.
    const use = await this.threadUse;
    // The thread reported all requests of the run before it answered, so this waits for all of them.
    await network?.requests.waitUntilAllEnded();
    await Promise.all([this.limitMemory(use), network?.clearCachesAndCookies()]);
    return network?.hasLateRequest() !== true;
  }

  async execute(request: PageRunRequest): Promise<unknown> {
    if (this.worker === null) return NEEDS_OTHER_MODE_ANSWER;
    // If this call has enabled the check of URLs, the thread is replaced: requests of earlier threads may not be checked.
    if (await this.network?.startRun(request)) await this.startThread();
    this.serviceCalls?.startRun(request);
    const answer = await new Promise<string | number>((resolve) => {
      this.onAnswer = resolve;
      const scripts = listScripts(request, this.worker!.storedTexts);
      const values = [request.payload, request.settings, scripts, createStandInsJson(request), getServiceBase(request)];
      this.threadUse = this.callWorker("run", ...values) as Promise<ThreadUse>;
      // An error means that the worker has ended, which the browser reports as the loss of the page.
      this.threadUse.catch(() => {});
    });
    return readAnswer(answer, (from, to) => this.callWorker("readAnswerPart", from, to));
  }

  endRun(): void {
    this.serviceCalls?.endRun();
  }

  async explainFailure(outcome: PageRunOutcome): Promise<PageRunOutcome> {
    const requests = this.network?.requests;
    // Events about requests come from other threads of the browser, so they may arrive after the run's answer.
    if (requests?.mayLackFailureReasons(outcome)) await this.waitForSentEvents().catch(() => {});
    return requests?.explainFailure(outcome) ?? outcome;
  }

  private async limitMemory(use: ThreadUse): Promise<void> {
    const mustReplace =
      use === "replace" ||
      (use === "measure" && (await readUsedMemoryBytes(this.worker!.session)) > this.kind.workerMaxBytes);
    if (!mustReplace) return;
    await this.startThread();
    // Frees ended workers.
    await this.options.session.send("HeapProfiler.collectGarbage");
  }

  private async openPage(): Promise<void> {
    const { session, origin } = this.options;
    const value = `default-src 'none'; script-src 'unsafe-eval'; ${this.kind.policy}`;
    const header = { name: "Content-Security-Policy", value };
    const serveRequest = ({ requestId }: Protocol.Fetch.RequestPausedEvent) =>
      serveEmptyDocument(session, requestId, [header]);
    await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
    session.on("Fetch.requestPaused", serveRequest);
    await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
    const { loaded } = await navigatePage(session, `${origin}/`);
    await loaded;
    // The enabled Fetch domain would make the start of each worker and each request slower.
    await session.send("Fetch.disable");
    session.off("Fetch.requestPaused", serveRequest);
  }

  /** Resolves when all events that the worker has sent so far have arrived. Rejects if the worker is busy for too long. */
  private async waitForSentEvents(): Promise<void> {
    await this.worker?.session.send("Runtime.getIsolateId", undefined, { timeout: SENT_EVENTS_TIMEOUT_MS });
  }

  private callWorker(method: string, ...values: readonly unknown[]): Promise<unknown> {
    return callHarnessMethod(this.worker!.session, this.worker!.harnessId, method, values);
  }

  /** Starts a thread, which replaces the previous one. @throws Error if the page cannot start a worker */
  private async startThread(): Promise<void> {
    const workerSession = new Promise<CDPSession>((resolve) => {
      this.onWorkerAttached = resolve;
    });
    const expression = this.kind.harnessScripts.page;
    const parameters = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.options.session.send("Runtime.evaluate", parameters);
    if (exceptionDetails) throw new Error(`the page of an isolate cannot start a worker: ${exceptionDetails.text}`);
    if (!result.value) return;
    const session = await workerSession;
    const worker: IsolateWorker = { session, harnessId: "", storedTexts: new Set() };
    this.worker = worker;
    session.on("Runtime.bindingCalled", ({ name, payload }) => {
      if (name === CONSOLE_BINDING_NAME && worker === this.worker) this.receiveMessage(payload);
    });
    const harness = installHarness(session, this.kind.harnessScripts.worker);
    [worker.harnessId] = await Promise.all([harness, this.network?.watch(session)]);
    await this.callWorker("initialize", CONSOLE_BINDING_NAME);
  }

  private receiveMessage(payload: string): void {
    const tagEnd = payload.indexOf(" ");
    const [tag, content] = [payload.slice(0, tagEnd), payload.slice(tagEnd + 1)];
    if (tag === "console") this.options.print(content);
    else if (tag === "service" && this.serviceCalls) {
      this.options.onServiceRequest();
      runInBackground(this.serviceCalls.receiveMessage(content));
    } else this.onAnswer(tag === "long-answer" ? Number(content) : content);
  }
}
