/**
 * Notices what a run leaves behind that a navigation of its page would not end: a context with such traces is thrown away.
 * Looks at one context alone, and ends nothing itself.
 */
import type { CDPSession, Connection, Protocol } from "puppeteer";

/** Pages, frames and workers with a process of their own that one run may open. */
const OTHER_TARGETS_MAX = 16;
/** What no page may open here. Chromium is started so that it cannot; another build may not know the switches. */
const FORBIDDEN = ["page", "shared_worker", "service_worker"];

/**
 * Whether an address names who asks. What a host took for a name and password the browser sends it from then on, unasked, and no command
 * clears that.
 */
function namesSomebody(address: string): boolean {
  // What begins with a scheme alone is read by the scheme of the page.
  return ["http://x/", "https://x/"].some((base) => {
    const url = URL.parse(address, base);
    return url !== null && url.username + url.password !== "";
  });
}

/** What requests tell of such addresses: of their own, and of one to which a host sends them on, which is told of before it is asked. */
function onNamed(session: CDPSession, tell: () => void): void {
  const look = (address: string) => namesSomebody(address) && tell();
  session.on("Network.requestWillBeSent", ({ request }) => look(request.url));
  session.on("Network.webSocketCreated", ({ url }) => look(url));
  session.on("Network.responseReceivedExtraInfo", ({ headers }) => {
    for (const name of Object.keys(headers)) if (name.toLowerCase() === "location") look(headers[name]!);
  });
}

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
  onNamed(session, stain);

  return {
    found: () => left,
    async look(origin) {
      const [{ cookies }, { usage }] = await Promise.all([
        connection.send("Storage.getCookies", { browserContextId: contextId }),
        session.send("Storage.getUsageAndQuota", { origin }),
      ]);
      return cookies.length > 0 || usage > 0 || left;
    },
    stop() {
      connection.off("Target.targetCreated", count);
    },
  };
}
