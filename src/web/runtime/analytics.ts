/** Creates `Svc.App.Analytics`: records events, starts the actions that they trigger, and sends the events to the service in batches. */
import { EVENT_MAX_BYTES } from "../../limits.js";
import type { Connection } from "./connection.js";
import { createIdentity, operatingSystem } from "./identity.js";
import type { Analytics, AnalyticsEvent, SvcError } from "./public-types.js";
import { scope } from "./scope.js";

const BATCH_WAIT_MS = 1_000;
const BATCH_EVENTS = 20;
/** Maximum number of unsent events while the service is not available. The oldest ones are dropped first. */
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
      // Only events that did not reach the service are sent again, so that none is counted twice.
      const { status, answered } = error as Partial<SvcError>;
      if (status === "NETWORK_ERROR" && !answered) {
        waiting = [...events, ...waiting].slice(-WAITING_EVENTS);
        timer ??= setTimeout(flush, 10 * BATCH_WAIT_MS);
      }
      return;
    }
    if (waiting.length > 0) await flush();
  }

  /** Sends the remaining events when the page may be closing. A beacon cannot carry a token, only the cookie. */
  function flushAtLast(): void {
    clearTimeout(timer);
    timer = undefined;
    const events = waiting.splice(0);
    if (events.length === 0) return;
    const body = new Blob([JSON.stringify({ events })], { type: "application/json" });
    const sent = token() === null && navigator.sendBeacon(address(path()), body);
    // An analytics error must never become an error of the page.
    if (!sent) request("POST", path(), { events }, { keepalive: true }).catch(() => {});
  }

  scope.addEventListener?.("pagehide", flushAtLast);
  scope.document?.addEventListener("visibilitychange", () => {
    if (scope.document?.visibilityState === "hidden") flushAtLast();
  });

  return {
    add(event) {
      // The service would reject this event, and with it the other events of the batch.
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

/** @param onEvent receives each event when it is recorded */
export function createAnalytics(connection: Connection, onEvent: (event: AnalyticsEvent) => void): Analytics {
  const identity = createIdentity();
  const sender = createSender(connection);

  function record(type: AnalyticsEvent["type"], data: Record<string, unknown>): AnalyticsEvent {
    const known = { _platform: "web", _os: operatingSystem(scope.navigator?.userAgent ?? ""), ...identity() };
    // Copies the event as the service will receive it, because the page may change its own object.
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
