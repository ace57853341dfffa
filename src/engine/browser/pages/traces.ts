/**
 * Detects data of a run that stays in its browser context after a navigation, such as cookies. If there is any, the
 * page is discarded.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { SandboxOptions } from "./sandbox.js";

/** Maximum number of workers, and frames in other processes, that a run can open. */
const OTHER_TARGETS_MAX = 16;
/** Types of targets that runs must not open. Flags disable them, but some builds of Chromium do not support these flags. */
const FORBIDDEN_TARGET_TYPES = ["page", "shared_worker", "service_worker"];

/**
 * True if the URL contains a user name or password. The browser would send them with all later requests to the host, and
 * there is no command to remove them.
 */
function hasCredentials(address: string): boolean {
  // A URL that starts with `//` has the scheme of the page, so both schemes are tried.
  return ["http://x/", "https://x/"].some((base) => {
    const url = URL.parse(address, base);
    return url !== null && url.username + url.password !== "";
  });
}

export class Traces {
  private wasReported = false;
  private otherTargets = 0;
  private readonly onTarget = ({ targetInfo }: Protocol.Target.TargetCreatedEvent) => this.countTarget(targetInfo);

  /**
   * @param onTooManyTargets called if the run opens too many targets
   * @param onForbidden called if the run opens a target of a forbidden type
   */
  constructor(
    private readonly options: Pick<SandboxOptions, "connection" | "session" | "contextId" | "targetId">,
    private readonly onTooManyTargets: () => void,
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

  /** True if an event of the browser has reported data that stays after a navigation. */
  hasReportedAny(): boolean {
    return this.wasReported;
  }

  /** Searches for cookies and stored data. The search takes a tenth of the time that clearing them would take. */
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
    else if (this.otherTargets > OTHER_TARGETS_MAX) this.onTooManyTargets();
  }

  /** Checks the URLs of requests, and the targets of redirects before the browser follows them. */
  private watchCredentials(session: CDPSession, add: () => void): void {
    const check = (address: string) => hasCredentials(address) && add();
    session.on("Network.requestWillBeSent", ({ request }) => check(request.url));
    session.on("Network.webSocketCreated", ({ url }) => check(url));
    session.on("Network.responseReceivedExtraInfo", ({ headers }) => {
      for (const name of Object.keys(headers)) if (name.toLowerCase() === "location") check(headers[name]!);
    });
  }
}
