/**
 * Attaches to every worker that a page starts, and every frame of another process, before its first line runs. Knows nothing of
 * what is to be set up in them.
 */

import type { CDPSession, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";

export interface Children {
  /** From here on each child waits until it is prepared. */
  attach(): Promise<void>;
  /** Resolves when everything that the page and its children had told before has arrived here. Rejects after `timeoutMs`. */
  caughtUp(timeoutMs: number): Promise<void>;
  /** Whether there is any child. */
  any(): boolean;
  /** Whether there ever was one. */
  met(): boolean;
}

/** `type` as the protocol says it: `worker` for a dedicated worker, `iframe` for a frame of another process. */
export type Prepare = (child: CDPSession, type: string) => Promise<unknown>;

const AUTO_ATTACH = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };

export function createChildren(page: CDPSession, prepare: Prepare): Children {
  const sessions = new Set<CDPSession>([page]);
  let met = false;

  async function adopt({ sessionId, targetInfo }: Protocol.Target.AttachedToTargetEvent): Promise<void> {
    met = true;
    const child = page.connection()?.session(sessionId);
    if (!child) return;
    sessions.add(child);
    await Promise.allSettled([attachTo(child), prepare(child, targetInfo.type)]);
    await child.send("Runtime.runIfWaitingForDebugger").catch(() => {});
  }

  function attachTo(session: CDPSession): Promise<unknown> {
    session.on("Target.attachedToTarget", (event) => runInBackground(adopt(event)));
    session.on("Target.detachedFromTarget", ({ sessionId }) => {
      for (const one of sessions) if (one.id() === sessionId) sessions.delete(one);
    });
    return session.send("Target.setAutoAttach", AUTO_ATTACH);
  }

  return {
    async attach() {
      await attachTo(page);
    },

    async caughtUp(timeoutMs) {
      const options = { timeout: timeoutMs };
      await Promise.all([...sessions].map((session) => session.send("Runtime.getIsolateId", undefined, options)));
    },

    any: () => sessions.size > 1,
    met: () => met,
  };
}
