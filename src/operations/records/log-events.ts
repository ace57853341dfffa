/** Log events: stored in the specified shape, and in the same transaction the start of every action they trigger. Knows no transport. */
import { randomUUID } from "node:crypto";
import type { DataSource } from "typeorm";
import { type Executor, preparedRows, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { eventBytes, type LogEventInput, parseLogEvent } from "../../rules/log-event-input.js";
import { logHalted } from "./chains.js";
import type { Intake, Sender } from "./intake.js";
import { STORE_EVENT, type StoredEvent } from "./log-event-statement.js";
import type { QueueRoom } from "./queue-room.js";

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
function openData({ data, userId }: LogEventInput) {
  const { _userEmail: claimed, ...rest } = data;
  const kept = userId === null ? data : rest;
  const separator = Object.keys(kept).length > 0 ? "," : "";
  return {
    head: JSON.stringify(kept).slice(0, -1),
    separator: userId === null ? null : separator,
    claimed: claimed === undefined ? null : JSON.stringify(claimed),
  };
}

/** Whom an event is stored for. */
export type Emitter = Sender & Pick<Caller, "personId" | "runId">;

const NO_IDS = { dataSourceId: null, dataSourceEntryId: null, appNotificationId: null, sessionId: null };

export type LogEvents = ReturnType<typeof createLogEvents>;

export function createLogEvents({ db, queueRoom, intake }: { db: DataSource; queueRoom: QueueRoom; intake: Intake }) {
  /** Where a chain is cut off, the log says so in the same transaction. */
  async function storeIn(executor: Executor, appId: number, runId: number | null, values: unknown[]) {
    const [stored] = await rows<StoredEvent>(executor, STORE_EVENT, values);
    if (stored?.halted) await logHalted(executor, appId, runId!, stored.halted);
    return stored;
  }

  /** Stores what has been judged, in the transaction of `executor` where one is given, and starts what it triggers. */
  async function store(emitter: Emitter, appId: number, given: LogEventInput, executor?: Executor): Promise<LogEvent> {
    const input = { ...given, userId: given.userId ?? emitter.personId };
    const { type, userId, dataSourceId, dataSourceEntryId, appNotificationId, sessionId } = input;
    const { head, separator, claimed } = openData(given);
    const requestId = randomUUID();
    const { runId } = emitter;
    const ids = [userId, dataSourceId, dataSourceEntryId, appNotificationId, sessionId];
    const values = [appId, type, head, separator, ...ids, requestId, runId, claimed, queueRoom.shareKnown()];
    // Only a run's event can be where a chain is cut off: all others spare themselves the transaction.
    const stored = executor
      ? await storeIn(executor, appId, runId, values)
      : runId === null
        ? (await preparedRows<StoredEvent>(db, "store-log-event", STORE_EVENT, values))[0]
        : await db.transaction((manager) => storeIn(manager, appId, runId, values));
    if (!stored) throw new ActionError("APP_NOT_FOUND");
    const { id, organizationId, dataString, started } = stored;
    intake.charge(emitter, appId, started);
    const createdAt = stored.createdAt.toISOString();
    const data = JSON.parse(dataString);
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
