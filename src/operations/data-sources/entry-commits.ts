/** Writes a commit: a request that inserts, changes and removes many entries in one transaction. */
import { ActionError } from "../../errors.js";
import { BULK_WRITE_THRESHOLD_ENTRIES } from "../../limits.js";
import { meetsColumnConditions } from "../../rules/caller-rules.js";
import {
  createAccessDeniedError,
  type EntryPermissions,
  maySelectEntryById,
} from "../../rules/entries/entry-access.js";
import type { EntryData, ParsedEntryCommit } from "../../rules/entries/entry-input.js";
import type { HookVerb } from "../../rules/entries/sending-hooks.js";
import { createHashQueueKey } from "../records/hashes.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { lockEntryReplacementShared, type StoredDataSource } from "./data-source-rows.js";
import type { DataSourceSnapshots } from "./data-source-snapshots.js";
import type { Entry } from "./entry.js";
import type { EntryChangeCollector, EntryChangeTransactions } from "./entry-changes.js";
import type { CallerEntryRights } from "./entry-rights.js";
import {
  deleteEntriesById,
  insertEntriesAsJson,
  type LockedEntry,
  lockAllEntries,
  lockEntries,
  readEntryData,
  removeEntriesExcept,
  splitIntoBatches,
  updateEntriesAsJson,
} from "./entry-statements.js";
import { createEntryValidator, type StorableEntry, toStorableEntry } from "./entry-validation.js";
import { mergeHashedColumns, requireUnchangedEntry, toVisibleEntry } from "./entry-writes.js";

export type EntryCommitResult = { entries: Entry[] } | { inserted: number; updated: number; deleted: number };

/** A commit validates this many bytes of entries at once. Then the event loop handles other requests before the commit continues. */
const VALIDATED_BYTES_BEFORE_YIELD = 256 * 1024;
const yieldToEventLoop = () => new Promise((resolve) => setImmediate(resolve));

/** Maximum size in bytes of the entries in the response to a commit. A commit with `returnEntries` whose entries are larger is rejected. */
const RETURNED_ENTRIES_MAX_BYTES = 8 * 1024 * 1024;

interface CommitGrants {
  insert: EntryPermissions | null;
  update: EntryPermissions | null;
  delete: EntryPermissions | null;
}

function findCommitGrants(
  rights: CallerEntryRights,
  source: StoredDataSource,
  commit: ParsedEntryCommit,
): CommitGrants {
  const hasRemovals = commit.deletes.length > 0 || !commit.append;
  const commitGrants = {
    insert: commit.inserts.length > 0 ? rights.requirePermissions(source, "insert") : null,
    update: commit.updates.length > 0 ? rights.requirePermissions(source, "update") : null,
    delete: hasRemovals ? rights.requirePermissions(source, "delete") : null,
  };
  // Requires a right also for an empty commit, which would otherwise reveal whether the data source exists.
  if (!commitGrants.insert && !commitGrants.update && !commitGrants.delete) rights.requirePermissions(source, "insert");
  if (commitGrants.delete) rejectUnfilteredRemoval(commitGrants.delete, commit.append);
  return commitGrants;
}

/**
 * Rejects every removal if the access rule requires a column in the `where`, because a commit has no `where`. If the rule has conditions,
 * rejects a replacement of all entries, and allows a removal by ID.
 */
function rejectUnfilteredRemoval(grant: EntryPermissions, append: boolean): void {
  if (!maySelectEntryById(grant) || (!append && Object.keys(grant.conditions).length > 0))
    throw createAccessDeniedError();
}

const createNotFoundError = (id: number): ActionError =>
  new ActionError("ENTRY_NOT_FOUND", `the data source has no entry with the ID ${id}`);

function requireAllFound(lockedEntries: ReadonlyMap<number, LockedEntry>, ids: readonly number[]): void {
  const missingId = ids.find((id) => !lockedEntries.has(id));
  if (missingId !== undefined) throw createNotFoundError(missingId);
}

interface EntryCommitsOptions {
  changes: EntryChangeTransactions;
  receivedDataLimiter: ReceivedDataLimiter;
  snapshots: DataSourceSnapshots;
}

/** Collects the inserted and changed entries for the response. */
class ReturnedEntries {
  readonly entries: Entry[] = [];
  private bytes = 0;

  constructor(
    private readonly rights: CallerEntryRights,
    private readonly source: StoredDataSource,
    private readonly isWanted: boolean,
  ) {}

  add(entry: Parameters<typeof toVisibleEntry>[2], text: string, writtenColumns: readonly string[]): void {
    if (!this.isWanted) return;
    this.bytes += text.length;
    if (this.bytes > RETURNED_ENTRIES_MAX_BYTES) {
      const message =
        `the written entries exceed ${RETURNED_ENTRIES_MAX_BYTES} bytes, the maximum of a response; ` +
        'leave out "returnEntries"';
      throw new ActionError("REQUEST_INVALID", message);
    }
    this.entries.push(toVisibleEntry(this.rights, this.source, entry, writtenColumns));
  }
}

async function insertEntries(
  change: EntryChangeCollector,
  newEntries: readonly StorableEntry[],
  input: readonly EntryData[],
  returnedEntries: ReturnedEntries,
) {
  const entryTexts = newEntries.map(({ text }) => text);
  const stored = await insertEntriesAsJson(change.executor, change.source, entryTexts);
  for (const [at, { data, text }] of newEntries.entries()) {
    change.addInserted(stored[at]!.id, data, Buffer.byteLength(text));
    returnedEntries.add({ ...stored[at]!, data }, text, Object.keys(input[at]!));
  }
}

async function updateEntries(
  change: EntryChangeCollector,
  { rights, grant, commit }: { rights: CallerEntryRights; grant: EntryPermissions; commit: ParsedEntryCommit },
  validated: ReadonlyMap<number, EntryData>,
  lockedEntries: ReadonlyMap<number, LockedEntry>,
  returnedEntries: ReturnedEntries,
): Promise<void> {
  const { source, executor } = change;
  const updatesById = new Map(commit.updates.map((update) => [update.id, update]));
  const entries = [...updatesById.keys()].map((id) => lockedEntries.get(id)!).sort((a, b) => a.id - b.id);
  for (const batch of splitIntoBatches(entries, ({ bytes }) => bytes)) {
    const entryTexts: { id: number; text: string; done: (updatedAt: Date) => void }[] = [];
    for (const before of await readEntryData(executor, source, batch)) {
      const { data: input, precondition } = updatesById.get(before.id)!;
      if (!meetsColumnConditions(before.data, grant.conditions)) throw createNotFoundError(before.id);
      requireUnchangedEntry(rights, source, before, precondition);
      const inputData = validated.get(before.id)!;
      const wholeData = commit.extend
        ? { ...before.data, ...inputData }
        : mergeHashedColumns(source, before.data, inputData);
      // Columns that the caller cannot access keep their values.
      const mergedData = commit.extend ? wholeData : { ...pickInaccessibleColumns(grant, before.data), ...wholeData };
      const { data, text } = toStorableEntry(mergedData, `entry ${before.id}`);
      const done = (updatedAt: Date) => {
        change.addUpdated(
          before,
          data,
          Object.keys(input),
          Buffer.byteLength(text) - lockedEntries.get(before.id)!.bytes,
        );
        returnedEntries.add({ ...before, data, updatedAt }, text, Object.keys(input));
      };
      entryTexts.push({ id: before.id, text, done });
    }
    const updateTimes = await updateEntriesAsJson(executor, source, entryTexts);
    for (const { id, done } of entryTexts) done(updateTimes.get(id)!);
  }
}

async function validateCommit(
  rights: CallerEntryRights,
  source: StoredDataSource,
  commit: ParsedEntryCommit,
): Promise<ValidatedCommit> {
  const commitGrants = findCommitGrants(rights, source, commit);
  const { isTrusted: trusted } = rights.caller;
  const insertedEntries: StorableEntry[] = [];
  const updates = new Map<number, EntryData>();
  const queueKey = createHashQueueKey(source.appId, rights.writer.emitter);
  const validateInsert =
    commitGrants.insert && createEntryValidator(source, "insert", { grant: commitGrants.insert, trusted, queueKey });
  const validateUpdate =
    commitGrants.update && createEntryValidator(source, "update", { grant: commitGrants.update, trusted, queueKey });
  let bytes = 0;
  let bytesUntilYield = VALIDATED_BYTES_BEFORE_YIELD;
  const countBytesAndYield = async ({ text }: StorableEntry) => {
    bytes += Buffer.byteLength(text);
    bytesUntilYield -= text.length;
    if (bytesUntilYield > 0) return;
    bytesUntilYield = VALIDATED_BYTES_BEFORE_YIELD;
    await yieldToEventLoop();
  };
  for (const [at, data] of commit.inserts.entries()) {
    const validated = await validateInsert!(data, `entry ${at + 1} to insert`);
    insertedEntries.push(validated);
    await countBytesAndYield(validated);
  }
  for (const { id, data } of commit.updates) {
    const validated = await validateUpdate!(data, `entry ${id}`);
    updates.set(id, validated.data);
    await countBytesAndYield(validated);
  }
  return { grants: commitGrants, inserts: insertedEntries, updates, totalBytes: bytes };
}

export class EntryCommits {
  constructor(private readonly options: EntryCommitsOptions) {}

  private async applyCommit(
    change: EntryChangeCollector,
    rights: CallerEntryRights,
    commit: ParsedEntryCommit,
    validated: ValidatedCommit,
  ): Promise<ReturnedEntries> {
    const { source, executor } = change;
    const { grants: commitGrants, inserts: insertedEntries, updates } = validated;
    const returnedEntries = new ReturnedEntries(rights, source, commit.returnEntries);
    const namedIds = [...commit.updates.map(({ id }) => id), ...commit.deletes];
    if (!commit.append) {
      await lockEntryReplacementShared(executor, source.appId, source.id);
      await this.options.snapshots.snapshot(change, rights.writer, "commit");
      await this.removeUnnamedEntries(change, namedIds, commitGrants.delete!);
    }
    const lockedEntries = await lockEntries(executor, source, namedIds);
    requireAllFound(lockedEntries, namedIds);
    if (commitGrants.delete)
      await this.removeEntries(
        change,
        commit.deletes.map((id) => lockedEntries.get(id)!).sort((a, b) => a.id - b.id),
        commitGrants.delete,
      );
    if (commitGrants.update)
      await updateEntries(
        change,
        { rights, grant: commitGrants.update, commit },
        updates,
        lockedEntries,
        returnedEntries,
      );
    await insertEntries(change, insertedEntries, commit.inserts, returnedEntries);
    return returnedEntries;
  }

  /**
   * Removes all entries except those with the IDs `namedIds`, which the commit updates or removes. Locks all entries in the order of their
   * IDs, so that no deadlock can occur. Only a small removal gets a log event for each entry.
   */
  private async removeUnnamedEntries(
    change: EntryChangeCollector,
    namedIds: readonly number[],
    grant: EntryPermissions,
  ): Promise<void> {
    const { source, executor } = change;
    const named = new Set(namedIds);
    const all = await lockAllEntries(executor, source, BULK_WRITE_THRESHOLD_ENTRIES + named.size);
    if (all)
      await this.removeEntries(
        change,
        all.filter(({ id }) => !named.has(id)),
        grant,
      );
    else change.addRemovedBatch(await removeEntriesExcept(executor, source, namedIds, change.remainingCapacity));
  }

  /**
   * Removes locked entries. Adds them to `change` with their data; for a large removal, only their number and size.
   * @throws ENTRY_NOT_FOUND for an entry that the access rule hides from the caller
   */
  async removeEntries(
    change: EntryChangeCollector,
    entries: readonly LockedEntry[],
    grant: EntryPermissions,
  ): Promise<void> {
    const { source, executor } = change;
    const hasConditions = Object.keys(grant.conditions).length > 0;
    for (const batch of splitIntoBatches(entries, ({ bytes }) => bytes)) {
      const { entries: maxEntries, bytes: maxBytes } = change.remainingCapacity;
      const listsEntries = batch.length <= maxEntries && batch.reduce((sum, { bytes }) => sum + bytes, 0) <= maxBytes;
      if (hasConditions || listsEntries || change.counts.deleted + batch.length <= BULK_WRITE_THRESHOLD_ENTRIES) {
        for (const [at, before] of (await readEntryData(executor, source, batch)).entries()) {
          if (!meetsColumnConditions(before.data, grant.conditions)) throw createNotFoundError(before.id);
          change.addRemoved(before, batch[at]!.bytes);
        }
      } else {
        change.addCounted({ deleted: batch.length }, -batch.reduce((sum, { bytes }) => sum + bytes, 0));
      }
      await deleteEntriesById(
        executor,
        source,
        batch.map(({ id }) => id),
      );
    }
  }

  /**
   * Writes all parts of a commit. If one part fails, writes nothing.
   * @throws the errors of inserts, updates and removals
   */
  async commit(
    rights: CallerEntryRights,
    source: StoredDataSource,
    commit: ParsedEntryCommit,
  ): Promise<EntryCommitResult> {
    const { changes, receivedDataLimiter } = this.options;
    const validated = await validateCommit(rights, source, commit);
    receivedDataLimiter.countRows(
      rights.writer.emitter,
      source.appId,
      validated.totalBytes,
      commit.inserts.length + commit.updates.length,
    );
    return changes.commit(
      source,
      rights.writer,
      async (change) => {
        const { entries } = await this.applyCommit(change, rights, commit, validated);
        return commit.returnEntries ? { entries } : { ...change.counts };
      },
      listMessageVerbs(commit),
    );
  }
}

function listMessageVerbs({ inserts: insertedEntries, updates, runHooks }: ParsedEntryCommit): HookVerb[] {
  const done = { insert: insertedEntries.length > 0, update: updates.length > 0 };
  return runHooks.filter((verb) => done[verb]);
}

interface ValidatedCommit {
  grants: CommitGrants;
  inserts: StorableEntry[];
  updates: Map<number, EntryData>;
  totalBytes: number;
}

function pickInaccessibleColumns(grant: EntryPermissions, data: EntryData): EntryData {
  return Object.fromEntries(Object.entries(data).filter(([column]) => !grant.mayAccessColumn(column)));
}
