/**
 * Owns one browser context with its one page: makes it, gives it a fresh document for each run, runs, and ends it. Knows
 * nothing of other pages; which key gets which page is decided in pool.ts.
 */
import { type CDPSession, type Protocol } from "puppeteer-core";
import { RESULT_MAX_BYTES } from "../../limits.js";
import { readAnswer, TEXT_MAX_CHARACTERS, withoutHarness } from "./answer.js";
import type { Chromium } from "./chromium.js";
import { harnessSource } from "./harness.js";
import { type MemoryWatch, RENDERER_MAX_BYTES } from "./memory-watch.js";
import { type ConsoleLine, failed, type Outcome, type PageRun } from "./page-run.js";

export const CONSOLE_MAX_LINES = 1_000;
export const CONSOLE_MAX_CHARACTERS = 262_144;
const RENEW_TIMEOUT_MS = 1_000;
const CRASH_GRACE_MS = 25;
/** Pages, frames and workers with a process of their own that one run may open. */
const OTHER_TARGETS_MAX = 16;
const BINDING = "__svc_console";
const DOCUMENT = Buffer.from('<!doctype html><html><head><meta charset="utf-8"></head><body></body></html>').toString(
  "base64",
);
const MEMORY_MB = RENDERER_MAX_BYTES / 1024 / 1024;
const HARNESS = harnessSource({
  resultMaxBytes: RESULT_MAX_BYTES,
  textMaxCharacters: TEXT_MAX_CHARACTERS,
  consoleMaxLines: CONSOLE_MAX_LINES,
  consoleMaxCharacters: CONSOLE_MAX_CHARACTERS,
});

/** The only way out of one context: a proxy port that is this context's alone. */
export interface Lane {
  /** `http://host:port` */
  readonly proxyServer: string;
  /** Starts a run's account of hosts; ends every connection that an earlier run left open. */
  begin(onHost: (host: string) => void): void;
  /** True when anything was sent through the lane since `begin`. */
  used(): boolean;
  close(): void;
}

/** The reason a page can be used no more; `memory` and `browser` end a run that is under way. */
type Loss = "closed" | "crashed" | "memory" | "crowd" | "discarded" | "browser";

export class Page {
  private session!: CDPSession;
  private contextId!: string;
  private harnessId = "";
  private origin = "";
  private fresh = false;
  private lost: Loss | null = null;
  private stained = false;
  private onLost: (() => void) | null = null;
  private onConsole: ((line: ConsoleLine) => void) | null = null;
  private runs = 0;
  private others = 0;
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
    const { connection } = this.chromium;
    const stain = (event: { targetInfo: Protocol.Target.TargetInfo }) => {
      const { browserContextId, targetId } = event.targetInfo;
      if (browserContextId !== this.contextId || targetId === this.targetId) return;
      // Popups, frames in other processes, shared and service workers: a navigation would not end them.
      this.stained = true;
      this.others += 1;
      if (this.others > OTHER_TARGETS_MAX) this.lose("crowd");
    };
    const crash = (event: Protocol.Target.TargetCrashedEvent) => {
      if (event.targetId !== this.targetId) return;
      // The word on the heap comes by another pipe, and may come after this one.
      setTimeout(() => this.lose(this.memory.toBlame() ? "memory" : "crashed"), CRASH_GRACE_MS);
    };
    const { session } = this;
    const detach = (event: Protocol.Target.DetachedFromTargetEvent) => {
      if (event.sessionId === session.id()) this.lose("closed");
    };
    connection.on("Target.targetCreated", stain);
    connection.on("Target.targetCrashed", crash);
    connection.on("Target.detachedFromTarget", detach);
    this.unlisten = () => {
      connection.off("Target.targetCreated", stain);
      connection.off("Target.targetCrashed", crash);
      connection.off("Target.detachedFromTarget", detach);
    };
    session.on("Page.frameAttached", () => {
      this.stained = true;
    });
    for (const sign of [
      "Page.downloadWillBegin",
      "Storage.cacheStorageListUpdated",
      "Storage.indexedDBListUpdated",
    ] as const) {
      session.on(sign, () => {
        this.stained = true;
      });
    }
    session.on("Page.javascriptDialogOpening", () => {
      session.send("Page.handleJavaScriptDialog", { accept: false }).catch(() => {});
    });
    session.on("Fetch.requestPaused", (event) => this.answerDocument(event));
    session.on("Runtime.bindingCalled", (event) => this.readConsole(event.payload));
  }

  private answerDocument({ requestId }: Protocol.Fetch.RequestPausedEvent): void {
    const responseHeaders = [{ name: "Content-Type", value: "text/html; charset=utf-8" }];
    this.session
      .send("Fetch.fulfillRequest", { requestId, responseCode: 200, responseHeaders, body: DOCUMENT })
      .catch(() => {});
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

  /** Resolves when the navigation has committed; the old document and all that it ran are gone then. */
  private async navigate(): Promise<{ loaded: Promise<void> }> {
    const { session } = this;
    const url = `${this.origin}/`;
    return new Promise((resolve) => {
      const onCommit = (event: Protocol.Page.FrameNavigatedEvent) => {
        if (event.frame.parentId !== undefined || event.frame.url !== url) return;
        session.off("Page.frameNavigated", onCommit);
        const loaded = new Promise<void>((done) => session.once("Page.loadEventFired", () => done()));
        resolve({ loaded });
      };
      session.on("Page.frameNavigated", onCommit);
      session.send("Page.navigate", { url }).catch(() => {});
    });
  }

  /**
   * Whether the last run left something that neither the navigation nor the harness removes. Looking costs a tenth of
   * clearing, and what was found is thrown away with its context.
   */
  private async leftSomething(): Promise<boolean> {
    const { connection } = this.chromium;
    const [{ cookies }, { usage }] = await Promise.all([
      connection.send("Storage.getCookies", { browserContextId: this.contextId }),
      this.session.send("Storage.getUsageAndQuota", { origin: this.origin }),
    ]);

    return cookies.length > 0 || usage > 0 || this.stained;
  }

  /** Puts the harness into the fresh document; the console's way out is bound to this document's own context alone. */
  private async installHarness(): Promise<void> {
    const { session } = this;
    const created = new Promise<number>((resolve) => {
      session.once("Runtime.executionContextCreated", (event) => resolve(event.context.id));
    });
    const [harness] = await Promise.all([
      session.send("Runtime.evaluate", { expression: HARNESS }),
      session.send("Runtime.enable"),
      // Left on, it would carry every console call with its values through the protocol.
      session.send("Runtime.disable"),
    ]);
    const objectId = harness.result.objectId;
    if (objectId === undefined) throw new Error(`the harness failed: ${harness.exceptionDetails?.text}`);
    const executionContextId = await created;
    await Promise.all([
      session.send("Runtime.addBinding", { name: BINDING, executionContextId }),
      session.send("Runtime.callFunctionOn", {
        objectId,
        functionDeclaration: "function(name){this.listen(name)}",
        arguments: [{ value: BINDING }],
      }),
    ]);
    this.harnessId = objectId;
  }

  private async prepare(): Promise<boolean> {
    if (this.stained || this.lane?.used() === true) return false;
    const { loaded } = await this.navigate();
    const [left] = await Promise.all([this.leftSomething(), this.installHarness(), loaded]);
    // Not earlier: right after the commit the page may not count as active yet, and the command fails.
    await this.session.send("Page.resetNavigationHistory");
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
    this.lane?.begin(request.onHost ?? (() => {}));
    const outcome = await new Promise<Outcome>((resolve) => {
      const timer = setTimeout(() => resolve(timedOut(request.timeoutMs)), request.timeoutMs);
      const cancel = () => resolve(failed("cancelled", "AbortError", "The run was cancelled"));
      request.signal?.addEventListener("abort", cancel, { once: true });
      this.onLost = () => resolve(this.lossOutcome());
      this.call(request).then(resolve, () => resolve(this.lossOutcome()));
      if (request.signal?.aborted) cancel();
      this.release = () => {
        clearTimeout(timer);
        request.signal?.removeEventListener("abort", cancel);
      };
    });
    this.release();
    this.onLost = null;
    this.onConsole = null;
    return outcome;
  }

  private release: () => void = () => {};

  private async call(request: PageRun): Promise<Outcome> {
    const scripts = request.packages.flatMap(({ name, source }) => [name, source]);
    scripts.push(request.sourceName ?? "action.js", request.source);
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

  private lossOutcome(): Outcome {
    if (this.lost === "memory")
      return failed("memory", "RangeError", `The action used more than ${MEMORY_MB} MB of memory`);
    if (this.lost === "crowd")
      return failed("memory", "RangeError", "The action opened too many pages, frames or workers");
    if (this.lost === "closed") return failed("script", "Error", "The action closed its own page");
    if (this.lost === "crashed") return failed("browser", "Error", "The page crashed during the run");
    if (this.lost !== null) return failed("browser", "Error", "The browser ended during the run");
    return failed("script", "Error", "The action left its page by a navigation");
  }

  /** Destroys the context and with it every process, timer, worker, popup and byte of storage in it. */
  async discard(): Promise<void> {
    this.lose("discarded");
    this.lane?.close();
    const { connection } = this.chromium;
    await connection.send("Target.disposeBrowserContext", { browserContextId: this.contextId }).catch(() => {});
  }
}

function timedOut(timeoutMs: number): Outcome {
  const seconds = timeoutMs / 1_000;
  return failed("timeout", "TimeoutError", `The action took longer than its limit of ${seconds} seconds and was ended`);
}
