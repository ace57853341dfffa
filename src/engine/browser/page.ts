/**
 * Owns one browser context with its one page: makes it, gives it a fresh room for each run, runs, and ends it. Knows
 * nothing of other pages; which key gets which page is decided in pool.ts.
 */
import type { CDPSession, Protocol } from "puppeteer-core";
import { readAnswer } from "./answer.js";
import type { Chromium } from "./chromium.js";
import { createLineReader } from "./console-lines.js";
import { createDocumentRoom } from "./document-room.js";
import type { Lane } from "./lane.js";
import { type Loss, outcomeOfLoss, timedOut } from "./loss.js";
import type { MemoryWatch } from "./memory-watch.js";
import { failed, type Outcome, type PageRun } from "./page-run.js";
import type { Room } from "./room.js";
import { createWorkerRoom } from "./worker-room.js";

const RENEW_TIMEOUT_MS = 1_000;
const CRASH_GRACE_MS = 25;

export class Page {
  private session!: CDPSession;
  private contextId!: string;
  private room!: Room;
  private fresh = false;
  private lost: Loss | null = null;
  private onLost: (() => void) | null = null;
  private print: ((payload: string) => void) | null = null;
  private runs = 0;
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

  /** A fresh room waits for its run. */
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
    const { session, targetId } = this;
    const { connection } = this.chromium;
    const crash = (event: Protocol.Target.TargetCrashedEvent) => {
      if (event.targetId !== targetId) return;
      // The word on the heap comes by another pipe, and may come after this one.
      setTimeout(() => this.lose(this.memory.blame() ?? "crashed"), CRASH_GRACE_MS);
    };
    const detach = (event: Protocol.Target.DetachedFromTargetEvent) => {
      if (event.sessionId === session.id()) this.lose("closed");
    };
    connection.on("Target.targetCrashed", crash);
    connection.on("Target.detachedFromTarget", detach);
    this.unlisten = () => {
      connection.off("Target.targetCrashed", crash);
      connection.off("Target.detachedFromTarget", detach);
    };
    session.on("Page.javascriptDialogOpening", () => {
      session.send("Page.handleJavaScriptDialog", { accept: false }).catch(() => {});
    });
    session.on("Runtime.bindingCalled", (event) => this.print?.(event.payload));
  }

  /** Ends the page's use, and with it the run that is under way. */
  lose(loss: Loss): void {
    if (this.lost !== null) return;
    this.lost = loss;
    this.unlisten();
    this.room?.stop();
    this.lane?.close();
    this.onLost?.();
  }

  /**
   * Makes the room fresh, ahead of the next run.
   * @returns false when the page must be thrown away instead
   */
  async renew(): Promise<boolean> {
    this.print = null;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, RENEW_TIMEOUT_MS, false);
    });
    const lost = new Promise<boolean>((resolve) => {
      this.onLost = () => resolve(false);
    });
    const renewed = this.room.renew().catch(() => false);
    this.fresh = this.usable && (await Promise.race([renewed, late, lost])) && this.usable;
    clearTimeout(timer);
    this.onLost = null;
    return this.fresh;
  }

  /** Gives the page its origin and its kind of room, once. @returns as `renew` */
  async settle(origin: string, inWorker: boolean): Promise<boolean> {
    const { chromium, session, contextId, targetId, lane } = this;
    const lose = (loss: Loss) => this.lose(loss);
    const print = (payload: string) => this.print?.(payload);
    const options = { chromium, session, contextId, targetId, origin, lane, lose, print };
    this.room = inWorker ? createWorkerRoom(options) : createDocumentRoom(options);
    await this.room.settle();
    return this.renew();
  }

  /** Runs once in the fresh room (`ready` holds). Never rejects: whatever happens is an Outcome. */
  async run(request: PageRun): Promise<Outcome> {
    this.fresh = false;
    this.runs += 1;
    this.print = request.onConsole ? createLineReader(request.onConsole) : null;
    const outcome = await new Promise<Outcome>((resolve) => {
      const timer = setTimeout(() => resolve(timedOut(request.timeoutMs)), request.timeoutMs);
      const cancel = () => resolve(failed("cancelled", "AbortError", "The run was cancelled"));
      request.signal?.addEventListener("abort", cancel, { once: true });
      const lost = () => resolve(outcomeOfLoss(this.lost));
      this.onLost = lost;
      this.room.run(request).then(readAnswer).then(resolve, lost);
      if (request.signal?.aborted) cancel();
      this.release = () => {
        clearTimeout(timer);
        request.signal?.removeEventListener("abort", cancel);
      };
    });
    this.release();
    this.onLost = null;
    this.print = null;
    return this.room.explain(outcome);
  }

  private release: () => void = () => {};

  /** Destroys the context and with it every process, timer, worker, popup and byte of storage in it. */
  async discard(): Promise<void> {
    this.lose("discarded");
    this.lane?.close();
    const { connection } = this.chromium;
    await connection.send("Target.disposeBrowserContext", { browserContextId: this.contextId }).catch(() => {});
  }
}
