/** A browser context with its only page: opens it, resets its sandbox for each run, and executes runs. pool.ts chooses the run's page. */

import { setTimeout as delay } from "node:timers/promises";
import type { CDPSession, Connection, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import type { ProxyPort } from "../network/proxy-port.js";
import {
  createFailedPageRunOutcome,
  type EvaluationMode,
  hasOverflowedStack,
  type PageRunOutcome,
  type PageRunRequest,
} from "../run.js";
import { FAILED_LAUNCH_STATUS } from "../watch/browser-watch.js";
import { parsePageAnswer } from "./answer.js";
import { createConsoleLineParser } from "./console-lines.js";
import { DocumentSandbox } from "./document.js";
import { Isolate } from "./isolate.js";
import { createPageLossOutcome, createTimeoutOutcome, type PageLossReason } from "./loss.js";
import type { Sandbox } from "./sandbox.js";

/** Time limit for the reset of a page after a run. If code of the run remains active for longer, the page is discarded. */
export const RESET_TIMEOUT_MS = 1_000;
/** Without a limit, opening a page would never end if its renderer dies, because the browser then does not answer commands. */
const OPEN_TIMEOUT_MS = 5_000;
/** Maximum wait for the cause of a crash, which may be known later than the crash itself. */
const CRASH_CAUSE_TIMEOUT_MS = 1_000;
/** Maximum wait, after a command has failed, for the report that the renderer or the browser has ended. */
const LOSS_REPORT_TIMEOUT_MS = 100;
const CRASH_CAUSE_POLL_MS = 25;
const FOLLOW_UP_MAX_PAUSE_MS = 20;

/** `pending`: needs a reset. `crashed`: the renderer is gone, and the page will be lost when the reason is known. `lost` is final. */
type PageState =
  | { kind: "pending" }
  | { kind: "ready" }
  | { kind: "running" }
  | { kind: "crashed" }
  | { kind: "lost"; loss: PageLossReason };

export class Page {
  private session!: CDPSession;
  private state: PageState = { kind: "pending" };
  private readonly earlyCrashedTargetIds = new Set<string>();
  private contextId = "";
  private sandbox!: Sandbox;
  private mode: EvaluationMode | null = null;
  private onLost: (() => void) | null = null;
  private onIdleLoss: (() => void) | null = null;
  private print: ((payload: string) => void) | null = null;
  /** True if the active run has printed a line, or sent a request that does not use the proxy port. */
  private hadOutput = false;
  runCount = 0;
  private endedAt = Number.NEGATIVE_INFINITY;
  /** True if the last run started within FOLLOW_UP_MAX_PAUSE_MS after the previous run. */
  wasFollowUpRun = false;
  private readonly lossController = new AbortController();
  targetId = "";

  constructor(
    private readonly connection: Connection,
    private readonly proxyPort: ProxyPort | null,
    private readonly getCrashCause: () => PageLossReason | null,
  ) {}

  /** @throws Error if the page does not open */
  async open(): Promise<void> {
    // The reason of a failure does not matter: the caller opens another page.
    const creation = this.create().catch(() => false);
    if (await this.completesWithin(OPEN_TIMEOUT_MS, () => creation)) return;
    runInBackground(this.discard());
    runInBackground(creation.then(() => this.discard()));
    throw new Error(`the browser did not open a page within ${OPEN_TIMEOUT_MS / 1_000} seconds, or the page was lost`);
  }

  private async create(): Promise<boolean> {
    const { connection, proxyPort } = this;
    const proxy = proxyPort === null ? {} : { proxyServer: proxyPort.proxyServer, proxyBypassList: "<-loopback>" };
    // Listens first, because the page's renderer may fail to start before the page's ID is known.
    this.listenToConnection();
    const context = await connection.send("Target.createBrowserContext", { ...proxy, disposeOnDetach: true });
    this.contextId = context.browserContextId;
    const { targetId } = await connection.send("Target.createTarget", { url: "about:blank", ...context });
    this.targetId = targetId;
    if (this.earlyCrashedTargetIds.has(targetId)) this.markLost("crashed");
    this.session = await connection.createSession({ targetId } as Protocol.Target.TargetInfo);
    const { session } = this;
    // The command fails only if the dialog or the page has closed.
    const closeDialog = () => session.send("Page.handleJavaScriptDialog", { accept: false }).catch(() => {});
    session.on("Page.javascriptDialogOpening", () => runInBackground(closeDialog()));
    await session.send("Page.enable");
    return true;
  }

  get isReady(): boolean {
    return this.state.kind === "ready";
  }

  /** False once the page is lost. A crashed page still counts as usable until the reason of the crash is known. */
  get isUsable(): boolean {
    return this.state.kind !== "lost";
  }

  get loss(): PageLossReason | null {
    return this.state.kind === "lost" ? this.state.loss : null;
  }

  /** True after the DevTools target was created, until the renderer crashes or the page is lost. */
  get hasRenderer(): boolean {
    return this.targetId !== "" && this.state.kind !== "crashed" && this.isUsable;
  }

  private setState(kind: "pending" | "ready" | "running"): void {
    if (this.hasRenderer) this.state = { kind };
  }

  private onCrash({ targetId, status }: Protocol.Target.TargetCrashedEvent): void {
    if (this.targetId === "") this.earlyCrashedTargetIds.add(targetId);
    if (targetId !== this.targetId) return;
    if (this.isUsable) this.state = { kind: "crashed" };
    // The cause does not matter if no code has run in the page, or if its renderer did not start.
    if (this.mode === null || status === FAILED_LAUNCH_STATUS) this.markLost("crashed");
    else runInBackground(this.findCrashCause().then((loss) => this.markLost(loss)));
  }

  private listenToConnection(): void {
    const { connection } = this;
    const handleCrash = (event: Protocol.Target.TargetCrashedEvent) => this.onCrash(event);
    const handleDetach = (event: Protocol.Target.DetachedFromTargetEvent) => {
      if (event.sessionId === this.session?.id()) this.markLost("closed");
    };
    connection.on("Target.targetCrashed", handleCrash);
    connection.on("Target.detachedFromTarget", handleDetach);
    this.lossController.signal.addEventListener("abort", () => {
      connection.off("Target.targetCrashed", handleCrash);
      connection.off("Target.detachedFromTarget", handleDetach);
    });
  }

  private printLine(payload: string): void {
    this.hadOutput ||= payload !== "";
    this.print?.(payload);
  }

  private hadNoEffect(): boolean {
    return !this.hadOutput && this.proxyPort?.wasUsed() !== true;
  }

  private async findCrashCause(): Promise<PageLossReason> {
    // A run of an isolate that had no effect is repeated in a document, so the cause of the crash does not matter.
    if (this.mode === "isolate" || (this.mode === "network-isolate" && this.hadNoEffect())) return "isolate";
    for (const deadline = Date.now() + CRASH_CAUSE_TIMEOUT_MS; Date.now() < deadline && this.isUsable; ) {
      await delay(CRASH_CAUSE_POLL_MS);
      const cause = this.getCrashCause();
      if (cause !== null) return cause;
    }
    return "crashed";
  }

  /** Marks the page as lost (no longer usable), and ends its active run. */
  markLost(loss: PageLossReason): void {
    if (!this.isUsable) return;
    this.state = { kind: "lost", loss };
    this.lossController.abort();
    this.proxyPort?.close();
    this.onLost?.();
    this.onIdleLoss?.();
  }

  /** Sets the function that is called if the page is lost while it is idle. Pass null when the page stops being idle. */
  setIdleLossListener(onLoss: (() => void) | null): void {
    this.onIdleLoss = onLoss;
  }

  /** Resolves with false if `work` fails, returns false or takes longer than `timeoutMs`, or if the page is lost. */
  private async completesWithin(timeoutMs: number, work: () => Promise<boolean>): Promise<boolean> {
    if (!this.isUsable) return false;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, timeoutMs, false);
    });
    const pageLoss = new Promise<boolean>((resolve) => {
      this.onLost = () => resolve(false);
    });
    const isCompleted = (await Promise.race([work().catch(() => false), timeout, pageLoss])) && this.isUsable;
    clearTimeout(timer);
    this.onLost = null;
    return isCompleted;
  }

  /** Prepares the sandbox for the next run. Returns false if the page must be discarded. */
  async resetSandbox(timeoutMs = RESET_TIMEOUT_MS): Promise<boolean> {
    this.print = null;
    this.setState((await this.completesWithin(timeoutMs, () => this.sandbox.reset())) ? "ready" : "pending");
    return this.isReady;
  }

  /** Creates the sandbox. Call this method once for each page. Returns false if the page must be discarded. */
  async setUp(origin: string, mode: EvaluationMode): Promise<boolean> {
    const { connection, session, contextId, targetId, proxyPort } = this;
    const markLost = (loss: PageLossReason) => this.markLost(loss);
    const print = (payload: string) => this.printLine(payload);
    const onServiceRequest = () => {
      this.hadOutput = true;
    };
    const callbacks = { markLost, lostSignal: this.lossController.signal, onServiceRequest, print };
    const options = { connection, session, contextId, targetId, origin, proxyPort, ...callbacks };
    this.mode = mode;
    const createSandbox = async () => {
      this.sandbox = mode === "document" ? new DocumentSandbox(options) : new Isolate(options, mode);
      await this.sandbox.prepare();
      return true;
    };
    return (await this.completesWithin(OPEN_TIMEOUT_MS, createSandbox)) && this.resetSandbox(OPEN_TIMEOUT_MS);
  }

  /** Executes one run in the ready sandbox. Never rejects. */
  async run(request: PageRunRequest): Promise<PageRunOutcome> {
    this.setState("running");
    this.hadOutput = false;
    this.runCount += 1;
    this.wasFollowUpRun = performance.now() - this.endedAt < FOLLOW_UP_MAX_PAUSE_MS;
    this.print = request.onConsole ? createConsoleLineParser(request.onConsole, request.sourceName) : null;
    const { timeoutMs, signal, sourceName } = request;
    const { promise, resolve } = Promise.withResolvers<PageRunOutcome>();
    const timer = setTimeout(() => resolve(createTimeoutOutcome(timeoutMs)), timeoutMs);
    const cancel = () => resolve(createFailedPageRunOutcome("cancelled", "AbortError", "The run was cancelled"));
    signal?.addEventListener("abort", cancel, { once: true });
    const reportLoss = () => resolve(createPageLossOutcome(this.loss));
    this.onLost = reportLoss;
    this.sandbox
      .execute(request)
      .then((answer) => parsePageAnswer(answer, sourceName))
      .then(resolve, () => runInBackground(this.waitUntilLossIsKnown().then(reportLoss)));
    if (signal?.aborted) cancel();
    const outcome = await promise;
    // Closes the proxy port before the outcome is reported, so that remaining code of the run can send no more requests.
    this.proxyPort?.endRun();
    this.sandbox.endRun();
    clearTimeout(timer);
    signal?.removeEventListener("abort", cancel);
    this.endedAt = performance.now();
    this.onLost = null;
    this.print = null;
    this.setState("pending");
    if (this.mode === "network-isolate" && hasOverflowedStack(outcome) && this.hadNoEffect()) {
      return createFailedPageRunOutcome("retry", "RangeError", "The run needs a larger stack than its isolate has");
    }
    return this.sandbox.explainFailure(outcome);
  }

  /** After a failed command: waits for a report that the renderer has ended. Without a report, the action has navigated the page. */
  private async waitUntilLossIsKnown(): Promise<void> {
    if (this.isUsable) await delay(LOSS_REPORT_TIMEOUT_MS);
    while (this.state.kind === "crashed") await delay(CRASH_CAUSE_POLL_MS);
  }

  async discard(): Promise<void> {
    this.markLost("discarded");
    const { contextId: browserContextId, connection } = this;
    if (browserContextId === "") return;
    // The command fails only if the browser has ended, which also ends its contexts.
    await connection.send("Target.disposeBrowserContext", { browserContextId }).catch(() => {});
  }
}
