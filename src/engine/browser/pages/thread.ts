/** The one thread on which a page's realms follow each other, as it is seen from outside: when there is another, and how much it holds. */
import type { CDPSession, Protocol } from "puppeteer";
import type { WorkerPage } from "./worker-page.js";

/** Before an answer (in-page/realm-host.ts): what the next run needs takes longer than it may wait for; how much is held is to be looked at. */
const LONG_RENEWAL = "t";
const LOOK = "l";

/** What a thread may hold when it serves another run: V8 keeps what a realm held until the thread ends. */
const HELD_MAX_BYTES = 16 * 1024 * 1024;
/** One that is busy for so long is not waited for. */
const CATCH_UP_MS = 200;

/** `onThread`: hears of each thread before a run has it. */
export function createThread(
  session: CDPSession,
  page: WorkerPage,
  onThread: (thread: CDPSession) => Promise<unknown> = async () => {},
) {
  let current: CDPSession | null = null;
  let mark = "";
  let expected = 0;
  let seen = 0;
  let heard: Promise<unknown> = Promise.resolve();
  let onSeen: () => void = () => {};

  session.on("Target.attachedToTarget", ({ sessionId }: Protocol.Target.AttachedToTargetEvent) => {
    current = session.connection()?.session(sessionId) ?? null;
    seen += 1;
    if (current !== null) heard = onThread(current);
    // Nobody may be left to ask what became of it, when the page or its browser goes just now.
    heard.catch(() => {});
    onSeen();
  });

  /** Waits for another thread, which `begun` has brought. */
  async function another(begun: Promise<unknown>): Promise<void> {
    expected += 1;
    await begun;
    while (seen < expected) {
      await new Promise<void>((resolve) => {
        onSeen = resolve;
      });
    }
    await heard;
  }

  const replace = () => another(page.replaceThread());

  /** In bytes: objects, the platform's too, and buffers, with the garbage among them. Nothing in a worker can tell. */
  async function heldBytes(): Promise<number> {
    if (current === null) throw new Error("the page has no worker");
    const { usedSize, embedderHeapUsedSize, backingStorageSize } = await current.send("Runtime.getHeapUsage");
    return usedSize + embedderHeapUsedSize + backingStorageSize;
  }

  return {
    /** Follows the page's workers from here on. Called once. */
    watch: () =>
      session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true }),
    /** Has the first run's realm made. */
    begin: () => another(page.begin()),
    /** Has the next run's realm made on another thread. */
    replace,
    /** Resolves when all that the thread has told of has arrived. Rejects where it is busy. */
    async caughtUp(): Promise<void> {
      await current?.send("Runtime.getIsolateId", undefined, { timeout: CATCH_UP_MS });
    },
    /** What the page answers of a run, without its mark. */
    read(answer: unknown): unknown {
      mark = typeof answer === "string" && [LONG_RENEWAL, LOOK].includes(answer[0]!) ? answer[0]! : "";
      return mark === "" ? answer : (answer as string).slice(mark.length);
    },
    /** Has the thread in order for another run. */
    async renew(): Promise<void> {
      if (mark === LONG_RENEWAL) await another(page.ready());
      if (mark === LOOK && (await heldBytes()) > HELD_MAX_BYTES) await replace();
    },
  };
}
