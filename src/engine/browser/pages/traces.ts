/**
 * Notices what a run leaves behind that a navigation of its page would not end: a context with such traces is thrown away.
 * Looks at one context alone, and ends nothing itself.
 */
import type { CDPSession, Connection, Protocol } from "puppeteer";

/** Pages, frames and workers with a process of their own that one run may open. */
const OTHER_TARGETS_MAX = 16;
/** What no page may open here. Chromium is started so that it cannot; another build may not know the switches. */
const FORBIDDEN = ["page", "shared_worker", "service_worker"];

export interface Traces {
  /** Whether anything was left, as far as the browser said by itself. */
  found(): boolean;
  /** The same with what it says when asked: looking costs a tenth of clearing. */
  look(origin: string): Promise<boolean>;
  stop(): void;
}

export interface TracesOptions {
  connection: Connection;
  session: CDPSession;
  contextId: string;
  targetId: string;
  /** More targets than a run may open. */
  onCrowd(): void;
  /** A target of a kind that no run may open. */
  onForbidden(): void;
}

export function watchTraces(options: TracesOptions): Traces {
  const { connection, session, contextId, targetId } = options;
  let left = false;
  let others = 0;

  const stain = () => {
    left = true;
  };
  const count = ({ targetInfo }: { targetInfo: Protocol.Target.TargetInfo }) => {
    if (targetInfo.browserContextId !== contextId || targetInfo.targetId === targetId) return;
    left = true;
    others += 1;
    if (FORBIDDEN.includes(targetInfo.type)) options.onForbidden();
    else if (others > OTHER_TARGETS_MAX) options.onCrowd();
  };
  connection.on("Target.targetCreated", count);
  session.on("Page.frameAttached", stain);
  session.on("Page.downloadWillBegin", stain);
  session.on("Storage.cacheStorageListUpdated", stain);
  session.on("Storage.indexedDBListUpdated", stain);

  return {
    found: () => left,
    async look(origin) {
      const [{ cookies }, { usage }] = await Promise.all([
        connection.send("Storage.getCookies", { browserContextId: contextId }),
        session.send("Storage.getUsageAndQuota", { origin }),
      ]);
      return cookies.length > 0 || usage > 0 || left;
    },
    stop: () => void connection.off("Target.targetCreated", count),
  };
}
