/** Detects what a run leaves in its browser context that a navigation of the page does not remove. The page is then discarded. */
import type { CDPSession, Protocol } from "puppeteer";
import type { SandboxOptions } from "./sandbox.js";

/** Maximum number of pages, workers, and frames in other processes that one run may open. */
const OTHER_TARGETS_MAX = 16;
/** Kinds of targets that no run may open. Flags disable them in Chromium, but another build may not support these flags. */
const FORBIDDEN_TARGET_TYPES = ["page", "shared_worker", "service_worker"];

/**
 * True if the address contains a user name or password. If the host accepts them, the browser sends them with each
 * later request to it, and no command removes them.
 */
function hasCredentials(address: string): boolean {
  // An address that starts with `//` has the scheme of the page.
  return ["http://x/", "https://x/"].some((base) => {
    const url = URL.parse(address, base);
    return url !== null && url.username + url.password !== "";
  });
}

export class Traces {
  private wasReported = false;
  private otherTargets = 0;
  private readonly onTarget = ({ targetInfo }: Protocol.Target.TargetCreatedEvent) => this.countTarget(targetInfo);

  /** @param onCrowd called if the run opens too many targets @param onForbidden called if it opens a target of a forbidden kind */
  constructor(
    private readonly options: Pick<SandboxOptions, "connection" | "session" | "contextId" | "targetId">,
    private readonly onCrowd: () => void,
    private readonly onForbidden: () => void,
  ) {
    const { connection, session } = options;
    const add = () => {
      this.wasReported = true;
    };
    connection.on("Target.targetCreated", this.onTarget);
    session.on("Page.frameAttached", add);
    session.on("Page.downloadWillBegin", add);
    session.on("Storage.cacheStorageListUpdated", add);
    session.on("Storage.indexedDBListUpdated", add);
    this.watchCredentials(session, add);
  }

  /** True if the browser has reported a trace by itself. */
  hasReportedAny(): boolean {
    return this.wasReported;
  }

  /** Searches for traces, including cookies and storage, which takes a tenth of the time of clearing them. */
  async search(origin: string): Promise<boolean> {
    const { connection, session, contextId } = this.options;
    const [{ cookies }, { usage }] = await Promise.all([
      connection.send("Storage.getCookies", { browserContextId: contextId }),
      session.send("Storage.getUsageAndQuota", { origin }),
    ]);
    return cookies.length > 0 || usage > 0 || this.wasReported;
  }

  stop(): void {
    this.options.connection.off("Target.targetCreated", this.onTarget);
  }

  private countTarget({ browserContextId, targetId, type }: Protocol.Target.TargetInfo): void {
    if (browserContextId !== this.options.contextId || targetId === this.options.targetId) return;
    this.wasReported = true;
    this.otherTargets += 1;
    if (FORBIDDEN_TARGET_TYPES.includes(type)) this.onForbidden();
    else if (this.otherTargets > OTHER_TARGETS_MAX) this.onCrowd();
  }

  /** Checks the addresses of requests, and those of redirects before they are followed. */
  private watchCredentials(session: CDPSession, add: () => void): void {
    const check = (address: string) => hasCredentials(address) && add();
    session.on("Network.requestWillBeSent", ({ request }) => check(request.url));
    session.on("Network.webSocketCreated", ({ url }) => check(url));
    session.on("Network.responseReceivedExtraInfo", ({ headers }) => {
      for (const name of Object.keys(headers)) if (name.toLowerCase() === "location") check(headers[name]!);
    });
  }
}
