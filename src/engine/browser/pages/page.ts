/** One browser context with one page: opens it, resets its sandbox for each run, executes runs, and discards it. pool.ts assigns pages to keys. */

import { setTimeout as delay } from "node:timers/promises";
import type { CDPSession, Connection, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import type { ProxyPort } from "../network/proxy-port.js";
import { failedPageOutcome, hasOverflowed, type Mode, type PageOutcome, type PageRun } from "../run.js";
import { FAILED_TO_LAUNCH } from "../watch/launches.js";
import { readAnswer } from "./answer.js";
import { createLineReader } from "./console-lines.js";
import { DocumentSandbox } from "./document.js";
import { CALL_MARK, CONSOLE_BINDING } from "./fresh-document.js";
import { Isolate } from "./isolate.js";
import { outcomeOfLoss, type PageLoss, timedOut } from "./loss.js";
import { NetworkIsolate } from "./network-isolate.js";
import { MISSING_ISOLATE, type Sandbox, type SandboxOptions } from "./sandbox.js";

const RENEW_TIMEOUT_MS = 1_000;
/** Time limit for opening a page, because a renderer that dies meanwhile leaves commands unanswered. */
const OPEN_TIMEOUT_MS = 5_000;
/** Time after a crash within which its cause is reported, by another pipe. */
const CAUSE_WITHIN_MS = 1_000;
/** Time after failed commands within which the end of the renderer or the browser is reported. */
const LOSS_REPORTED_WITHIN_MS = 100;
const CAUSE_LOOK_MS = 25;
/** If the pause between two runs is shorter than these milliseconds, the runs follow each other at once. */
const QUICK_SUCCESSION_MS = 20;

const SANDBOX_BY_MODE: Readonly<Record<Mode, new (options: SandboxOptions) => Sandbox>> = {
  isolate: Isolate,
  "network-isolate": NetworkIsolate,
  document: DocumentSandbox,
};
const HAS_ISOLATES = "typeof ShadowRealm === 'function' && typeof Uint8Array.fromBase64 === 'function'";

/**
 * States of a page. A `pending` page waits for its sandbox to be reset: before the first run, and after each run. From
 * `crashed` (the renderer is gone, the reason is not known yet) the only way is `lost`, which is final.
 */
type PageState =
  | { kind: "pending" }
  | { kind: "ready" }
  | { kind: "running" }
  | { kind: "crashed" }
  | { kind: "lost"; loss: PageLoss };

export class Page {
  private session!: CDPSession;
  private state: PageState = { kind: "pending" };
  /** IDs of crashed targets that were reported before this page had its target. */
  private readonly crashedEarly = new Set<string>();
  private contextId = "";
  private sandbox!: Sandbox;
  private mode: Mode | null = null;
  private onLost: (() => void) | null = null;
  private onIdleLoss: (() => void) | null = null;
  private print: ((payload: string) => void) | null = null;
  /** True if the active run has printed a line, or sent a request that does not use the proxy port. */
  private hadOutput = false;
  private runs = 0;
  private endedAt = Number.NEGATIVE_INFINITY;
  private isFollowUp = false;
  private unlisten: () => void = () => {};
  private onTarget: (page: Page) => void = () => {};
  targetId = "";

  private constructor(
    private readonly connection: Connection,
    private readonly proxyPort: ProxyPort | null,
    private readonly crashCause: () => PageLoss | null,
  ) {}

  /**
   * Opens a new context with an empty page.
   * @param crashCause returns the cause of a crash that is reported now, if it is known
   * @param onTarget receives the page as soon as it has a target, before its renderer answers
   * @throws Error if the browser does not open it in time
   */
  static async open(
    connection: Connection,
    proxyPort: ProxyPort | null,
    crashCause: () => PageLoss | null,
    onTarget: (page: Page) => void = () => {},
  ): Promise<Page> {
    const page = new Page(connection, proxyPort, crashCause);
    page.onTarget = onTarget;
    const created = page.create().catch(() => false);
    if (await page.completesWithin(OPEN_TIMEOUT_MS, () => created)) return page;
    runInBackground(page.discard());
    // A page that is opened too late is discarded as well.
    runInBackground(created.then(() => page.discard()));
    throw new Error("the browser did not open a page in time");
  }

  private async create(): Promise<boolean> {
    const { connection, proxyPort } = this;
    const proxy = proxyPort === null ? {} : { proxyServer: proxyPort.proxyServer, proxyBypassList: "<-loopback>" };
    // Listening starts before the page is created, because the failed start of its renderer may be reported before the page's ID is known.
    this.listenToConnection();
    const context = await connection.send("Target.createBrowserContext", { ...proxy, disposeOnDetach: true });
    this.contextId = context.browserContextId;
    const { targetId } = await connection.send("Target.createTarget", { url: "about:blank", ...context });
    this.targetId = targetId;
    if (this.usable) this.onTarget(this);
    if (this.crashedEarly.has(targetId)) this.lose("crashed");
    this.session = await connection.createSession({ targetId } as Protocol.Target.TargetInfo);
    this.listen();
    await this.session.send("Page.enable");
    return true;
  }

  /** True if the sandbox is ready for a run. */
  get ready(): boolean {
    return this.state.kind === "ready";
  }

  /** False once the page is lost. A crashed page becomes lost when the reason is known. */
  get usable(): boolean {
    return this.state.kind !== "lost";
  }

  /** Reason of the loss; null if the page is not lost. */
  get loss(): PageLoss | null {
    return this.state.kind === "lost" ? this.state.loss : null;
  }

  /** True if the page has a renderer, as far as is known. */
  get hasRenderer(): boolean {
    return this.state.kind !== "crashed" && this.state.kind !== "lost";
  }

  /** Changes the state. A page that has crashed or is lost keeps its state. */
  private setState(kind: "pending" | "ready" | "running"): void {
    if (this.hasRenderer) this.state = { kind };
  }

  get runCount(): number {
    return this.runs;
  }

  /** True if the last run followed the one before without a pause. */
  get followedAtOnce(): boolean {
    return this.isFollowUp;
  }

  private onCrash({ targetId, status }: Protocol.Target.TargetCrashedEvent): void {
    if (this.targetId === "") this.crashedEarly.add(targetId);
    if (targetId !== this.targetId) return;
    if (this.usable) this.state = { kind: "crashed" };
    // Without a renderer, or before any code has run, there is no cause to search for.
    if (this.mode === null || status === FAILED_TO_LAUNCH) this.lose("crashed");
    else runInBackground(this.findCrashCause().then((loss) => this.lose(loss)));
  }

  private listenToConnection(): void {
    const { connection } = this;
    const crash = (event: Protocol.Target.TargetCrashedEvent) => this.onCrash(event);
    const detach = (event: Protocol.Target.DetachedFromTargetEvent) => {
      if (event.sessionId === this.session?.id()) this.lose("closed");
    };
    connection.on("Target.targetCrashed", crash);
    connection.on("Target.detachedFromTarget", detach);
    this.unlisten = () => {
      connection.off("Target.targetCrashed", crash);
      connection.off("Target.detachedFromTarget", detach);
    };
  }

  private listen(): void {
    const { session } = this;
    session.on("Page.javascriptDialogOpening", () => {
      // The page has closed.
      session.send("Page.handleJavaScriptDialog", { accept: false }).catch(() => {});
    });
    session.on("Runtime.bindingCalled", ({ name, payload }) => {
      if (name === CONSOLE_BINDING && !payload.startsWith(CALL_MARK)) this.printLine(payload);
    });
  }

  private printLine(payload: string): void {
    this.hadOutput ||= payload !== "";
    this.print?.(payload);
  }

  private async hasIsolates(): Promise<boolean> {
    const { result } = await this.session.send("Runtime.evaluate", { expression: HAS_ISOLATES, returnByValue: true });
    return result.value === true;
  }

  /** True if the active run has neither printed a line nor sent a request. */
  private hadNoEffect(): boolean {
    return !this.hadOutput && this.proxyPort?.wasUsed() !== true;
  }

  private async findCrashCause(): Promise<PageLoss> {
    // The run is repeated in a document, whatever the cause, if it has had no effect.
    if (this.mode === "isolate" || (this.mode === "network-isolate" && this.hadNoEffect())) return "isolate";
    for (const deadline = Date.now() + CAUSE_WITHIN_MS; Date.now() < deadline && this.usable; ) {
      await delay(CAUSE_LOOK_MS);
      const cause = this.crashCause();
      if (cause !== null) return cause;
    }
    return "crashed";
  }

  /** Marks the page as lost, and ends its active run. */
  lose(loss: PageLoss): void {
    if (!this.usable) return;
    this.state = { kind: "lost", loss };
    this.unlisten();
    this.sandbox?.stop();
    this.proxyPort?.close();
    this.onLost?.();
    this.onIdleLoss?.();
  }

  /** Sets the callback for the loss of an idle page; null while a run uses the page. */
  setIdleLossListener(onLoss: (() => void) | null): void {
    this.onIdleLoss = onLoss;
  }

  /**
   * Resolves with the answer of `work`, or with false if it fails, takes longer, or the page is lost meanwhile. Takes a function, so that
   * nothing starts in a lost page and each promise that starts has its handler at once.
   */
  private async completesWithin(ms: number, work: () => Promise<boolean>): Promise<boolean> {
    if (!this.usable) return false;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, ms, false);
    });
    const pageLoss = new Promise<boolean>((resolve) => {
      this.onLost = () => resolve(false);
    });
    const done = (await Promise.race([work().catch(() => false), timeout, pageLoss])) && this.usable;
    clearTimeout(timer);
    this.onLost = null;
    return done;
  }

  /** Resets the sandbox for the next run. @returns false if the page must be discarded instead */
  async resetSandbox(timeoutMs = RENEW_TIMEOUT_MS): Promise<boolean> {
    this.print = null;
    this.setState((await this.completesWithin(timeoutMs, () => this.sandbox.reset())) ? "ready" : "pending");
    return this.ready;
  }

  /** Sets the page's origin and mode, once. @returns as `resetSandbox` */
  async setUp(origin: string, mode: Mode): Promise<boolean> {
    const { connection, session, contextId, targetId, proxyPort } = this;
    const lose = (loss: PageLoss) => this.lose(loss);
    const print = (payload: string) => this.printLine(payload);
    const onServiceRequest = () => {
      this.hadOutput = true;
    };
    const options = { connection, session, contextId, targetId, origin, proxyPort, lose, onServiceRequest, print };
    this.mode = mode;
    const create = async () => {
      const isMissing = mode !== "document" && !(await this.hasIsolates());
      this.sandbox = isMissing ? MISSING_ISOLATE : new SANDBOX_BY_MODE[mode](options);
      await this.sandbox.prepare();
      return true;
    };
    return (await this.completesWithin(OPEN_TIMEOUT_MS, create)) && this.resetSandbox(OPEN_TIMEOUT_MS);
  }

  /** Executes one run in the ready sandbox. Never rejects. */
  async run(request: PageRun): Promise<PageOutcome> {
    this.setState("running");
    this.hadOutput = false;
    this.runs += 1;
    this.isFollowUp = performance.now() - this.endedAt < QUICK_SUCCESSION_MS;
    this.print = request.onConsole ? createLineReader(request.onConsole, request.sourceName) : null;
    const { timeoutMs, signal, sourceName } = request;
    const { promise, resolve } = Promise.withResolvers<PageOutcome>();
    const timer = setTimeout(() => resolve(timedOut(timeoutMs)), timeoutMs + this.sandbox.unreadyMs());
    const cancel = () => resolve(failedPageOutcome("cancelled", "AbortError", "The run was cancelled"));
    signal?.addEventListener("abort", cancel, { once: true });
    const reportLoss = () => resolve(outcomeOfLoss(this.loss));
    this.onLost = reportLoss;
    this.sandbox
      .execute(request)
      .then((answer) => readAnswer(answer, sourceName))
      .then(resolve, () => runInBackground(this.whenLossIsKnown().then(reportLoss)));
    if (signal?.aborted) cancel();
    const outcome = await promise;
    // The port is closed before the outcome is reported: what the page sends from now on belongs to no run.
    this.proxyPort?.endRun();
    this.sandbox.end();
    clearTimeout(timer);
    signal?.removeEventListener("abort", cancel);
    this.endedAt = performance.now();
    this.onLost = null;
    this.print = null;
    this.setState("pending");
    if (this.mode === "network-isolate" && hasOverflowed(outcome) && this.hadNoEffect()) {
      return failedPageOutcome("retry", "RangeError", "The run needs a larger stack than its isolate has");
    }
    return this.sandbox.explain(outcome);
  }

  /**
   * Waits for the report of a loss. An evaluation fails if the action navigates, or if the renderer or browser ends,
   * which may be reported a moment later.
   */
  private async whenLossIsKnown(): Promise<void> {
    if (this.usable) await delay(LOSS_REPORTED_WITHIN_MS);
    while (this.state.kind === "crashed") await delay(CAUSE_LOOK_MS);
  }

  /** Disposes of the context with all its processes, timers, workers, windows and storage. */
  async discard(): Promise<void> {
    this.lose("discarded");
    this.unlisten();
    const { contextId: browserContextId, connection } = this;
    if (browserContextId === "") return;
    // The browser has ended, and its contexts with it.
    await connection.send("Target.disposeBrowserContext", { browserContextId }).catch(() => {});
  }
}
