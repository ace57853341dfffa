/** Validates analytics events that clients send, and records them as log events. Log triggers can start actions for these log events. */

import { ANALYTICS_EVENTS_PER_REQUEST } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { isObject } from "../../rules/describe-value.js";
import { refuseField } from "../../rules/fields.js";
import { measureEventBytesWithinLimit, type ParsedLogEvent, parseLogEvent } from "../../rules/log-event-input.js";
import { ANALYTICS_EVENT_TYPES } from "../../rules/trigger-match.js";
import { createFlatShape, refuseUnknownFields, throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";

const EVENT_TYPES: readonly unknown[] = ANALYTICS_EVENT_TYPES;

const EVENT_SHAPE = createFlatShape(["createdAt", "type", "data"]);

function parseEvent(event: unknown, index: number): { input: ParsedLogEvent; bytes: number } {
  const eventPath = `events[${index}]`;
  if (!isObject(event)) refuseField(eventPath, "an object", event);
  const { createdAt, type, data } = event;
  if (!EVENT_TYPES.includes(type)) {
    refuseField(`${eventPath}.type`, EVENT_TYPES.join(" or "), type);
  }
  if (typeof createdAt !== "number" || !Number.isSafeInteger(createdAt) || createdAt < 0) {
    refuseField(`${eventPath}.createdAt`, "a Unix time in milliseconds", createdAt);
  }
  const input = parseLogEvent({ type: `app.${type}`, data });
  return { input, bytes: measureEventBytesWithinLimit(event, eventPath) };
}

interface AnalyticsOptions {
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
  /** Counts one request of the caller. @throws RATE_LIMIT_EXCEEDED if the caller sends too many requests */
  countRequest: (caller: Caller) => void;
}

export class Analytics {
  constructor(private readonly options: AnalyticsOptions) {}

  /**
   * Records a list of events `[{createdAt, type, data}]` (specification, Analytics event payload) as `app.analytics.*`
   * log events. An invalid event, a reached limit or an unavailable database rejects the whole request, so that the
   * client can send it again.
   * @throws REQUEST_INVALID, PAYLOAD_TOO_LARGE, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async record(caller: Caller, appId: number, events: unknown): Promise<{ count: number }> {
    const { logEvents, receivedDataLimiter, countRequest } = this.options;
    if (!Array.isArray(events) || events.length > ANALYTICS_EVENTS_PER_REQUEST) {
      refuseField("events", `an array of at most ${ANALYTICS_EVENTS_PER_REQUEST} events`, events);
    }
    const parsedEvents = events.map(parseEvent);
    refuseUnknownFields(events, [EVENT_SHAPE], "events");
    throwIfUnknownField(caller);
    countRequest(caller);
    // Counts all events at once, because after a partial rejection the client would send all of them again.
    const bytes = parsedEvents.reduce((sum, event) => sum + event.bytes, 0);
    receivedDataLimiter.countRows(caller, appId, bytes, parsedEvents.length);
    const inputs = parsedEvents.map(({ input }) => input);
    await logEvents.storeAll(caller, appId, inputs);
    return { count: parsedEvents.length };
  }
}
