/**
 * Builds the e-mails and text messages that a data source's hooks send when entries are written. The transaction that
 * writes the entries also stores the messages.
 */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BULK_WRITE_THRESHOLD_ENTRIES, ENTRY_QUERY_TIMEOUT_MS } from "../../limits.js";
import { isPageCaller } from "../../rules/access.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import { buildHookMessage, type HookVerb, isSendingHook, type SendingHook } from "../../rules/entries/sending-hooks.js";
import { SqlStatement } from "../../rules/entry-query/statement.js";
import type { Email, Sms } from "../../rules/message-input.js";
import type { LogEventCause } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { pickVisibleColumns } from "./entry.js";
import { entryConditionSql } from "./entry-rows.js";

/** Maximum number of messages that the hooks of one request can send if the caller is not a page of the app. */
const MAX_MESSAGES_PER_REQUEST = BULK_WRITE_THRESHOLD_ENTRIES;
/** Maximum number of messages for one request of a page. This limit is low, because visitors can choose the recipients. */
const MAX_MESSAGES_PER_PAGE_REQUEST = 5;
/** Maximum total size of the messages that the hooks of one request can send, as JSON in bytes. */
const MESSAGES_MAX_BYTES = 8 * 1024 * 1024;

export interface HookSourceEntry {
  appId: number;
  dataSourceId: number;
  dataSourceEntryId: number;
}

/** "queued": the service will send the message. "kept": the message is only stored, because no mail server or provider is configured. */
type HookMessageStatus = "kept" | "queued";

export interface HookMessageStore {
  /**
   * Counts a request whose hooks send messages.
   * @throws ActionError RATE_LIMIT_EXCEEDED if the app or its visitors have sent too many such requests
   */
  countRequest(appId: number, emitter: LogEventCause): Promise<void>;
  /**
   * Returns the status that a message of this kind gets: "queued" or "kept".
   * @throws ActionError SETTINGS_INVALID if the app's settings for e-mail or text messages are invalid
   */
  selectMessageStatus(appId: number, kind: SendingHook["type"]): Promise<HookMessageStatus>;
  /** Stores a message and its log event, `email.dataSourceHook` or `sms.dataSourceHook`. */
  accept(
    executor: SqlClient,
    emitter: LogEventCause,
    entry: HookSourceEntry,
    message: Email | Sms,
    status: HookMessageStatus,
  ): Promise<void>;
  /**
   * Stores a log event which says that a message cannot be sent, or cannot be sent to all its addresses.
   * @param fault reason, which names the hook
   */
  logRefusal(
    executor: SqlClient,
    emitter: LogEventCause,
    entry: HookSourceEntry,
    type: SendingHook["type"],
    fault: string,
  ): Promise<void>;
}

interface PendingMessage {
  hook: SendingHook;
  entryId: number;
  /** Message to store; null if the service cannot send the message to any address. */
  delivery: { message: Email | Sms; status: HookMessageStatus } | null;
  /** Reason why the message cannot be sent to some or all of its addresses; otherwise null. */
  fault: string | null;
}

/** For e-mails and text messages: the status of a new message, or the error because of which the app cannot send messages. */
type HookStatuses = ReadonlyMap<SendingHook["type"], HookMessageStatus | ActionError>;

export interface HookMessageCollector {
  /** Builds the messages about one written entry, for all hooks that run on `verb`. */
  add(verb: HookVerb, entryId: number, data: EntryData): void;
  /** Stores those messages whose entry matches the `where` of the hook. */
  store(executor: SqlClient): Promise<void>;
}

const NO_HOOK_MESSAGES: HookMessageCollector = { add: () => undefined, store: async () => undefined };

/** Builds the message of a hook for an entry; null if all addresses are empty. `fault` is the reason why addresses get no message. */
function prepareHookMessage(
  hook: SendingHook,
  data: EntryData,
  status: HookMessageStatus | ActionError,
): Pick<PendingMessage, "delivery" | "fault"> | null {
  try {
    const { message, addressFault } = buildHookMessage(hook, data);
    if (message === null) return addressFault === null ? null : { delivery: null, fault: addressFault };
    if (status instanceof ActionError) return { delivery: null, fault: status.message };
    return { delivery: { message, status }, fault: addressFault };
  } catch (error) {
    if (!(error instanceof ActionError)) throw error;
    return { delivery: null, fault: error.message };
  }
}

/**
 * Compiles the `where` of a hook to a condition for the written entries. An earlier release may have stored a `where` that is invalid now.
 * In this case, the function returns a fault instead of throwing, because a hook must not prevent writes of entries.
 */
function compileHookWhere(
  source: StoredDataSource,
  { where }: SendingHook,
  messages: readonly PendingMessage[],
  statement: SqlStatement,
): { sql: string } | { fault: string } {
  const scope = { canSeeColumn: (column: string) => !source.hashedColumns.includes(column), filter: null };
  const ids = messages.map(({ entryId }) => entryId);
  try {
    return { sql: entryConditionSql(source, { scope, where, ids }, statement, "e") };
  } catch (error) {
    if (!(error instanceof ActionError)) throw error;
    return { fault: error.message };
  }
}

export class HookMessageBuilder {
  constructor(
    private readonly options: { hookMessageStore: HookMessageStore; receivedDataLimiter: ReceivedDataLimiter },
  ) {}

  /**
   * Returns the status that new messages of each type get. Call this method before the transaction, because a read during the transaction
   * would need a second database connection.
   */
  private async readStatuses(appId: number, hooks: readonly SendingHook[]): Promise<HookStatuses> {
    const statusByType = new Map<SendingHook["type"], HookMessageStatus | ActionError>();
    for (const { type } of hooks) {
      if (statusByType.has(type)) continue;
      const status = await this.options.hookMessageStore.selectMessageStatus(appId, type).catch((error: unknown) => {
        if (error instanceof ActionError) return error;
        throw error;
      });
      statusByType.set(type, status);
    }
    return statusByType;
  }

  private collectMessages(
    source: StoredDataSource,
    { hooks, statuses, emitter }: { hooks: readonly SendingHook[]; statuses: HookStatuses; emitter: LogEventCause },
  ): HookMessageCollector {
    const { hookMessageStore, receivedDataLimiter } = this.options;
    const messagesMax = isPageCaller(emitter) ? MAX_MESSAGES_PER_PAGE_REQUEST : MAX_MESSAGES_PER_REQUEST;
    const builtMessages: PendingMessage[] = [];
    let bytes = 0;

    /** Returns the messages to store. For a hook with a `where`, only messages about written entries that match this `where` now. */
    async function selectMessages(executor: SqlClient): Promise<PendingMessage[]> {
      const messages: PendingMessage[] = [];
      for (const hook of hooks) {
        const hookMessages = builtMessages.filter((message) => message.hook === hook);
        if (hookMessages.length === 0) continue;
        if (hook.where === undefined) {
          messages.push(...hookMessages);
          continue;
        }
        const statement = new SqlStatement();
        const compiled = compileHookWhere(source, hook, hookMessages, statement);
        if ("fault" in compiled) {
          const { fault } = compiled;
          messages.push(...hookMessages.map((message) => ({ ...message, delivery: null, fault })));
          continue;
        }
        await rows(executor, `SET LOCAL statement_timeout = ${ENTRY_QUERY_TIMEOUT_MS}`);
        const matching = await rows<{ id: number }>(
          executor,
          `SELECT e.id FROM data_source_entry e WHERE ${compiled.sql}`,
          statement.values,
        );
        await rows(executor, "SET LOCAL statement_timeout = DEFAULT");
        const matchingIds = new Set(matching.map(({ id }) => id));
        messages.push(...hookMessages.filter(({ entryId }) => matchingIds.has(entryId)));
      }
      return messages;
    }

    return {
      add(verb, entryId, data) {
        const visibleData = pickVisibleColumns(data, (column) => !source.hashedColumns.includes(column));
        for (const hook of hooks) {
          if (!hook.runOn.includes(verb)) continue;
          const hookMessage = prepareHookMessage(hook, visibleData, statuses.get(hook.type)!);
          if (!hookMessage) continue;
          builtMessages.push({ hook, entryId, ...hookMessage });
          bytes += Buffer.byteLength(JSON.stringify(hookMessage));
          if (bytes > MESSAGES_MAX_BYTES) {
            const message =
              `the data source's hooks would send more than ${MESSAGES_MAX_BYTES} bytes of e-mails and text messages, ` +
              "the maximum for one request; write fewer entries in one request";
            throw new ActionError("REQUEST_INVALID", message);
          }
        }
      },
      async store(executor) {
        const messages = await selectMessages(executor);
        const deliveries = messages.filter(({ delivery }) => delivery !== null).length;
        if (deliveries > messagesMax) {
          const message =
            `the data source's hooks would send ${deliveries} messages, ` +
            `but one request can send at most ${messagesMax}; write fewer entries in one request`;
          throw new ActionError("REQUEST_INVALID", message);
        }
        const rowCount = messages.reduce((sum, { delivery, fault }) => sum + (delivery ? 2 : 0) + (fault ? 1 : 0), 0);
        if (rowCount > 0) receivedDataLimiter.countRows(emitter, source.appId, bytes, rowCount);
        for (const { hook, entryId, delivery, fault } of messages) {
          const entry = { appId: source.appId, dataSourceId: source.id, dataSourceEntryId: entryId };
          if (delivery) await hookMessageStore.accept(executor, emitter, entry, delivery.message, delivery.status);
          if (fault === null) continue;
          const hookFault = `hooks[${source.hooks.indexOf(hook)}]: ${fault}`;
          await hookMessageStore.logRefusal(executor, emitter, entry, hook.type, hookFault);
        }
      },
    };
  }

  /**
   * Returns an object that collects the messages for one request. If a hook for one of the operations `verbs` sends messages, the request
   * is counted in the rate limit for messages.
   * @throws RATE_LIMIT_EXCEEDED
   */
  async createCollector(
    source: StoredDataSource,
    verbs: readonly HookVerb[],
    emitter: LogEventCause,
  ): Promise<HookMessageCollector> {
    const hooks = source.hooks.filter(isSendingHook).filter(({ runOn }) => runOn.some((verb) => verbs.includes(verb)));
    if (hooks.length === 0) return NO_HOOK_MESSAGES;
    await this.options.hookMessageStore.countRequest(source.appId, emitter);
    return this.collectMessages(source, { hooks, statuses: await this.readStatuses(source.appId, hooks), emitter });
  }
}
