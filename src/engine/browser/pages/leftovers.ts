/** Detects data of a run, such as cookies, that stays in its browser context after a navigation. The page is then discarded. */
import type { Protocol } from "puppeteer";
import type { SandboxOptions } from "./sandbox.js";

/** Maximum total number of workers and of frames in other processes that a run can open. */
const OTHER_TARGETS_MAX = 16;
/** Types of targets that a run must not open. Flags disable them, but some builds of Chromium do not support the flags. */
const FORBIDDEN_TARGET_TYPES = ["page", "shared_worker", "service_worker"];

/** True if a URL has a user name or password. The browser then sends them with all later requests to the host, and cannot forget them. */
function hasCredentials(address: string): boolean {
  // A URL that starts with `//` gets the scheme of the page, so this function tries both schemes.
  return ["http://x/", "https://x/"].some((base) => {
    const url = URL.parse(address, base);
    return url !== null && url.username + url.password !== "";
  });
}

/** Detects data that a run leaves in its browser context, and that the next run could read. */
export class LeftoverDetector {
  /** If the page sends a request while this is false, the request counts as data of the last run. */
  isRunning = false;
  private wasReported = false;
  private otherTargetCount = 0;

  constructor(private readonly options: SandboxOptions) {
    const { connection, session, lostSignal } = options;
    const reportData = () => {
      this.wasReported = true;
    };
    const onTarget = ({ targetInfo }: Protocol.Target.TargetCreatedEvent) => this.countTarget(targetInfo);
    connection.on("Target.targetCreated", onTarget);
    lostSignal.addEventListener("abort", () => connection.off("Target.targetCreated", onTarget));
    session.on("Page.frameAttached", reportData);
    session.on("Page.downloadWillBegin", reportData);
    session.on("Storage.cacheStorageListUpdated", reportData);
    session.on("Storage.indexedDBListUpdated", reportData);
    this.watchRequests(reportData);
  }

  hasReportedData(): boolean {
    return this.wasReported;
  }

  /** True if the context has cookies, or the origin has stored data. Clearing the data would take ten times as long as this search. */
  async hasStoredData(): Promise<boolean> {
    const { connection, session, contextId, origin } = this.options;
    const [{ cookies }, { usage }] = await Promise.all([
      connection.send("Storage.getCookies", { browserContextId: contextId }),
      session.send("Storage.getUsageAndQuota", { origin }),
    ]);
    return cookies.length > 0 || usage > 0 || this.wasReported;
  }

  private countTarget({ browserContextId, targetId, type }: Protocol.Target.TargetInfo): void {
    if (browserContextId !== this.options.contextId || targetId === this.options.targetId) return;
    this.wasReported = true;
    this.otherTargetCount += 1;
    if (FORBIDDEN_TARGET_TYPES.includes(type)) this.options.markLost("window");
    else if (this.otherTargetCount > OTHER_TARGETS_MAX) this.options.markLost("crowd");
  }

  /** Calls `reportData` if the URL of a request or redirect has credentials, or if the page sends a request while no run is active. */
  private watchRequests(reportData: () => void): void {
    const { session, origin } = this.options;
    const check = (address: string) => (!this.isRunning || hasCredentials(address)) && reportData();
    session.on("Network.requestWillBeSent", ({ type, request }) => {
      if (type !== "Document" || request.url !== `${origin}/`) check(request.url);
    });
    session.on("Network.webSocketCreated", ({ url }) => check(url));
    session.on("Network.webTransportCreated", ({ url }) => check(url));
    session.on("Network.responseReceivedExtraInfo", ({ headers }) => {
      for (const name of Object.keys(headers)) if (name.toLowerCase() === "location") check(headers[name]!);
    });
  }
}
