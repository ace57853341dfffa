/**
 * Controls the worker thread on which the realms of a page run in turn (in-page/realm-worker.ts), by a session of its own. Replaces the thread
 * when it holds too much memory or has served its share of runs.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { Reply } from "../network/service-calls.js";
import type { PageRun } from "../run.js";
import { CONSOLE_BINDING, callHarness, installHarness, textInParts } from "./fresh-document.js";
import { PAUSE_MS, READY_WITHIN_MS } from "./harness.js";
import { HostPage } from "./host-page.js";
import type { ThreadStep } from "./in-page/messages.js";
import type { SandboxOptions } from "./sandbox.js";
import { StoredTexts } from "./stored-texts.js";

/** The thread's reply to `run` if it has no realm. */
const LATE = "late";

/** Maximum wait for a busy thread. */
const CATCH_UP_MS = 200;

/** A thread without a realm for the next run this long after the last one creates none any more. */
const STUCK_AFTER_MS = PAUSE_MS + READY_WITHIN_MS + 250;

/** One worker. */
interface Worker {
  session: CDPSession;
  harnessId: string;
  texts: StoredTexts;
  /** Number of answered runs. */
  runs: number;
}

export class IsolateThread {
  private readonly page: HostPage;
  private current: Worker | null = null;
  private step: ThreadStep = "reuse";
  private endedAt = 0;
  /** Receives an answer, or the length of a long one. */
  private onAnswer: (answer: string | number) => void = () => {};
  private stuckTimer: NodeJS.Timeout | null = null;
  /** Workers that were attached, and that were requested. */
  private attached = 0;
  private requested = 0;
  private started: Promise<void> = Promise.resolve();
  private watched: Promise<unknown> = Promise.resolve();
  private onAttached: () => void = () => {};

  /**
   * @param heldMaxBytes maximum memory of a thread that serves another run: V8 frees the memory of a realm only with its thread
   * @param onWorker called for each worker before a run uses it
   * @param onCall receives the run's requests to the service
   */
  constructor(
    private readonly options: SandboxOptions,
    private readonly harnesses: { page: string; worker: string },
    private readonly heldMaxBytes: number,
    private readonly onWorker: (worker: CDPSession) => Promise<unknown> = async () => {},
    private readonly onCall: (payload: string) => void = () => {},
  ) {
    this.page = new HostPage(options, harnesses.page);
    options.session.on("Target.attachedToTarget", (event) => this.attach(event));
  }

  /** Opens the page around the worker with this policy. */
  async open(policy: Protocol.Fetch.HeaderEntry): Promise<void> {
    const { session } = this.options;
    await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
    await this.page.open(policy);
  }

  /** Starts a new worker with a realm for the next run, and ends the one before. */
  replace(): Promise<void> {
    this.requested += 1;
    this.started = this.start();
    return this.started;
  }

  /** Resolves when all events that the worker had sent have arrived. Rejects if it is busy. */
  async caughtUp(): Promise<void> {
    await this.current?.session.send("Runtime.getIsolateId", undefined, { timeout: CATCH_UP_MS });
  }

  /** Evaluates the run's code in the realm that was created for it. @param base address of the service @returns the harness's answer */
  async run(request: PageRun, base = ""): Promise<unknown> {
    const worker = this.current!;
    const answer = await new Promise<string | number>((resolve) => {
      this.onAnswer = resolve;
      // The loss of the worker is reported as the loss of its page.
      this.call("run", ...worker.texts.valuesOf(request), base).then(
        (reply) => reply === LATE && resolve(reply),
        () => {},
      );
    });
    if (answer === LATE) return this.options.lose("unready");
    worker.runs += 1;
    if (typeof answer !== "number") return this.readStep(answer);
    return this.readStep(await textInParts(answer, (from, to) => this.call("part", from, to)));
  }

  /** Passes a part of the service's answer to the run. */
  readonly answer = (...values: Parameters<Reply>): Promise<unknown> => this.call("answer", ...values);

  /** Prepares the thread for another run. */
  async reset(): Promise<void> {
    if (this.step === "replace") await this.replace();
    if (this.step === "measure" && (await this.heldBytes()) > this.heldMaxBytes) await this.replace();
    await this.page.collect();
  }

  /** As in Sandbox. */
  unreadyMs(): number {
    return Math.max(0, this.endedAt + STUCK_AFTER_MS - performance.now());
  }

  onRunEnd(): void {
    this.endedAt = performance.now();
    this.checkLater(STUCK_AFTER_MS);
  }

  stop(): void {
    clearTimeout(this.stuckTimer ?? undefined);
  }

  private call(method: string, ...values: readonly unknown[]): Promise<unknown> {
    if (this.current === null) throw new Error("the page has no worker");
    return callHarness(this.current.session, this.current.harnessId, method, values);
  }

  private checkLater(ms: number): void {
    this.stuckTimer ??= setTimeout(() => {
      // The page has closed.
      this.checkStuck().catch(() => {});
    }, ms);
    this.stuckTimer.unref();
  }

  /** Ends the use of the page if code of the last run keeps the thread busy, so that the next run would never start. */
  private async checkStuck(): Promise<void> {
    this.stuckTimer = null;
    const rest = this.endedAt + STUCK_AFTER_MS - performance.now();
    if (rest > 0) return this.checkLater(rest);
    await this.started;
    // A thread that is being replaced creates no more realms.
    if (this.step === "replace" || this.attached < this.requested) return;
    if ((await this.page.call("hasMade", this.current!.runs + 1)) === false) this.options.lose("unready");
  }

  /** Stores the next step, with which an answer starts. @returns the rest of the answer */
  private readStep(answer: string | undefined): string | undefined {
    const end = answer?.indexOf(" ") ?? 0;
    this.step = (answer?.slice(0, end) ?? "replace") as ThreadStep;
    return answer?.slice(end + 1);
  }

  private attach({ sessionId }: Protocol.Target.AttachedToTargetEvent): void {
    const session = this.options.session.connection()?.session(sessionId) ?? null;
    this.attached += 1;
    if (session !== null) {
      const worker: Worker = { session, harnessId: "", texts: new StoredTexts(), runs: 0 };
      this.current = worker;
      session.on("Runtime.bindingCalled", ({ name, payload }) => {
        if (name === CONSOLE_BINDING && worker === this.current) this.receive(payload);
      });
      this.watched = this.onWorker(session);
    }
    // If the page or its browser ends now, nothing may be waiting for this promise.
    this.watched.catch(() => {});
    this.onAttached();
  }

  /** Receives a message of the type ThreadMessage. */
  private receive(payload: string): void {
    const end = payload.indexOf(" ");
    const [tag, content] = [payload.slice(0, end), payload.slice(end + 1)];
    if (tag === "console") this.options.print(content);
    else if (tag === "service") this.onCall(content);
    else this.onAnswer(tag === "long-answer" ? Number(content) : content);
  }

  private async start(): Promise<void> {
    await this.page.call("replaceThread");
    while (this.attached < this.requested) {
      await new Promise<void>((resolve) => {
        this.onAttached = resolve;
      });
    }
    const worker = this.current!;
    [worker.harnessId] = await Promise.all([installHarness(worker.session, this.harnesses.worker), this.watched]);
    await this.call("begin", CONSOLE_BINDING);
  }

  /** Memory in bytes, including the platform's objects, buffers and garbage. */
  private async heldBytes(): Promise<number> {
    if (this.current === null) throw new Error("the page has no worker");
    const usage = await this.current.session.send("Runtime.getHeapUsage");
    return usage.usedSize + usage.embedderHeapUsedSize + usage.backingStorageSize;
  }
}
