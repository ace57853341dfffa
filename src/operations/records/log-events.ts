/** Stores log events. The transaction that stores an event also queues a run of each action that the event triggers. */
import { randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import {
  type Db,
  isDatabaseUnavailable,
  isStatementTimeout,
  queryPreparedRows,
  rows,
  type SqlClient,
} from "../../data/database.js";
import { createBatchProcessor } from "../../engine/batches.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { measureEventBytesWithinLimit, type ParsedLogEvent, parseLogEvent } from "../../rules/log-event-input.js";
import { logHaltedRuns } from "./chains.js";
import {
  createStoreEventsParameters,
  type NewLogEvent,
  STORE_EVENTS_SQL,
  type StoredLogEvent,
} from "./log-event-statement.js";
import type { QueueLimits } from "./queue-limits.js";
import type { DataSender, ReceivedDataLimiter } from "./received-data-limiter.js";

/** A log event, as the API returns it. Times are ISO 8601 text. IDs of resources that the event does not concern are null. */
export interface LogEvent {
  id: number;
  userId: number | null;
  appId: number;
  organizationId: number;
  dataSourceId: number | null;
  dataSourceEntryId: number | null;
  appNotificationId: number | null;
  sessionId: number | null;
  requestId: string;
  type: string;
  data: Record<string, unknown>;
  dataString: string;
  createdAt: string;
  updatedAt: string;
}

/** Returns the data as JSON text without the closing brace. The SQL statement adds the user's `_userEmail`, if needed, and the brace. */
function toOpenJson({
  data,
  userId,
}: ParsedLogEvent): Pick<NewLogEvent, "openJson" | "separator" | "receivedUserEmail"> {
  if (userId === null) return { openJson: JSON.stringify(data).slice(0, -1), separator: null, receivedUserEmail: null };
  const { _userEmail: receivedUserEmail, ...rest } = data;
  return {
    openJson: JSON.stringify(rest).slice(0, -1),
    separator: Object.keys(rest).length > 0 ? "," : "",
    receivedUserEmail: receivedUserEmail === undefined ? null : JSON.stringify(receivedUserEmail),
  };
}

/** The caller who causes a log event. */
export type LogEventCause = DataSender & Pick<Caller, "personId" | "runId">;

/** Returns the ID of the session of a person or visitor. API tokens and runs on the server have no session. */
function findSessionId({ kind, credentialId }: DataSender): number | null {
  return kind === "api" || kind === "task" ? null : credentialId;
}

/** Results of events, in their order; undefined for an event whose app does not exist. */
type StoredEvents = (StoredLogEvent | undefined)[];

/** Returns the stored events in the order of `events`. */
function sortByRequest(events: readonly NewLogEvent[], stored: readonly StoredLogEvent[]): StoredEvents {
  const storedByRequestId = new Map(stored.map((storedEvent) => [storedEvent.requestId, storedEvent]));
  return events.map(({ requestId }) => storedByRequestId.get(requestId));
}

function toLogEvent(event: NewLogEvent, inputData: LogEvent["data"], stored: StoredLogEvent): LogEvent {
  const {
    openJson,
    separator: _separator,
    receivedUserEmail: _receivedUserEmail,
    runId: _runId,
    type,
    ...fields
  } = event;
  const { id, organizationId, storedData } = stored;
  const createdAt = stored.createdAt.toISOString();
  const data = storedData === null ? inputData : JSON.parse(storedData);
  const dataString = storedData ?? `${openJson}}`;
  return { id, type, data, ...fields, organizationId, dataString, createdAt, updatedAt: createdAt };
}

const NO_IDS = { dataSourceId: null, dataSourceEntryId: null, appNotificationId: null, sessionId: null };

const EVENTS_PER_STATEMENT = 64;
/** Maximum number of concurrent statements. Further events wait, and share the next statement. */
const CONCURRENT_STATEMENTS_MAX = 2;
/** A statement takes no further event if its events would probably start this many runs. */
const RUNS_PER_STATEMENT = 1_000;
/** Assumed number of runs that an event starts, if this process has stored no event of the app yet. */
const ASSUMED_RUNS_PER_EVENT = 100;
const MEASURED_APPS_MAX = 10_000;

interface LogEventsOptions {
  db: Db;
  queueLimits: QueueLimits;
  receivedDataLimiter: ReceivedDataLimiter;
}

export class LogEventStore {
  /** Average number of runs per event in the last statement, by app. */
  private readonly runsPerEvent = new LRUCache<number, number>({ max: MEASURED_APPS_MAX });

  // Stores concurrent lists of events in one statement. If a list or app makes the statement fail, stores the other lists without it.
  private readonly eventBatches = createBatchProcessor({
    processBatch: (lists: readonly (readonly NewLogEvent[])[]) => this.storeLists(lists),
    maxItems: EVENTS_PER_STATEMENT,
    maxConcurrentCalls: CONCURRENT_STATEMENTS_MAX,
    keyOf: ([first]) => first!.appId,
    costOf: (events) => this.estimateCost(events),
    maxCost: RUNS_PER_STATEMENT,
    isCausedByOneItem: (error) => !isDatabaseUnavailable(error),
    isCausedByOneKey: isStatementTimeout,
  });

  constructor(private readonly options: LogEventsOptions) {}

  /** Estimates how many runs the events start. Each event counts as at least RUNS_PER_STATEMENT / EVENTS_PER_STATEMENT runs. */
  private estimateCost(events: readonly NewLogEvent[]): number {
    const runsPerEvent = this.runsPerEvent.get(events[0]!.appId) ?? ASSUMED_RUNS_PER_EVENT;
    return events.length * Math.max(runsPerEvent, RUNS_PER_STATEMENT / EVENTS_PER_STATEMENT);
  }

  /** Stores lists of events in one statement. Returns one result for each event, in the same order. */
  private async storeLists(lists: readonly (readonly NewLogEvent[])[]): Promise<StoredEvents[]> {
    const { db, queueLimits } = this.options;
    const values = createStoreEventsParameters(lists.flat(), queueLimits.getLastCount());
    const storedEvents = await queryPreparedRows<StoredLogEvent>(db, "store-log-events", STORE_EVENTS_SQL, values);
    for (const [appId, eventsOfApp] of Map.groupBy(storedEvents, (storedEvent) => storedEvent.appId)) {
      const runs = eventsOfApp.reduce((sum, { attemptedRunCount }) => sum + attemptedRunCount, 0);
      this.runsPerEvent.set(appId, runs / eventsOfApp.length);
    }
    return lists.map((events) => sortByRequest(events, storedEvents));
  }

  /** Stores events. Also writes a log entry for each run that was not started because its chain of runs would become too long. */
  private async storeEventsWithHaltedRuns(executor: SqlClient, events: readonly NewLogEvent[]): Promise<StoredEvents> {
    const values = createStoreEventsParameters(events, this.options.queueLimits.getLastCount());
    const storedEvents = sortByRequest(events, await rows<StoredLogEvent>(executor, STORE_EVENTS_SQL, values));
    for (const [index, { appId, runId }] of events.entries()) {
      const haltedRuns = storedEvents[index]?.haltedRuns;
      if (haltedRuns) await logHaltedRuns(executor, appId, runId!, haltedRuns);
    }
    return storedEvents;
  }

  /**
   * Stores events in the transaction `executor`. Without it, stores events of a run in a separate transaction, which also writes the log
   * entries of halted runs. Stores all other events in batches.
   */
  private storeEvents(events: readonly NewLogEvent[], executor?: SqlClient): Promise<StoredEvents> {
    if (executor) return this.storeEventsWithHaltedRuns(executor, events);
    return events[0]!.runId === null
      ? this.eventBatches.add(events)
      : this.options.db.transaction((manager) => this.storeEventsWithHaltedRuns(manager, events));
  }

  /**
   * Stores validated events of one app and queues the runs that they trigger, in the transaction `executor` or in a separate one. Stores
   * all events or none. Uses one statement: with several statements, concurrent transactions could deadlock on the runs of debounced
   * actions.
   */
  async storeAll(
    emitter: LogEventCause,
    appId: number,
    eventInputs: readonly ParsedLogEvent[],
    executor?: SqlClient,
  ): Promise<LogEvent[]> {
    if (eventInputs.length === 0) return [];
    const { runId } = emitter;
    const events = eventInputs.map((eventInput) => {
      const sessionId = eventInput.sessionId ?? findSessionId(emitter);
      const { data: _, ...facts } = { ...eventInput, userId: eventInput.userId ?? emitter.personId, sessionId };
      // A new ID for each event. It is not the ID in the header x-request-id.
      return { ...facts, ...toOpenJson(eventInput), appId, requestId: randomUUID(), runId };
    });
    const storedEvents = await this.storeEvents(events, executor);
    return events.map((event, index) => {
      const storedEvent = storedEvents[index];
      if (!storedEvent) throw new ActionError("APP_NOT_FOUND");
      this.options.receivedDataLimiter.chargeRows(emitter, appId, storedEvent.storedRunCount);
      return toLogEvent(event, eventInputs[index]!.data, storedEvent);
    });
  }

  /** Stores one event, as `storeAll` does. */
  async store(
    emitter: LogEventCause,
    appId: number,
    eventInput: ParsedLogEvent,
    executor?: SqlClient,
  ): Promise<LogEvent> {
    const [event] = await this.storeAll(emitter, appId, [eventInput], executor);
    return event!;
  }

  /**
   * Validates and stores an event, and queues a run of each active live action with a matching log trigger.
   * @throws REQUEST_INVALID, PAYLOAD_TOO_LARGE, APP_NOT_FOUND, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async add(caller: Caller, appId: number, body: unknown): Promise<LogEvent> {
    const input = parseLogEvent(body);
    this.options.receivedDataLimiter.countRows(caller, appId, measureEventBytesWithinLimit(body, "the event"));
    return this.store(caller, appId, input);
  }

  /** Stores an event about a change, in the transaction `executor` of the change. `emitter` is the caller who made the change. */
  async emit(executor: SqlClient, emitter: LogEventCause, appId: number, event: { type: string; data: object }) {
    const data = event.data as Record<string, unknown>;
    await this.store(emitter, appId, { ...NO_IDS, userId: null, type: event.type, data }, executor);
  }
}
