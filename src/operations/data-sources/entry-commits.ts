/** Inserts, changes and removes many entries in one transaction: by a commit, or all that match a `where` (contract, packages). */
import { ActionError } from "../../errors.js";
import { BULK_ENTRIES } from "../../limits.js";
import { meetsTests } from "../../rules/caller-rules.js";
import { accessDenied, type EntryGrant, mayNameById } from "../../rules/entries/entry-access.js";
import type { CommitInput, EntryData } from "../../rules/entries/entry-input.js";
import type { HookVerb } from "../../rules/entries/sending-hooks.js";
import { hashTurn } from "../records/hashes.js";
import type { IntakeLimiter } from "../records/intake.js";
import { type StoredDataSource, shareWholeSource } from "./data-source-rows.js";
import type { Entry } from "./entry.js";
import type { EntryChange, EntryChanges } from "./entry-changes.js";
import { createEntryValidator, type ReadyEntry, toReadyEntry } from "./entry-judgement.js";
import type { Rights } from "./entry-rights.js";
import {
  dataOf,
  insertTexts,
  type LockedEntry,
  lockEntries,
  removeEntries,
  removeEntriesExcept,
  splitIntoBatches,
  updateTexts,
} from "./entry-statements.js";
import type { EntryVersions } from "./entry-versions.js";
import { replacementData, requireUnchangedEntry, viewFor } from "./entry-writes.js";

/** Response to a commit: the written entries, or their number. */
export type CommitResult = { entries: Entry[] } | { inserted: number; updated: number; deleted: number };

/** Bytes of entries that are validated without a pause, which takes some milliseconds. */
const JUDGED_AT_ONCE_BYTES = 256 * 1024;
const nextEventLoopTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Maximum JSON bytes of entries in the response to a commit. If they are larger, the response has only their number. */
const RETURNED_MAX_BYTES = 8 * 1024 * 1024;

interface CommitGrants {
  insert: EntryGrant | null;
  update: EntryGrant | null;
  delete: EntryGrant | null;
}

/** Checks exactly the rights that the commit needs. @throws DATA_SOURCE_ACCESS_DENIED */
function grantsOf(rights: Rights, source: StoredDataSource, commit: CommitInput): CommitGrants {
  const hasRemovals = commit.deletes.length > 0 || !commit.append;
  const commitGrants = {
    insert: commit.inserts.length > 0 ? rights.grant(source, "insert") : null,
    update: commit.updates.length > 0 ? rights.grant(source, "update") : null,
    delete: hasRemovals ? rights.grant(source, "delete") : null,
  };
  // An empty commit must not reveal whether the data source exists.
  if (!commitGrants.insert && !commitGrants.update && !commitGrants.delete) rights.grant(source, "insert");
  if (commitGrants.delete) refuseUnnamed(commitGrants.delete, commit.append);
  return commitGrants;
}

/**
 * Rejects a removal without `where` if the access rule requires columns in it: such a removal would remove entries that the rule does not
 * grant.
 * @throws ActionError DATA_SOURCE_ACCESS_DENIED
 */
function refuseUnnamed(grant: EntryGrant, append: boolean): void {
  if (!mayNameById(grant) || (!append && Object.keys(grant.tests).length > 0)) throw accessDenied();
}

/** Throws the same error for missing IDs and for IDs that the rule hides from the caller. */
function requireAllFound(lockedEntries: ReadonlyMap<number, LockedEntry>, ids: readonly number[]): void {
  const missingId = ids.find((id) => !lockedEntries.has(id));
  if (missingId !== undefined) throw new ActionError("ENTRY_NOT_FOUND", `no entry ${missingId}`);
}

export type EntryCommits = ReturnType<typeof createEntryCommits>;

export function createEntryCommits(options: { changes: EntryChanges; intake: IntakeLimiter; versions: EntryVersions }) {
  const { changes, intake, versions } = options;

  /** Collects entries for the response, up to a limit. */
  function createReturned(rights: Rights, source: StoredDataSource, isWanted: boolean) {
    const entries: Entry[] = [];
    let bytes = 0;
    return {
      entries,
      add(entry: Parameters<typeof viewFor>[2], text: string, dataToWrite: readonly string[]) {
        if (!isWanted) return;
        bytes += text.length;
        if (bytes > RETURNED_MAX_BYTES) {
          const message = `a commit gives back ${RETURNED_MAX_BYTES} bytes at most: leave returnEntries out`;
          throw new ActionError("REQUEST_INVALID", message);
        }
        entries.push(viewFor(rights, source, entry, dataToWrite));
      },
    };
  }

  type ReturnedEntries = ReturnType<typeof createReturned>;

  async function insertAll(
    change: EntryChange,
    newEntries: readonly ReadyEntry[],
    input: readonly EntryData[],
    returnedEntries: ReturnedEntries,
  ) {
    const entryTexts = newEntries.map(({ text }) => text);
    const stored = await insertTexts(change.executor, change.source, entryTexts);
    for (const [at, { data, text }] of newEntries.entries()) {
      change.addInserted(stored[at]!.id, data, Buffer.byteLength(text));
      returnedEntries.add({ ...stored[at]!, data }, text, Object.keys(input[at]!));
    }
  }

  async function updateAll(
    change: EntryChange,
    { rights, grant, commit }: { rights: Rights; grant: EntryGrant; commit: CommitInput },
    judged: ReadonlyMap<number, EntryData>,
    lockedEntries: ReadonlyMap<number, LockedEntry>,
    returnedEntries: ReturnedEntries,
  ): Promise<void> {
    const { source, executor } = change;
    const updatesById = new Map(commit.updates.map((update) => [update.id, update]));
    const entries = [...updatesById.keys()].map((id) => lockedEntries.get(id)!).sort((a, b) => a.id - b.id);
    for (const batch of splitIntoBatches(entries, ({ bytes }) => bytes)) {
      const entryTexts: { id: number; text: string; done: (updatedAt: Date) => void }[] = [];
      for (const before of await dataOf(executor, source, batch)) {
        const { data: input, precondition } = updatesById.get(before.id)!;
        if (!meetsTests(before.data, grant.tests)) throw new ActionError("ENTRY_NOT_FOUND", `no entry ${before.id}`);
        requireUnchangedEntry(rights, source, before, precondition);
        const dataToWrite = judged.get(before.id)!;
        const wholeData = commit.extend
          ? { ...before.data, ...dataToWrite }
          : replacementData(source, before.data, dataToWrite);
        // Columns that the caller cannot see keep their values.
        const mergedData = commit.extend ? wholeData : { ...hiddenFrom(grant, before.data), ...wholeData };
        const { data, text } = toReadyEntry(mergedData, `entry ${before.id}`);
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
      const updateTimes = await updateTexts(executor, source, entryTexts);
      for (const { id, done } of entryTexts) done(updateTimes.get(id)!);
    }
  }

  /** Removes locked entries. Returns their data if subscribers receive each entry. */
  async function removeAll(change: EntryChange, entries: readonly LockedEntry[], grant: EntryGrant): Promise<void> {
    const { source, executor } = change;
    const hasTests = Object.keys(grant.tests).length > 0;
    for (const batch of splitIntoBatches(entries, ({ bytes }) => bytes)) {
      const { entries: most, bytes: mostBytes } = change.room;
      const isSentByEntry = batch.length <= most && batch.reduce((sum, { bytes }) => sum + bytes, 0) <= mostBytes;
      if (hasTests || isSentByEntry || change.counts.deleted + batch.length <= BULK_ENTRIES) {
        for (const [at, before] of (await dataOf(executor, source, batch)).entries()) {
          if (!meetsTests(before.data, grant.tests)) throw new ActionError("ENTRY_NOT_FOUND", `no entry ${before.id}`);
          change.addRemoved(before, batch[at]!.bytes);
        }
      } else {
        change.addCounted({ deleted: batch.length }, -batch.reduce((sum, { bytes }) => sum + bytes, 0));
      }
      await removeEntries(
        executor,
        source,
        batch.map(({ id }) => id),
      );
    }
  }

  async function applyCommit(
    change: EntryChange,
    rights: Rights,
    commit: CommitInput,
    judged: ValidatedCommit,
  ): Promise<ReturnedEntries> {
    const { source, executor } = change;
    const { grants: commitGrants, inserts: insertedEntries, updates } = judged;
    const returnedEntries = createReturned(rights, source, commit.returnEntries);
    const namedIds = [...commit.updates.map(({ id }) => id), ...commit.deletes];
    if (!commit.append) {
      await shareWholeSource(executor, source.appId, source.id);
      await versions.snapshot(change, rights.writer, "commit");
      // This also locks the named entries, so that all entries are locked in the order of their IDs.
      change.addGone(await removeEntriesExcept(executor, source, namedIds, change.room));
    }
    const lockedEntries = await lockEntries(executor, source, namedIds);
    requireAllFound(lockedEntries, namedIds);
    if (commitGrants.delete)
      await removeAll(
        change,
        commit.deletes.map((id) => lockedEntries.get(id)!).sort((a, b) => a.id - b.id),
        commitGrants.delete,
      );
    if (commitGrants.update)
      await updateAll(change, { rights, grant: commitGrants.update, commit }, updates, lockedEntries, returnedEntries);
    await insertAll(change, insertedEntries, commit.inserts, returnedEntries);
    return returnedEntries;
  }

  async function validateCommit(
    rights: Rights,
    source: StoredDataSource,
    commit: CommitInput,
  ): Promise<ValidatedCommit> {
    const commitGrants = grantsOf(rights, source, commit);
    const { trusted } = rights.as;
    const insertedEntries: ReadyEntry[] = [];
    const updates = new Map<number, EntryData>();
    const turn = hashTurn(source.appId, rights.writer.emitter);
    const validateInsert =
      commitGrants.insert && createEntryValidator(source, "insert", { grant: commitGrants.insert, trusted, turn });
    const validateUpdate =
      commitGrants.update && createEntryValidator(source, "update", { grant: commitGrants.update, trusted, turn });
    let bytes = 0;
    let untilPause = JUDGED_AT_ONCE_BYTES;
    const count = async ({ text }: ReadyEntry) => {
      bytes += Buffer.byteLength(text);
      untilPause -= text.length;
      if (untilPause > 0) return;
      untilPause = JUDGED_AT_ONCE_BYTES;
      await nextEventLoopTurn();
    };
    for (const [at, data] of commit.inserts.entries()) {
      const judged = await validateInsert!(data, `entry ${at + 1} to insert`);
      insertedEntries.push(judged);
      await count(judged);
    }
    for (const { id, data } of commit.updates) {
      const judged = await validateUpdate!(data, `entry ${id}`);
      updates.set(id, judged.data);
      await count(judged);
    }
    return { grants: commitGrants, inserts: insertedEntries, updates, bytes };
  }

  return {
    removeAll,

    /** Writes a commit completely, or nothing if any part fails. @throws as an insert, an update and a removal */
    async commit(rights: Rights, source: StoredDataSource, commit: CommitInput): Promise<CommitResult> {
      const judged = await validateCommit(rights, source, commit);
      intake.takeRows(rights.writer.emitter, source.appId, judged.bytes, commit.inserts.length + commit.updates.length);
      return changes.commit(
        source,
        rights.writer,
        async (change) => {
          const { entries } = await applyCommit(change, rights, commit, judged);
          return commit.returnEntries ? { entries } : { ...change.counts };
        },
        sendsOf(commit),
      );
    },
  };
}

/** Returns the operations whose hooks send messages: those that the request selects and the commit contains. */
function sendsOf({ inserts: insertedEntries, updates, runHooks }: CommitInput): HookVerb[] {
  const done = { insert: insertedEntries.length > 0, update: updates.length > 0 };
  return runHooks.filter((verb) => done[verb]);
}

interface ValidatedCommit {
  grants: CommitGrants;
  inserts: ReadyEntry[];
  updates: Map<number, EntryData>;
  /** Size of all entries as JSON. */
  bytes: number;
}

/** Returns the columns that the writer's rule hides from the writer. */
function hiddenFrom(grant: EntryGrant, data: EntryData): EntryData {
  return Object.fromEntries(Object.entries(data).filter(([column]) => !grant.mayTouch(column)));
}
