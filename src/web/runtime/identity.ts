/**
 * Random IDs in analytics events: one for the browser, one for the session in a browser tab. Neither identifies a person. Also detects the
 * operating system for these events.
 */
import { createRandomUuid } from "./random-uuid.js";

/**
 * Returns the stored ID, or a new one. If the browser blocks storage (blocked cookies, sandboxed frames), the ID lasts as long as the page.
 */
function readOrCreateId(openStorage: () => Storage, key: string): string {
  try {
    const storage = openStorage();
    const id = storage.getItem(key) ?? createRandomUuid();
    storage.setItem(key, id);
    return id;
  } catch {
    return createRandomUuid();
  }
}

export interface AnalyticsIdentity {
  _analyticsSessionId: string;
  _deviceTrackingId: string;
}

/** Returns a function that returns the IDs of the browser and the session. Its first call reads them from the storage, or creates them. */
export function createAnalyticsIdentity(): () => AnalyticsIdentity {
  let identity: AnalyticsIdentity | null = null;
  return () => {
    identity ??= {
      _analyticsSessionId: readOrCreateId(() => sessionStorage, "svc.analyticsSessionId"),
      _deviceTrackingId: readOrCreateId(() => localStorage, "svc.deviceTrackingId"),
    };
    return identity;
  };
}

const OPERATING_SYSTEMS: [RegExp, string][] = [
  [/Android/, "Android"],
  [/iPhone|iPad|iPod/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X|Macintosh/, "macOS"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
];

export function detectOperatingSystem(userAgent: string): string {
  return OPERATING_SYSTEMS.find(([pattern]) => pattern.test(userAgent))?.[1] ?? "unknown";
}
