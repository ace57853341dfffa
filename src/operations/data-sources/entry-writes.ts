/** Inserts, changes and removes one entry per request. */
import { ActionError } from "../../errors.js";
import { meetsColumnConditions } from "../../rules/caller-rules.js";
import { createAccessDeniedError, maySelectEntryById } from "../../rules/entries/entry-access.js";
import type { EntryData } from "../../rules/entries/entry-input.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import { createHashQueueKey } from "../records/hashes.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import type { StoredDataSource } from "./data-source-rows.js";
import { type Entry, type StoredEntry, toEntry } from "./entry.js";
import type { EntryChangeTransactions } from "./entry-changes.js";
import type { CallerEntryRights } from "./entry-rights.js";
import {
  deleteEntriesById,
  insertEntriesAsJson,
  type LockedEntry,
  lockEntries,
  readEntryData,
  updateEntriesAsJson,
} from "./entry-statements.js";
import { createEntryValidator, toStorableEntry } from "./entry-validation.js";

/** The entry to change. If the entry's ETag is not in `precondition`, the change is rejected. */
export interface EntryChangeTarget {
  id: number;
  precondition?: ExpectedVersions;
}

/**
 * Converts a written entry to the form that the response contains: all columns that the caller can read. If the caller
 * cannot read the entry, the response contains only the columns that the request has written.
 * @param written columns that the request contains
 */
export function toVisibleEntry(
  rights: CallerEntryRights,
  source: StoredDataSource,
  entry: StoredEntry,
  written: readonly string[],
): Entry {
  const scope = rights.createSingleEntryScope(source);
  const isReadable = scope !== null && canReadWrittenEntry(rights, source, entry.data);
  const hashedColumns = new Set(source.hashedColumns);
  const canSeeColumn = isReadable
    ? scope.canSeeColumn
    : (column: string) => written.includes(column) && !hashedColumns.has(column);
  return toEntry(entry, source.id, canSeeColumn);
}

function canReadWrittenEntry(rights: CallerEntryRights, source: StoredDataSource, data: EntryData): boolean {
  try {
    return meetsColumnConditions(data, rights.requirePermissions(source, "select").conditions);
  } catch {
    return false;
  }
}

/**
 * Checks that an entry has one of the ETags in `precondition` (`If-Match`).
 * @throws ENTRY_CHANGED with the current entry, or with null if the caller cannot read the entry
 */
export function requireUnchangedEntry(
  rights: CallerEntryRights,
  source: StoredDataSource,
  entry: StoredEntry,
  precondition: ExpectedVersions,
): void {
  if (!precondition || precondition.includes(entry.updatedAt.toISOString())) return;
  const isVisible = rights.createSingleEntryScope(source) !== null && canReadWrittenEntry(rights, source, entry.data);
  throw new ActionError("ENTRY_CHANGED", undefined, {
    entry: isVisible ? toVisibleEntry(rights, source, entry, []) : null,
  });
}

/**
 * Returns the new data of an entry that a request replaces. Hashed columns that are missing in `input` keep their
 * values, because callers cannot read these values and so cannot send them back.
 */
export function mergeHashedColumns(source: StoredDataSource, before: EntryData, input: EntryData): EntryData {
  const stored = source.hashedColumns.filter(
    (column) => Object.hasOwn(before, column) && !Object.hasOwn(input, column),
  );
  return stored.length === 0
    ? input
    : { ...input, ...Object.fromEntries(stored.map((column) => [column, before[column]])) };
}

function requireEntry(lockedEntry: LockedEntry | undefined): LockedEntry {
  if (!lockedEntry) throw new ActionError("ENTRY_NOT_FOUND");
  return lockedEntry;
}

export class EntryWrites {
  constructor(
    private readonly options: { changes: EntryChangeTransactions; receivedDataLimiter: ReceivedDataLimiter },
  ) {}

  private countBytes(rights: CallerEntryRights, source: StoredDataSource, bytes: number): void {
    this.options.receivedDataLimiter.countRows(rights.writer.emitter, source.appId, bytes);
  }

  /**
   * Inserts an entry.
   * @throws DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID, PAYLOAD_TOO_LARGE, ENTRY_ALREADY_EXISTS, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async insert(rights: CallerEntryRights, source: StoredDataSource, input: EntryData): Promise<Entry> {
    const validateEntry = createEntryValidator(source, "insert", {
      grant: rights.requirePermissions(source, "insert"),
      trusted: rights.caller.isTrusted,
      queueKey: createHashQueueKey(source.appId, rights.writer.emitter),
    });
    const { data, text } = await validateEntry(input, "the entry");
    const bytes = Buffer.byteLength(text);
    this.countBytes(rights, source, bytes);
    return this.options.changes.commit(
      source,
      rights.writer,
      async (change) => {
        const [made] = await insertEntriesAsJson(change.executor, source, [text]);
        change.addInserted(made!.id, data, bytes);
        return toVisibleEntry(rights, source, { ...made!, data }, Object.keys(input));
      },
      ["insert"],
    );
  }

  /**
   * Changes the columns of an entry that `input` contains. Other columns keep their values.
   * @throws the errors of `insert`; ENTRY_NOT_FOUND, ENTRY_CHANGED
   */
  async update(
    rights: CallerEntryRights,
    source: StoredDataSource,
    target: EntryChangeTarget,
    input: EntryData,
  ): Promise<Entry> {
    const grant = rights.requirePermissions(source, "update");
    const validateEntry = createEntryValidator(source, "update", {
      grant,
      trusted: rights.caller.isTrusted,
      queueKey: createHashQueueKey(source.appId, rights.writer.emitter),
    });
    const { data: written } = await validateEntry(input, "the entry");
    return this.options.changes.commit(
      source,
      rights.writer,
      async (change) => {
        const lockedEntries = await lockEntries(change.executor, source, [target.id]);
        const [before] = await readEntryData(change.executor, source, [requireEntry(lockedEntries.get(target.id))]);
        if (!meetsColumnConditions(before!.data, grant.conditions)) throw new ActionError("ENTRY_NOT_FOUND");
        requireUnchangedEntry(rights, source, before!, target.precondition);
        const { data, text } = toStorableEntry({ ...before!.data, ...written }, "the entry");
        const bytes = Buffer.byteLength(text);
        this.countBytes(rights, source, bytes);
        const updateTimes = await updateEntriesAsJson(change.executor, source, [{ id: target.id, text }]);
        const columns = Object.keys(input);
        change.addUpdated(before!, data, columns, bytes - lockedEntries.get(target.id)!.bytes);
        return toVisibleEntry(rights, source, { ...before!, data, updatedAt: updateTimes.get(target.id)! }, columns);
      },
      ["update"],
    );
  }

  /**
   * Removes an entry and returns its last state.
   * @throws DATA_SOURCE_ACCESS_DENIED, ENTRY_NOT_FOUND, ENTRY_CHANGED
   */
  async remove(rights: CallerEntryRights, source: StoredDataSource, target: EntryChangeTarget): Promise<Entry> {
    const grant = rights.requirePermissions(source, "delete");
    if (!maySelectEntryById(grant)) throw createAccessDeniedError();
    return this.options.changes.commit(source, rights.writer, async (change) => {
      const lockedEntries = await lockEntries(change.executor, source, [target.id]);
      const [before] = await readEntryData(change.executor, source, [requireEntry(lockedEntries.get(target.id))]);
      if (!meetsColumnConditions(before!.data, grant.conditions)) throw new ActionError("ENTRY_NOT_FOUND");
      requireUnchangedEntry(rights, source, before!, target.precondition);
      await deleteEntriesById(change.executor, source, [target.id]);
      change.addRemoved(before!, lockedEntries.get(target.id)!.bytes);
      return toVisibleEntry(rights, source, before!, []);
    });
  }
}
