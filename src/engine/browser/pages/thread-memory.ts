/** How much the thread of a page's realms holds, asked of the browser: nothing in a worker can tell. Judges nothing. */
import type { CDPSession, Protocol } from "puppeteer";

export interface ThreadMemory {
  /** Follows the page's workers from here on. Called once. */
  watch(): Promise<void>;
  /** What the page's worker holds, garbage too, in bytes: objects and buffers. Rejects where there is none to ask. */
  heldBytes(): Promise<number>;
}

export function createThreadMemory(session: CDPSession): ThreadMemory {
  let worker: CDPSession | null = null;
  session.on("Target.attachedToTarget", ({ sessionId }: Protocol.Target.AttachedToTargetEvent) => {
    worker = session.connection()?.session(sessionId) ?? null;
  });
  return {
    watch: () =>
      session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true }),
    async heldBytes() {
      if (worker === null) throw new Error("the page has no worker");
      const { usedSize, backingStorageSize } = await worker.send("Runtime.getHeapUsage");
      return usedSize + backingStorageSize;
    },
  };
}
