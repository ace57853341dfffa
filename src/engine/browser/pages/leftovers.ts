/**
 * Detects data of a run, such as cookies, that stays in its browser context after a navigation. If there is any, the
 * service discards the page.
 */
import type { CDPSession, Protocol } from "puppeteer";
import type { SandboxOptions } from "./sandbox.js";

/** Maximum number of targets that a run can open: workers, and frames in other processes. */
const OTHER_TARGETS_MAX = 16;
/** Types of targets that runs must not open. Flags disable them, but some builds of Chromium do not support these flags. */
const FORBIDDEN_TARGET_TYPES = ["page", "shared_worker", "service_worker"];

/**
 * True if the URL contains a user name or password. The browser would send both with all later requests to the host,
 * and has no command to remove them.
 */
function hasCredentials(address: string): boolean {
  // A URL that starts with `//` gets the scheme of the page, so this function tries both schemes.
  return ["http://x/", "https://x/"].some((base) => {
    const url = URL.parse(address, base);
    return url !== null && url.username + url.password !== "";
  });
}

export class LeftoverDetector {
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

  /** True if the browser has reported data that stays after a navigation. */
  hasReportedData(): boolean {
    return this.wasReported;
  }

  /**
   * Searches for cookies and stored data of the origin. The search takes a tenth of the time that clearing the data
   * would take.
   * @returns true if there is any
   */
  async hasStoredData(origin: string): Promise<boolean> {
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

  /**
   * Checks the URLs of requests for credentials, and the target of each redirect before the browser follows it.
   * @param add called for a URL with credentials
   */
  private watchCredentials(session: CDPSession, add: () => void): void {
    const check = (address: string) => hasCredentials(address) && add();
    session.on("Network.requestWillBeSent", ({ request }) => check(request.url));
    session.on("Network.webSocketCreated", ({ url }) => check(url));
    session.on("Network.responseReceivedExtraInfo", ({ headers }) => {
      for (const name of Object.keys(headers)) if (name.toLowerCase() === "location") check(headers[name]!);
    });
  }
}
