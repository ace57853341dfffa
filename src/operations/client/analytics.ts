/**
 * Checks analytics events of clients and records them as log events, which log triggers can match. Starts no action
 * directly.
 */

import { ActionError } from "../../errors.js";
import { ANALYTICS_EVENTS_PER_REQUEST } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { isObject } from "../../rules/described.js";
import { refuseField } from "../../rules/fields.js";
import { eventBytes, type LogEventInput, parseLogEvent } from "../../rules/log-event-input.js";
import { ANALYTICS_EVENT_TYPES } from "../../rules/trigger-match.js";
import { flatShape, refuseUnknownFields, reportUnknownField } from "../../rules/unknown-fields.js";
import type { IntakeLimiter } from "../records/intake.js";
import type { LogEvents } from "../records/log-events.js";

const TYPES: readonly unknown[] = ANALYTICS_EVENT_TYPES;

const EVENT_SHAPE = flatShape(["createdAt", "type", "data"]);

function parseEvent(event: unknown, index: number): { input: LogEventInput; bytes: number } {
  const eventPath = `events[${index}]`;
  if (!isObject(event)) refuseField(eventPath, "an object", event);
  const { createdAt, type, data } = event;
  if (!TYPES.includes(type)) {
    refuseField(`${eventPath}.type`, TYPES.join(" or "), type);
  }
  if (typeof createdAt !== "number" || !Number.isSafeInteger(createdAt) || createdAt < 0) {
    throw new ActionError("REQUEST_INVALID", `${eventPath}.createdAt must be a Unix time in milliseconds`);
  }
  const input = parseLogEvent({ type: `app.${type}`, data });
  return { input, bytes: eventBytes(event, eventPath) };
}

export type Analytics = ReturnType<typeof createAnalytics>;

export function createAnalytics(options: {
  logEvents: LogEvents;
  intake: IntakeLimiter;
  /** Counts a request. @throws RATE_LIMIT_EXCEEDED for a caller that sends too many */
  countRequest: (caller: Caller) => void;
}) {
  const { logEvents, intake, countRequest } = options;

  return {
    /**
     * Records `[{createdAt, type, data}]` (specification, Analytics event payload) as `app.analytics.*` log events, in
     * their order.
     * @throws REQUEST_INVALID, PAYLOAD_TOO_LARGE, RATE_LIMIT_EXCEEDED, OVERLOADED: then nothing is recorded
     */
    async record(caller: Caller, appId: number, events: unknown): Promise<{ count: number }> {
      if (!Array.isArray(events) || events.length > ANALYTICS_EVENTS_PER_REQUEST) {
        const expected = `events must be an array of at most ${ANALYTICS_EVENTS_PER_REQUEST} events`;
        throw new ActionError("REQUEST_INVALID", expected);
      }
      const parsedEvents = events.map(parseEvent);
      refuseUnknownFields(events, [EVENT_SHAPE], "events");
      reportUnknownField(caller);
      countRequest(caller);
      // All events are accepted or none, because a client would send a partly rejected batch again as a whole.
      const bytes = parsedEvents.reduce((sum, event) => sum + event.bytes, 0);
      intake.takeRows(caller, appId, bytes, parsedEvents.length);
      await Promise.all(parsedEvents.map(({ input }) => logEvents.store(caller, appId, input)));
      return { count: parsedEvents.length };
    },
  };
}
