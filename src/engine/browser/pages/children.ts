/** Prepares the workers of a page, and its frames in other processes, before the first line of their code runs. */
import type { CDPSession, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";

/** `type` is `worker` for a dedicated worker, or `iframe` for a frame in another process. */
type PrepareChild = (child: CDPSession, type: string) => Promise<unknown>;

const AUTO_ATTACH = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };

export class PageChildTargets {
  private readonly sessions: Set<CDPSession>;
  private hadChildren = false;

  constructor(
    private readonly pageSession: CDPSession,
    private readonly prepareChild: PrepareChild,
  ) {
    this.sessions = new Set([pageSession]);
  }

  /** After this call, a new worker or frame runs no code until `prepareChild` has finished. */
  async attach(): Promise<void> {
    await this.attachChildrenOf(this.pageSession);
  }

  /** Resolves when all events that the page, its workers and frames have sent have arrived. Rejects after `timeoutMs`. */
  readonly waitForSentEvents = async (timeoutMs: number): Promise<void> => {
    const options = { timeout: timeoutMs };
    await Promise.all([...this.sessions].map((session) => session.send("Runtime.getIsolateId", undefined, options)));
  };

  hasChildren(): boolean {
    return this.sessions.size > 1;
  }

  hasHadChildren(): boolean {
    return this.hadChildren;
  }

  private attachChildrenOf(session: CDPSession): Promise<unknown> {
    session.on("Target.attachedToTarget", (event) => runInBackground(this.attachChild(event)));
    session.on("Target.detachedFromTarget", ({ sessionId }) => {
      for (const child of this.sessions) if (child.id() === sessionId) this.sessions.delete(child);
    });
    return session.send("Target.setAutoAttach", AUTO_ATTACH);
  }

  private async attachChild({ sessionId, targetInfo }: Protocol.Target.AttachedToTargetEvent): Promise<void> {
    this.hadChildren = true;
    const child = this.pageSession.connection()?.session(sessionId);
    if (!child) return;
    this.sessions.add(child);
    await Promise.allSettled([this.attachChildrenOf(child), this.prepareChild(child, targetInfo.type)]);
    // The command fails only if the worker or frame has ended.
    await child.send("Runtime.runIfWaitingForDebugger").catch(() => {});
  }
}
