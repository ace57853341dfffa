/**
 * Owns one browser context with its one page: makes it, gives it a fresh document for each run, runs, and ends it. Knows
 * nothing of other pages; which key gets which page is decided in pool.ts.
 */
import type { CDPSession, Protocol } from "puppeteer-core";
import { readAnswer, TEXT_MAX_CHARACTERS, withoutHarness } from "./answer.js";
import type { Chromium } from "./chromium.js";
import { answerDocument, installHarness, navigate } from "./fresh-document.js";
import type { Lane } from "./lane.js";
import { type Loss, outcomeOfLoss, timedOut } from "./loss.js";
import type { MemoryWatch } from "./memory-watch.js";
import { type ConsoleLine, failed, type Outcome, type PageRun } from "./page-run.js";
import { type RequestFaults, watchRequestFaults } from "./request-faults.js";
import { createRequestGuard, type RequestGuard } from "./request-guard.js";
import { type Traces, watchTraces } from "./traces.js";

const RENEW_TIMEOUT_MS = 1_000;
const CRASH_GRACE_MS = 25;
const NO_BUFFERS = { maxTotalBufferSize: 0, maxResourceBufferSize: 0, maxPostDataSize: 0 };
export class Page {
  private session!: CDPSession;
  private contextId!: string;
  private harnessId = "";
  private origin = "";
  private fresh = false;
  private lost: Loss | null = null;
  private onLost: (() => void) | null = null;
  private onConsole: ((line: ConsoleLine) => void) | null = null;
  private runs = 0;
  private traces!: Traces;
  private guard!: RequestGuard;
  private faults!: RequestFaults;
  private unlisten: () => void = () => {};
  targetId = "";

  private constructor(
    private readonly chromium: Chromium,
    private readonly memory: MemoryWatch,
    private readonly lane: Lane | null,
  ) {}

  /** A new context with an empty page. */
  static async open(chromium: Chromium, memory: MemoryWatch, lane: Lane | null): Promise<Page> {
    const page = new Page(chromium, memory, lane);
    const { connection } = chromium;
    const proxy = lane === null ? {} : { proxyServer: lane.proxyServer, proxyBypassList: "<-loopback>" };
    const context = await connection.send("Target.createBrowserContext", { ...proxy, disposeOnDetach: true });
    page.contextId = context.browserContextId;
    const { targetId } = await connection.send("Target.createTarget", { url: "about:blank", ...context });
    page.targetId = targetId;
    page.session = await connection.createSession({ targetId } as Protocol.Target.TargetInfo);
    page.listen();
    await page.session.send("Page.enable");
    return page;
  }

  /** A fresh document waits for its run. */
  get ready(): boolean {
    return this.fresh && this.usable;
  }

  get usable(): boolean {
    return this.lost === null;
  }

  get runCount(): number {
    return this.runs;
  }

  private listen(): void {
    const { session, chromium, contextId, targetId } = this;
    const { connection } = chromium;
    const crash = (event: Protocol.Target.TargetCrashedEvent) => {
      if (event.targetId !== targetId) return;
      // The word on the heap comes by another pipe, and may come after this one.
      setTimeout(() => this.lose(this.memory.toBlame() ? "memory" : "crashed"), CRASH_GRACE_MS);
    };
    const detach = (event: Protocol.Target.DetachedFromTargetEvent) => {
      if (event.sessionId === session.id()) this.lose("closed");
    };
    connection.on("Target.targetCrashed", crash);
    connection.on("Target.detachedFromTarget", detach);
    const onCrowd = () => this.lose("crowd");
    const onForbidden = () => this.lose("window");
    this.traces = watchTraces({ chromium, session, contextId, targetId, onCrowd, onForbidden });
    this.guard = createRequestGuard(session);
    this.unlisten = () => {
      connection.off("Target.targetCrashed", crash);
      connection.off("Target.detachedFromTarget", detach);
      this.traces.stop();
    };
    session.on("Page.javascriptDialogOpening", () => {
      session.send("Page.handleJavaScriptDialog", { accept: false }).catch(() => {});
    });
    session.on("Fetch.requestPaused", (event) => this.answerRequest(event));
    session.on("Runtime.bindingCalled", (event) => this.readConsole(event.payload));
  }

  private answerRequest(event: Protocol.Fetch.RequestPausedEvent): void {
    const { requestId, request, resourceType } = event;
    const ours = resourceType === "Document" && request.url.startsWith(`${this.origin}/`);
    if (ours) answerDocument(this.session, requestId);
    else this.guard.answer(this.session, event);
  }

  private readConsole(payload: string): void {
    if (this.onConsole === null || payload.length > 4 * TEXT_MAX_CHARACTERS) return;
    const line = JSON.parse(payload) as ConsoleLine;
    this.onConsole({ level: String(line.level), at: Number(line.at), text: withoutHarness(String(line.text)) });
  }

  /** Ends the page's use, and with it the run that is under way. */
  lose(loss: Loss): void {
    if (this.lost !== null) return;
    this.lost = loss;
    this.unlisten();
    this.lane?.close();
    this.onLost?.();
  }

  private async prepare(): Promise<boolean> {
    if (this.traces.found() || this.lane?.used() === true) return false;
    const { session, origin } = this;
    const { loaded } = await navigate(session, `${origin}/`);
    const [left, harnessId] = await Promise.all([this.traces.look(origin), installHarness(session), loaded]);
    this.harnessId = harnessId;
    // Not earlier: right after the commit the page may not count as active yet, and the command fails.
    await session.send("Page.resetNavigationHistory");
    return !left;
  }

  /**
   * Replaces the document by a fresh one at the origin, ahead of the next run.
   * @returns false when the page must be thrown away instead
   */
  async renew(): Promise<boolean> {
    this.onConsole = null;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, RENEW_TIMEOUT_MS, false);
    });
    const lost = new Promise<boolean>((resolve) => {
      this.onLost = () => resolve(false);
    });
    const prepared = this.prepare().catch(() => false);
    this.fresh = this.usable && (await Promise.race([prepared, late, lost])) && this.usable;
    clearTimeout(timer);
    this.onLost = null;
    return this.fresh;
  }

  /** Gives the page its origin, once. @returns as `renew` */
  async settle(origin: string): Promise<boolean> {
    this.origin = origin;
    await this.session.send("Fetch.enable", {
      patterns: [{ urlPattern: `${origin}/*`, resourceType: "Document" }],
    });
    this.faults = watchRequestFaults(this.session, origin);
    await this.session.send("Network.enable", NO_BUFFERS);
    // An empty cache has no size to be found by.
    await this.session.send("Storage.trackCacheStorageForOrigin", { origin });
    await this.session.send("Storage.trackIndexedDBForOrigin", { origin });
    return this.renew();
  }

  /** Runs once in the fresh document (`ready` holds). Never rejects: whatever happens is an Outcome. */
  async run(request: PageRun): Promise<Outcome> {
    this.fresh = false;
    this.runs += 1;
    this.onConsole = request.onConsole ?? null;
    const outcome = await new Promise<Outcome>((resolve) => {
      const timer = setTimeout(() => resolve(timedOut(request.timeoutMs)), request.timeoutMs);
      const cancel = () => resolve(failed("cancelled", "AbortError", "The run was cancelled"));
      request.signal?.addEventListener("abort", cancel, { once: true });
      const lost = () => resolve(outcomeOfLoss(this.lost));
      this.onLost = lost;
      this.beginRequests(request)
        .then(() => this.call(request))
        .then(resolve, lost);
      if (request.signal?.aborted) cancel();
      this.release = () => {
        clearTimeout(timer);
        request.signal?.removeEventListener("abort", cancel);
      };
    });
    this.release();
    this.onLost = null;
    this.onConsole = null;
    return this.faults.explain(outcome);
  }

  private beginRequests({ mayRequest, onHost, onConsole }: PageRun): Promise<void> {
    const { guard, faults } = this;
    faults.begin((text) => onConsole?.({ level: "error", at: Date.now(), text: `A request failed: ${text}` }));
    this.lane?.begin({
      onHost: (host) => onHost?.(host),
      onRefused: (host, reason) => faults.refused(host, reason),
      mayConnect: (host) => guard.mayConnect(host),
    });
    return guard.begin(mayRequest);
  }

  private release: () => void = () => {};

  private async call(request: PageRun): Promise<Outcome> {
    const { sourceName: name = "action.js", source, packages } = request;
    // Flat, since what is evaluated first may change what later objects inherit.
    const scripts = [...packages, { name, source }].flatMap((script) =>
      "url" in script ? ["", script.url] : [script.name, script.source],
    );
    const { result } = await this.session.send(
      "Runtime.callFunctionOn",
      {
        objectId: this.harnessId,
        functionDeclaration: "function(...a){return this.run(...a)}",
        arguments: [{ value: scripts }, { value: request.payload }, { value: request.settings }],
        awaitPromise: true,
        returnByValue: true,
      },
      { timeout: 0 },
    );
    return readAnswer(result.value);
  }

  /** Destroys the context and with it every process, timer, worker, popup and byte of storage in it. */
  async discard(): Promise<void> {
    this.lose("discarded");
    this.lane?.close();
    const { connection } = this.chromium;
    await connection.send("Target.disposeBrowserContext", { browserContextId: this.contextId }).catch(() => {});
  }
}
