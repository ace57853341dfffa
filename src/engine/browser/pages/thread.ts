/**
 * The one thread on which a page's realms follow each other (in-page/realm-worker.ts), as it is asked from outside, past the page: by a
 * session of its own. Knows when there is another, and how much it holds.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { Reply } from "../network/service-calls.js";
import type { PageRun } from "../run.js";
import { CONSOLE_BINDING, callHarness, installHarness, textInParts } from "./fresh-document.js";
import { PAUSE_MS, READY_WITHIN_MS } from "./harness.js";
import { createHostPage } from "./host-page.js";
import type { ThreadStep } from "./in-page/messages.js";
import { createKeptTexts } from "./kept-texts.js";
import type { SandboxOptions } from "./sandbox.js";

/** Instead of an answer. */
const LATE = "late";

/** One that is busy for so long is not waited for. */
const CATCH_UP_MS = 200;

/** After a run's end: a thread that has no realm for the next one by then gets none any more, for it makes none so late. */
const STUCK_AFTER_MS = PAUSE_MS + READY_WITHIN_MS + 250;

/** One worker, with what it has been sent. */
interface Thread {
  session: CDPSession;
  harnessId: string;
  texts: ReturnType<typeof createKeptTexts>;
  /** Runs that it has answered. */
  runs: number;
}

/**
 * @param heldMaxBytes what a thread may hold when it serves another run: V8 keeps what a realm held until the thread ends
 * @param onThread hears of each thread before a run has it
 * @param onCall takes what a run asks of the service
 */
export function createThread(
  options: SandboxOptions,
  harnesses: { page: string; worker: string },
  heldMaxBytes: number,
  onThread: (thread: CDPSession) => Promise<unknown> = async () => {},
  onCall: (payload: string) => void = () => {},
) {
  const { session, lose, print } = options;
  const page = createHostPage(options, harnesses.page);
  let current: Thread | null = null;
  let step: ThreadStep = "reuse";
  let endedAt = 0;
  /** Receives an answer, or the length of a long one. */
  let onAnswer: (answer: string | number) => void = () => {};
  let looking: NodeJS.Timeout | null = null;
  let seen = 0;
  let expected = 0;
  let begun: Promise<void> = Promise.resolve();
  let heard: Promise<unknown> = Promise.resolve();
  let onSeen: () => void = () => {};

  function call(method: string, ...values: readonly unknown[]): Promise<unknown> {
    if (current === null) throw new Error("the page has no worker");
    return callHarness(current.session, current.harnessId, method, values);
  }

  /** Ends the page's use where what the last run left keeps the thread from the next one, which then never begins. */
  async function look(): Promise<void> {
    looking = null;
    const rest = endedAt + STUCK_AFTER_MS - performance.now();
    if (rest > 0) return lookIn(rest);
    await begun;
    // One that is to be replaced, or just is, makes no more.
    if (step === "replace" || seen < expected) return;
    if ((await page.call("hasMade", current!.runs + 1)) === false) lose("unready");
  }

  function lookIn(ms: number): void {
    looking ??= setTimeout(() => {
      look().catch(() => {});
    }, ms);
    looking.unref();
  }

  /** Reads the next step of the thread from an answer. @returns the rest of the answer */
  function withoutStep(answer: string | undefined): string | undefined {
    const end = answer?.indexOf(" ") ?? 0;
    step = (answer?.slice(0, end) ?? "replace") as ThreadStep;
    return answer?.slice(end + 1);
  }

  session.on("Target.attachedToTarget", ({ sessionId }: Protocol.Target.AttachedToTargetEvent) => {
    const thread = session.connection()?.session(sessionId) ?? null;
    seen += 1;
    if (thread !== null) {
      const own: Thread = { session: thread, harnessId: "", texts: createKeptTexts(), runs: 0 };
      current = own;
      thread.on("Runtime.bindingCalled", ({ name, payload }) => {
        if (name !== CONSOLE_BINDING || own !== current) return;
        const end = payload.indexOf(" ");
        const [tag, content] = [payload.slice(0, end), payload.slice(end + 1)];
        if (tag === "console") print(content);
        else if (tag === "service") onCall(content);
        else onAnswer(tag === "long-answer" ? Number(content) : content);
      });
      heard = onThread(thread);
    }
    // Nobody may be left to ask what became of it, when the page or its browser goes just now.
    heard.catch(() => {});
    onSeen();
  });

  async function begin(): Promise<void> {
    await page.call("replaceThread");
    while (seen < expected) {
      await new Promise<void>((resolve) => {
        onSeen = resolve;
      });
    }
    const own = current!;
    [own.harnessId] = await Promise.all([installHarness(own.session, harnesses.worker), heard]);
    await call("begin", CONSOLE_BINDING);
  }

  /** Has the next run's realm made on another thread. */
  function replace(): Promise<void> {
    expected += 1;
    begun = begin();
    return begun;
  }

  /** In bytes: objects, the platform's too, and buffers, with the garbage among them. Nothing in a worker can tell. */
  async function heldBytes(): Promise<number> {
    if (current === null) throw new Error("the page has no worker");
    const { usedSize, embedderHeapUsedSize, backingStorageSize } = await current.session.send("Runtime.getHeapUsage");
    return usedSize + embedderHeapUsedSize + backingStorageSize;
  }

  return {
    /** Follows the page's workers from here on. Called once. */
    watch: () =>
      session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true }),
    /** Has the page's document there. */
    open: page.open,
    replace,
    /** Resolves when all that the thread has told of has arrived. Rejects where it is busy. */
    async caughtUp(): Promise<void> {
      await current?.session.send("Runtime.getIsolateId", undefined, { timeout: CATCH_UP_MS });
    },
    /** Evaluates the run's code in the realm that was made for it. `base`: that of the service that it may ask. @returns the harness's answer */
    async run(request: PageRun, base = ""): Promise<unknown> {
      const own = current!;
      const answer = await new Promise<string | number>((resolve) => {
        onAnswer = resolve;
        // A thread goes with its page, of which the run hears elsewhere.
        call("run", ...own.texts.valuesOf(request), base).then(
          (said) => said === LATE && resolve(said),
          () => {},
        );
      });
      if (answer === LATE) return lose("unready");
      own.runs += 1;
      if (typeof answer !== "number") return withoutStep(answer);
      return withoutStep(await textInParts(answer, (from, to) => call("part", from, to)));
    },
    answer: (...values: Parameters<Reply>) => call("answer", ...values),
    /** Has the thread in order for another run. */
    async renew(): Promise<void> {
      if (step === "replace") await replace();
      if (step === "measure" && (await heldBytes()) > heldMaxBytes) await replace();
      await page.collect();
    },
    /** As of `Realm`. */
    unreadyMs: () => Math.max(0, endedAt + STUCK_AFTER_MS - performance.now()),
    end(): void {
      endedAt = performance.now();
      lookIn(STUCK_AFTER_MS);
    },
    stop: () => clearTimeout(looking ?? undefined),
  };
}
