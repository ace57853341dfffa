/** Log events: stored in the specified shape, and in the same transaction the start of every action they trigger. Knows no transport. */
import { randomUUID } from "node:crypto";
import type { DataSource } from "typeorm";
import { type Executor, isDatabaseAway, preparedRows, rows } from "../../data/database.js";
import { createBatches } from "../../engine/batches.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { eventBytes, type LogEventInput, parseLogEvent } from "../../rules/log-event-input.js";
import { logHalted } from "./chains.js";
import type { Intake, Sender } from "./intake.js";
import { eventParameters, type NewEvent, STORE_EVENTS, type StoredEvent } from "./log-event-statement.js";
import type { QueueLimits } from "./queue-limits.js";

/** A log entry (specification, Log entry). Times are ISO 8601; ids that were not given are null. */
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

/**
 * The data as JSON text that one more key may follow. Who names a user of the organization has the service say its address; whatever
 * else came is stored as it came.
 */
function openData({ data, userId }: LogEventInput): Pick<NewEvent, "head" | "separator" | "claimed"> {
  if (userId === null) return { head: JSON.stringify(data).slice(0, -1), separator: null, claimed: null };
  const { _userEmail: claimed, ...rest } = data;
  return {
    head: JSON.stringify(rest).slice(0, -1),
    separator: Object.keys(rest).length > 0 ? "," : "",
    claimed: claimed === undefined ? null : JSON.stringify(claimed),
  };
}

/** Whom an event is stored for. */
export type Emitter = Sender & Pick<Caller, "personId" | "runId">;

/** A session is a person's or a visitor's credential, by its id. API tokens and server runs have none. */
function sessionIdOf({ kind, credentialId }: Sender): number | null {
  return kind === "api" || kind === "task" ? null : credentialId;
}

const NO_IDS = { dataSourceId: null, dataSourceEntryId: null, appNotificationId: null, sessionId: null };

export type LogEvents = ReturnType<typeof createLogEvents>;

/** Events that are stored by one statement; what comes while two are under way waits for the next. */
const STORED_TOGETHER = 64;
const STATEMENTS_AT_ONCE = 2;

export function createLogEvents({
  db,
  queueLimits,
  intake,
}: {
  db: DataSource;
  queueLimits: QueueLimits;
  intake: Intake;
}) {
  /** In the order of `events`; undefined for one whose app is not there. */
  async function storeAll(events: readonly NewEvent[]): Promise<(StoredEvent | undefined)[]> {
    const values = eventParameters(events, queueLimits.lastCount());
    const stored = await preparedRows<StoredEvent>(db, "store-log-events", STORE_EVENTS, values);
    const byRequest = new Map(stored.map((one) => [one.requestId, one]));
    return events.map(({ requestId }) => byRequest.get(requestId));
  }

  // Events that arrive together have one commit together. The error of one event affects no other.
  const gathered = createBatches({
    work: storeAll,
    most: STORED_TOGETHER,
    atOnce: STATEMENTS_AT_ONCE,
    isOfOne: (error) => !isDatabaseAway(error),
  });

  /** Where a chain is cut off, the log says so in the same transaction. */
  async function storeIn(executor: Executor, event: NewEvent): Promise<StoredEvent | undefined> {
    const values = eventParameters([event], queueLimits.lastCount());
    const [stored] = await rows<StoredEvent>(executor, STORE_EVENTS, values);
    if (stored?.halted) await logHalted(executor, event.appId, event.runId!, stored.halted);
    return stored;
  }

  /** Only a run's event can be where a chain is cut off: all others spare themselves a transaction of their own. */
  function storeOne(event: NewEvent, executor?: Executor): Promise<StoredEvent | undefined> {
    if (executor) return storeIn(executor, event);
    return event.runId === null ? gathered.add(event) : db.transaction((manager) => storeIn(manager, event));
  }

  /** Stores what has been judged, in the transaction of `executor` where one is given, and starts what it triggers. */
  async function store(emitter: Emitter, appId: number, given: LogEventInput, executor?: Executor): Promise<LogEvent> {
    const sessionId = given.sessionId ?? sessionIdOf(emitter);
    const input = { ...given, userId: given.userId ?? emitter.personId, sessionId };
    const { data: _, ...facts } = input;
    const { runId } = emitter;
    const requestId = randomUUID();
    const open = openData(given);
    const stored = await storeOne({ ...facts, ...open, appId, requestId, runId }, executor);
    if (!stored) throw new ActionError("APP_NOT_FOUND");
    const { id, organizationId, completed, started } = stored;
    intake.charge(emitter, appId, started);
    const createdAt = stored.createdAt.toISOString();
    const data = completed === null ? input.data : JSON.parse(completed);
    const dataString = completed ?? `${open.head}}`;
    const times = { createdAt, updatedAt: createdAt };
    return { id, ...input, appId, organizationId, requestId, data, dataString, ...times };
  }

  return {
    store,

    /**
     * Stores the event and starts each active production copy whose `where` matches it.
     * @throws REQUEST_INVALID, PAYLOAD_TOO_LARGE, APP_NOT_FOUND, RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    async add(caller: Caller, appId: number, body: unknown): Promise<LogEvent> {
      const input = parseLogEvent(body);
      intake.take(caller, appId, eventBytes(body, "the event"));
      return store(caller, appId, input);
    },

    /** The service's own event, stored with what it tells of: in one transaction, or not at all. */
    async emit(executor: Executor, emitter: Emitter, appId: number, event: { type: string; data: object }) {
      const data = event.data as Record<string, unknown>;
      await store(emitter, appId, { ...NO_IDS, userId: null, type: event.type, data }, executor);
    },
  };
}
