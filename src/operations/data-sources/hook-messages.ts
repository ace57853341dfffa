/** Builds the messages that a data source's hooks send about written entries, and stores them in the transaction of the write. */
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BULK_ENTRIES, QUERY_TIMEOUT_MS } from "../../limits.js";
import { isVisitor } from "../../rules/access.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import { type HookVerb, hookMessage, isSendingHook, type SendingHook } from "../../rules/entries/sending-hooks.js";
import { Statement } from "../../rules/entry-query/statement.js";
import type { Email, Sms } from "../../rules/message-input.js";
import type { IntakeLimiter } from "../records/intake.js";
import type { Emitter } from "../records/log-events.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { visibleColumns } from "./entry.js";
import { entriesOf } from "./entry-rows.js";

/** Maximum number of messages for one request of the app itself, and for one of a page, whose visitors choose the addresses. */
const MESSAGES_MAX = BULK_ENTRIES;
const MESSAGES_OF_PAGES = 5;
const MESSAGES_MAX_BYTES = 8 * 1024 * 1024;

/** Entry that a message is about. */
export interface HookedEntry {
  appId: number;
  dataSourceId: number;
  dataSourceEntryId: number;
}

type Status = "kept" | "queued";

/** Sends the messages of hooks. */
export interface MessageOutlet {
  /** Counts messages. @throws ActionError RATE_LIMIT_EXCEEDED if the app, or its visitors, have sent too many */
  count(appId: number, emitter: Emitter): Promise<void>;
  /** Returns the status of messages of that kind. @throws ActionError SETTINGS_INVALID if the app's settings for this kind are unusable */
  statusFor(appId: number, kind: SendingHook["type"]): Promise<Status>;
  /** Stores a message with the log event `email.dataSourceHook` or `sms.dataSourceHook`. */
  accept(executor: Executor, emitter: Emitter, entry: HookedEntry, message: Email | Sms, status: Status): Promise<void>;
  /** Records in this log event why no message was sent. */
  refuse(
    executor: Executor,
    emitter: Emitter,
    entry: HookedEntry,
    type: SendingHook["type"],
    fault: string,
  ): Promise<void>;
}

interface WantedMessage {
  hook: SendingHook;
  entryId: number;
  made: { message: Email | Sms; status: Status } | { fault: string };
}

/** Status of messages by kind, or the reason why they cannot be sent. */
type HookStatuses = ReadonlyMap<SendingHook["type"], Status | ActionError>;

/** Messages of the hooks of one transaction. */
export interface HookMessages {
  add(verb: HookVerb, entryId: number, data: EntryData): void;
  /** Stores the messages. */
  store(executor: Executor): Promise<void>;
}

const NO_MESSAGES: HookMessages = { add: () => undefined, store: async () => undefined };

export type HookMessenger = ReturnType<typeof createHookMessenger>;

export function createHookMessenger({ outlet, intake }: { outlet: MessageOutlet; intake: IntakeLimiter }) {
  /**
   * Reads the statuses before the transaction starts, because within it the read would need a second connection. An invalid setting does
   * not prevent the write.
   */
  async function statusesFor(appId: number, hooks: readonly SendingHook[]): Promise<HookStatuses> {
    const statusByType = new Map<SendingHook["type"], Status | ActionError>();
    for (const { type } of hooks) {
      if (statusByType.has(type)) continue;
      const status = await outlet.statusFor(appId, type).catch((error: unknown) => {
        if (error instanceof ActionError) return error;
        throw error;
      });
      statusByType.set(type, status);
    }
    return statusByType;
  }

  function makeMessage(hook: SendingHook, data: EntryData, status: Status | ActionError): WantedMessage["made"] | null {
    try {
      const message = hookMessage(hook, data);
      if (message === null) return null;
      return status instanceof ActionError ? { fault: status.message } : { message, status };
    } catch (error) {
      if (!(error instanceof ActionError)) throw error;
      return { fault: error.message };
    }
  }

  function gatherMessages(
    source: StoredDataSource,
    { hooks, statuses, emitter }: { hooks: readonly SendingHook[]; statuses: HookStatuses; emitter: Emitter },
  ): HookMessages {
    const messagesMax = isVisitor(emitter) ? MESSAGES_OF_PAGES : MESSAGES_MAX;
    const wantedMessages: WantedMessage[] = [];
    let bytes = 0;

    /** Returns the messages to send: for each hook, the written entries that match its `where` in their current state. */
    async function chooseMessages(executor: Executor): Promise<WantedMessage[]> {
      const messages: WantedMessage[] = [];
      for (const hook of hooks) {
        const hookMessages = wantedMessages.filter((message) => message.hook === hook);
        if (hookMessages.length === 0) continue;
        if (hook.where === undefined) {
          messages.push(...hookMessages);
          continue;
        }
        const statement = new Statement();
        const scope = { canSee: (column: string) => !source.hashedColumns.includes(column), filter: null };
        const ids = hookMessages.map(({ entryId }) => entryId);
        const condition = entriesOf(source, { scope, where: hook.where, ids }, statement, "e");
        await rows(executor, `SET LOCAL statement_timeout = ${QUERY_TIMEOUT_MS}`);
        const matching = await rows<{ id: number }>(
          executor,
          `SELECT e.id FROM data_source_entry e WHERE ${condition}`,
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
        const visibleData = visibleColumns(data, (column) => !source.hashedColumns.includes(column));
        for (const hook of hooks) {
          if (!hook.runOn.includes(verb)) continue;
          const hookMessage = makeMessage(hook, visibleData, statuses.get(hook.type)!);
          if (!hookMessage) continue;
          wantedMessages.push({ hook, entryId, made: hookMessage });
          bytes += JSON.stringify(hookMessage).length;
          if (bytes > MESSAGES_MAX_BYTES) {
            const message = `the hooks of one request may send ${MESSAGES_MAX_BYTES} bytes; write fewer entries at once`;
            throw new ActionError("REQUEST_INVALID", message);
          }
        }
      },
      async store(executor) {
        const messages = await chooseMessages(executor);
        if (messages.length > messagesMax) {
          const message = `the hooks of one request may send ${messagesMax} messages; write fewer entries at once`;
          throw new ActionError("REQUEST_INVALID", message);
        }
        if (messages.length > 0) intake.takeRows(emitter, source.appId, bytes, 2 * messages.length);
        for (const { hook, entryId, made: message } of messages) {
          const entry = { appId: source.appId, dataSourceId: source.id, dataSourceEntryId: entryId };
          if ("message" in message) await outlet.accept(executor, emitter, entry, message.message, message.status);
          else await outlet.refuse(executor, emitter, entry, hook.type, message.fault);
        }
      },
    };
  }

  return {
    /**
     * Returns the collector of messages for one request, which counts as a sending request if any hook of its verbs
     * sends.
     * @throws RATE_LIMIT_EXCEEDED
     */
    async createCollector(
      source: StoredDataSource,
      verbs: readonly HookVerb[],
      emitter: Emitter,
    ): Promise<HookMessages> {
      const hooks = source.hooks
        .filter(isSendingHook)
        .filter(({ runOn }) => runOn.some((verb) => verbs.includes(verb)));
      if (hooks.length === 0) return NO_MESSAGES;
      await outlet.count(source.appId, emitter);
      return gatherMessages(source, { hooks, statuses: await statusesFor(source.appId, hooks), emitter });
    },
  };
}
