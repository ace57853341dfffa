/** `Svc.App.Analytics`: creates events, passes each to the triggers at once, and sends them to the service in batches. */
import { EVENT_MAX_BYTES } from "../../limits.js";
import type { Connection } from "./connection.js";
import { createIdentity, operatingSystem } from "./identity.js";
import type { Analytics, AnalyticsEvent, SvcError } from "./public-types.js";
import { scope } from "./scope.js";

const BATCH_WAIT_MS = 1_000;
const BATCH_EVENTS = 20;
/** Maximum events that wait while the service is not available; older ones are dropped. */
const WAITING_EVENTS = 500;

interface Sender {
  add(event: AnalyticsEvent): void;
}

function createSender({ appId, address, request, token }: Connection): Sender {
  let waiting: AnalyticsEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const path = () => `/v1/apps/${appId()}/analytics`;

  async function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const events = waiting.splice(0, BATCH_EVENTS);
    if (events.length === 0) return;
    try {
      await request("POST", path(), { events }, { keepalive: true });
    } catch (error) {
      // Only events that never arrived are sent again, so that none counts twice.
      const { status, answered } = error as Partial<SvcError>;
      if (status === "NETWORK_ERROR" && !answered) {
        waiting = [...events, ...waiting].slice(-WAITING_EVENTS);
        timer ??= setTimeout(flush, 10 * BATCH_WAIT_MS);
      }
      return;
    }
    if (waiting.length > 0) await flush();
  }

  /** The page may be closed before a normal request is sent. A beacon cannot have a token, only the cookie. */
  function flushAtLast(): void {
    clearTimeout(timer);
    timer = undefined;
    const events = waiting.splice(0);
    if (events.length === 0) return;
    const body = new Blob([JSON.stringify({ events })], { type: "application/json" });
    const sent = token() === null && navigator.sendBeacon(address(path()), body);
    // Analytics never cause an error in the page.
    if (!sent) request("POST", path(), { events }, { keepalive: true }).catch(() => {});
  }

  scope.addEventListener?.("pagehide", flushAtLast);
  scope.document?.addEventListener("visibilitychange", () => {
    if (scope.document?.visibilityState === "hidden") flushAtLast();
  });

  return {
    add(event) {
      // The service would reject it together with the other events of its batch.
      if (new TextEncoder().encode(JSON.stringify(event)).length > EVENT_MAX_BYTES) {
        console.warn(`an analytics event of more than ${EVENT_MAX_BYTES} bytes is not recorded`);
        return;
      }
      waiting.push(event);
      if (waiting.length >= BATCH_EVENTS) void flush();
      else timer ??= setTimeout(flush, BATCH_WAIT_MS);
    },
  };
}

/** @param onEvent called with each event when it happens (specification, Payload by trigger) */
export function createAnalytics(connection: Connection, onEvent: (event: AnalyticsEvent) => void): Analytics {
  const identity = createIdentity();
  const sender = createSender(connection);

  function record(type: AnalyticsEvent["type"], data: Record<string, unknown>): AnalyticsEvent {
    const known = { _platform: "web", _os: operatingSystem(scope.navigator?.userAgent ?? ""), ...identity() };
    // A copy in the form that the service gets: the page may change its own object.
    const copied = JSON.parse(JSON.stringify({ ...data, ...known })) as AnalyticsEvent["data"];
    const event: AnalyticsEvent = { createdAt: Date.now(), type, data: copied };
    sender.add(event);
    onEvent(event);
    return event;
  }

  return {
    pageView: (data = {}) => record("analytics.pageView", { _pageTitle: scope.document?.title ?? "", ...data }),
    event(nameOrData = {}, data = {}) {
      const named = typeof nameOrData === "string" ? { name: nameOrData, ...data } : nameOrData;
      return record("analytics.event", named);
    },
  };
}
