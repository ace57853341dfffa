/** Mode `document`: each run gets a new empty document. If a run leaves data that `reset` does not remove, the page is discarded. */
import type { CDPSession, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { PageNetwork } from "../network/page-network.js";
import { ServiceCalls } from "../network/service-calls.js";
import { DEFAULT_SOURCE_NAME, NO_SERVICE_BASE_URL, type PageRunOutcome, type PageRunRequest } from "../run.js";
import { wrapInFunction } from "./action-script.js";
import {
  CONSOLE_BINDING_NAME,
  callHarnessMethod,
  installHarness,
  navigatePage,
  readAnswer,
  readUsedMemoryBytes,
  SERVICE_CALL_PREFIX,
  serveEmptyDocument,
} from "./fresh-document.js";
import {
  DOCUMENT_HARNESS_SCRIPT,
  DOCUMENT_LIMITS_SCRIPT,
  WORKER_CONSOLE_SCRIPT,
  WORKER_LIMITS_SCRIPT,
} from "./harness.js";
import { LeftoverDetector } from "./leftovers.js";
import { PageWindowHider } from "./page-window-hider.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";

/** If earlier runs still use more memory after a garbage collection, the page is discarded. */
const REMAINING_MEMORY_MAX_BYTES = 24 * 1024 * 1024;

const LAST_CONSOLE_LINES_TIMEOUT_MS = 1_000;

/** A new worker, or frame in another process, runs no code until the service has prepared it. */
const AUTO_ATTACH_OPTIONS = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };

function installDocumentLimits(session: CDPSession): Promise<unknown> {
  return session.send("Page.addScriptToEvaluateOnNewDocument", { source: DOCUMENT_LIMITS_SCRIPT });
}

export class DocumentSandbox implements Sandbox {
  private readonly leftoverDetector: LeftoverDetector;
  /** DevTools sessions of the page, its workers, and its frames in other processes. */
  private readonly sessions: Set<CDPSession>;
  private hadChildren = false;
  private readonly network: PageNetwork;
  private readonly pageWindow: PageWindowHider;
  private readonly serviceCalls: ServiceCalls;
  private harnessId = "";

  constructor(private readonly options: SandboxOptions) {
    const { session } = options;
    this.leftoverDetector = new LeftoverDetector(options);
    this.sessions = new Set([session]);
    this.network = new PageNetwork({ ...options, waitForSentEvents: (timeoutMs) => this.waitForSentEvents(timeoutMs) });
    this.pageWindow = new PageWindowHider(options);
    this.serviceCalls = new ServiceCalls(this.network.admitRequest, (...part) =>
      callHarnessMethod(session, this.harnessId, "receiveResponsePart", part),
    );
    this.listenToSession();
  }

  async prepare(): Promise<void> {
    const { session, origin } = this.options;
    await Promise.all([this.pageWindow.prepare(), this.attachChildrenOf(session)]);
    await installDocumentLimits(session);
    await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/*`, resourceType: "Document" }] });
    await this.network.watch(session);
    // Tracks caches and databases, because the search for stored data (leftovers.ts) does not find empty ones.
    await session.send("Storage.trackCacheStorageForOrigin", { origin });
    await session.send("Storage.trackIndexedDBForOrigin", { origin });
  }

  async reset(): Promise<boolean> {
    const { session, origin } = this.options;
    const { leftoverDetector, network } = this;
    leftoverDetector.isRunning = false;
    this.pageWindow.reset();
    if (leftoverDetector.hasReportedData() || this.hadChildren) return false;
    await network.requests.waitUntilAllEnded();
    const { loaded } = await navigatePage(session, `${origin}/`);
    const [harnessId, [hasLeftovers, usesTooMuchMemory]] = await Promise.all([
      installHarness(session, DOCUMENT_HARNESS_SCRIPT),
      this.searchForLeftovers(),
      loaded,
    ]);
    this.harnessId = harnessId;
    // Waits for requests that the old document may have sent during the navigation.
    await network.requests.waitUntilAllEnded();
    // This command comes last, because it fails during the first moments after a navigation.
    await session.send("Page.resetNavigationHistory");
    // Checks for late requests last, because the browser has now reported all requests of the old document.
    return !hasLeftovers && !usesTooMuchMemory && !leftoverDetector.hasReportedData() && !network.hasLateRequest();
  }

  async execute(request: PageRunRequest): Promise<unknown> {
    this.leftoverDetector.isRunning = true;
    await this.network.startRun(request);
    const { sourceName: name = DEFAULT_SOURCE_NAME, source, packages, payload, settings, outgoing } = request;
    // A flat list without objects, because a package may have changed the properties that objects inherit.
    const scripts = packages.flatMap((script) => ("url" in script ? ["", script.url] : [script.name, script.source]));
    scripts.push(name, wrapInFunction({ name, source }));
    this.pageWindow.onRunStart();
    this.serviceCalls.startRun({ outgoing });
    const values = [CONSOLE_BINDING_NAME, scripts, payload, settings, outgoing ? NO_SERVICE_BASE_URL : ""];
    const callHarness = (method: string, parameters: readonly unknown[]) =>
      callHarnessMethod(this.options.session, this.harnessId, method, parameters);
    const answerOrLength = await callHarness("run", values);
    const answer = await readAnswer(answerOrLength, (from, to) => callHarness("readAnswerPart", [from, to]));
    // Console lines of workers come from other DevTools sessions, so they may arrive after the answer.
    if (this.sessions.size > 1) await this.waitForSentEvents(LAST_CONSOLE_LINES_TIMEOUT_MS).catch(() => {});
    return answer;
  }

  endRun(): void {
    this.serviceCalls.endRun();
    this.pageWindow.onRunEnd();
  }

  async explainFailure(outcome: PageRunOutcome): Promise<PageRunOutcome> {
    return this.network.requests.explainFailure(outcome);
  }

  private listenToSession(): void {
    const { session, onServiceRequest, print } = this.options;
    session.on("Runtime.bindingCalled", ({ payload }) => {
      if (!payload.startsWith(SERVICE_CALL_PREFIX)) return print(payload);
      onServiceRequest();
      runInBackground(this.serviceCalls.receiveMessage(payload.slice(SERVICE_CALL_PREFIX.length)));
    });
    session.on("Fetch.requestPaused", (event) => this.onRequestPaused(event));
  }

  private onRequestPaused(event: Protocol.Fetch.RequestPausedEvent): void {
    const { session, origin } = this.options;
    const isDocumentOfPage = event.resourceType === "Document" && event.request.url.startsWith(`${origin}/`);
    if (isDocumentOfPage) serveEmptyDocument(session, event.requestId);
    else this.network.continueOrBlockRequest(session, event);
  }

  private attachChildrenOf(session: CDPSession): Promise<unknown> {
    session.on("Target.attachedToTarget", (event) => runInBackground(this.attachChild(event)));
    session.on("Target.detachedFromTarget", ({ sessionId }) => {
      for (const child of this.sessions) if (child.id() === sessionId) this.sessions.delete(child);
    });
    return session.send("Target.setAutoAttach", AUTO_ATTACH_OPTIONS);
  }

  private async attachChild({ sessionId, targetInfo }: Protocol.Target.AttachedToTargetEvent): Promise<void> {
    this.hadChildren = true;
    const child = this.options.session.connection()?.session(sessionId);
    if (!child) return;
    this.sessions.add(child);
    await Promise.allSettled([
      this.attachChildrenOf(child),
      this.network.enableUrlCheckInChild(child),
      targetInfo.type === "worker" ? this.prepareWorker(child) : installDocumentLimits(child),
    ]);
    // The command fails only if the worker or frame has ended.
    await child.send("Runtime.runIfWaitingForDebugger").catch(() => {});
  }

  /** Resolves when all events that the page, its workers and frames have sent have arrived. Rejects after `timeoutMs`. */
  private async waitForSentEvents(timeoutMs: number): Promise<void> {
    const options = { timeout: timeoutMs };
    await Promise.all([...this.sessions].map((session) => session.send("Runtime.getIsolateId", undefined, options)));
  }

  /** Sends all commands at once, so that all of them take effect before the worker's code starts. */
  private prepareWorker(worker: CDPSession): Promise<unknown> {
    worker.on("Runtime.bindingCalled", (event) => this.options.print(event.payload));
    return Promise.all([
      worker.send("Runtime.evaluate", { expression: WORKER_LIMITS_SCRIPT }),
      worker.send("Runtime.addBinding", { name: CONSOLE_BINDING_NAME }),
      worker.send("Runtime.evaluate", { expression: WORKER_CONSOLE_SCRIPT }),
    ]);
  }

  private async usesTooMuchMemory(): Promise<boolean> {
    const { session } = this.options;
    if ((await readUsedMemoryBytes(session)) <= REMAINING_MEMORY_MAX_BYTES) return false;
    await session.send("HeapProfiler.collectGarbage");
    return (await readUsedMemoryBytes(session)) > REMAINING_MEMORY_MAX_BYTES;
  }

  /** Clears the responses that the renderer caches, because a navigation does not clear them. */
  private clearMemoryCache(): Promise<unknown> {
    const cacheSettings = [true, false].map((cacheDisabled) => ({ cacheDisabled }));
    return Promise.all(cacheSettings.map((setting) => this.options.session.send("Network.setCacheDisabled", setting)));
  }

  private async searchForLeftovers(): Promise<[boolean, boolean]> {
    // Clears cookies only if the run has sent requests. The search below finds all others, so that the page is discarded.
    if (await this.network.clearCachesAndCookies()) await this.clearMemoryCache();
    return Promise.all([this.leftoverDetector.hasStoredData(), this.usesTooMuchMemory()]);
  }
}
