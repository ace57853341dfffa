/** Creates `Svc.App.Analytics`: records events, starts the actions that they trigger, and sends the events to the service in batches. */
import { ANALYTICS_EVENTS_PER_REQUEST, EVENT_MAX_BYTES } from "../../limits.js";
import type { Connection } from "./connection.js";
import { createAnalyticsIdentity, detectOperatingSystem } from "./identity.js";
import type { Analytics, AnalyticsEvent, SvcError } from "./public-types.js";
import { globalScope } from "./scope.js";

const BATCH_WAIT_MS = 1_000;
const BATCH_MAX_EVENTS = 20;
/** Pause after a failed request, unless the response says after how many seconds to retry. */
const RETRY_WAIT_MS = 10 * BATCH_WAIT_MS;
/** Maximum number of unsent events, for example while the service is not available. Further events replace the oldest ones. */
const UNSENT_MAX_EVENTS = 500;

/**
 * True if the service may accept the events of the failed request later. In rare cases, a retry stores events twice: the service had stored
 * them, but the request failed because the connection to the database or to the page was lost.
 */
function isRetryable({ status, answered }: Partial<SvcError>): boolean {
  // If a part of a response has arrived, the service has received the events. A retry would then store them twice.
  return status === "OVERLOADED" || status === "RATE_LIMIT_EXCEEDED" || (status === "NETWORK_ERROR" && !answered);
}

interface EventSender {
  addEvent(event: AnalyticsEvent): void;
}

function createEventSender({ appId, resolveUrl, request, getToken }: Connection): EventSender {
  let waitingEvents: AnalyticsEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Timer of the pause after a failed request. */
  let pauseTimer: ReturnType<typeof setTimeout> | undefined;
  const getEventsPath = () => `/v1/apps/${appId()}/analytics`;

  /** Queues unsent events again, and sends no further batch for a while. */
  function retryLater(events: AnalyticsEvent[], { retryAfter }: Partial<SvcError>): void {
    waitingEvents = [...events, ...waitingEvents].slice(-UNSENT_MAX_EVENTS);
    const pauseMs = retryAfter === undefined ? RETRY_WAIT_MS : Math.max(retryAfter * 1_000, BATCH_WAIT_MS);
    pauseTimer ??= setTimeout(() => {
      pauseTimer = undefined;
      void sendBatch();
    }, pauseMs);
  }

  async function sendBatch(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    if (pauseTimer !== undefined) return;
    const events = waitingEvents.splice(0, BATCH_MAX_EVENTS);
    if (events.length === 0) return;
    try {
      await request("POST", getEventsPath(), { events }, { keepalive: true });
    } catch (error) {
      const failure = error as Partial<SvcError>;
      if (isRetryable(failure)) retryLater(events, failure);
      return;
    }
    if (waitingEvents.length > 0) await sendBatch();
  }

  /** Sends all waiting events when the page may be closing, even during the pause after a failed request. */
  function sendBeforeClose(): void {
    clearTimeout(timer);
    timer = undefined;
    while (waitingEvents.length > 0) sendWithoutRetry(waitingEvents.splice(0, ANALYTICS_EVENTS_PER_REQUEST));
  }

  /**
   * Sends the events once, if possible by a beacon, which outlives the page. Uses `fetch` if the page has a token, because a beacon cannot
   * send a token, or if the browser rejects the beacon.
   */
  function sendWithoutRetry(events: AnalyticsEvent[]): void {
    const body = new Blob([JSON.stringify({ events })], { type: "application/json" });
    const isSent = getToken() === null && navigator.sendBeacon(resolveUrl(getEventsPath()), body);
    // Ignores a failed request: it must not become an unhandled rejection in the page.
    if (!isSent) request("POST", getEventsPath(), { events }, { keepalive: true }).catch(() => {});
  }

  globalScope.addEventListener?.("pagehide", sendBeforeClose);
  globalScope.document?.addEventListener("visibilitychange", () => {
    if (globalScope.document?.visibilityState === "hidden") sendBeforeClose();
  });

  return {
    addEvent(event) {
      // Drops an event above the limit, because the service would reject the whole batch that contains it.
      const bytes = new TextEncoder().encode(JSON.stringify(event)).length;
      if (bytes > EVENT_MAX_BYTES) {
        console.warn(
          `svc: an analytics event is not sent to the service, because it is larger than ${EVENT_MAX_BYTES} bytes of JSON (got ${bytes})`,
        );
        return;
      }
      waitingEvents.push(event);
      if (waitingEvents.length > UNSENT_MAX_EVENTS) waitingEvents.shift();
      if (waitingEvents.length >= BATCH_MAX_EVENTS) void sendBatch();
      else timer ??= setTimeout(sendBatch, BATCH_WAIT_MS);
    },
  };
}

/** Creates `Svc.App.Analytics`. @param onEvent called with each recorded event */
export function createAnalyticsApi(connection: Connection, onEvent: (event: AnalyticsEvent) => void): Analytics {
  const identity = createAnalyticsIdentity();
  const sender = createEventSender(connection);

  function recordEvent(type: AnalyticsEvent["type"], data: Record<string, unknown>): AnalyticsEvent {
    const commonData = {
      _platform: "web",
      _os: detectOperatingSystem(globalScope.navigator?.userAgent ?? ""),
      ...identity(),
    };
    // Copies the event as the service will receive it, because the page may change its own object.
    const copiedData = JSON.parse(JSON.stringify({ ...data, ...commonData })) as AnalyticsEvent["data"];
    const event: AnalyticsEvent = { createdAt: Date.now(), type, data: copiedData };
    sender.addEvent(event);
    onEvent(event);
    return event;
  }

  return {
    pageView: (data = {}) =>
      recordEvent("analytics.pageView", { _pageTitle: globalScope.document?.title ?? "", ...data }),
    event(nameOrData = {}, data = {}) {
      const eventData = typeof nameOrData === "string" ? { name: nameOrData, ...data } : nameOrData;
      return recordEvent("analytics.event", eventData);
    },
  };
}
