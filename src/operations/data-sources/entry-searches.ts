/**
 * Finds, aggregates and removes the entries that match a `where`. Each SQL statement also contains the conditions of
 * the caller's access rule.
 */
import { isDatabaseUnavailable, isInvalidDataError, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { BULK_WRITE_THRESHOLD_ENTRIES, ENTRY_QUERY_TIMEOUT_MS } from "../../limits.js";
import { isObject } from "../../rules/describe-value.js";
import { type SeparatedWhere, separateHashedConditions } from "../../rules/entries/hashed-where.js";
import type { JoinOptions, VisibleEntryScope } from "../../rules/entry-query/options.js";
import { SqlStatement } from "../../rules/entry-query/statement.js";
import type { ReserveResponseBytes } from "../../rules/page.js";
import { createHashQueueKey, matchesHash } from "../records/hashes.js";
import { type DataSourceRows, lockEntryReplacementShared, type StoredDataSource } from "./data-source-rows.js";
import type { DataSourceSnapshots } from "./data-source-snapshots.js";
import type { EntryChangeCollector, EntryChangeTransactions } from "./entry-changes.js";
import type { EntryCommits } from "./entry-commits.js";
import type { EntryReadAccess, EntryReader, FindEntriesResult } from "./entry-reads.js";
import type { CallerEntryRights } from "./entry-rights.js";
import { entryConditionSql } from "./entry-rows.js";
import { lockEntries } from "./entry-statements.js";
import type { ReadRows } from "./read-pool.js";
import type { RecentQueries } from "./recent-queries.js";
import type { AppUserSignInAttempts } from "./sign-in-attempts.js";

/** Maximum number of entries whose hashed columns one query compares, because each comparison takes 30 ms. */
const MAX_COMPARED_ENTRIES = 20;
const REMOVED_PER_STATEMENT = 5_000;

/** Returns REQUEST_INVALID if a removal failed because its query was too slow or had an invalid value. Returns other errors unchanged. */
function toRemovalError(error: unknown): unknown {
  const isTimeout =
    isDatabaseUnavailable(error) &&
    (error as { code?: string; driverError?: { code?: string } }).driverError?.code === "57014";
  if (isTimeout)
    return new ActionError(
      "REQUEST_INVALID",
      `the query took longer than ${ENTRY_QUERY_TIMEOUT_MS / 1000} s; select fewer entries in "where", or add an index on its columns`,
    );
  return isInvalidDataError(error)
    ? new ActionError(
        "REQUEST_INVALID",
        'the database cannot evaluate a value in "where", for example a number that is too large',
      )
    : error;
}

interface EntrySearchesOptions {
  read: ReadRows;
  sources: DataSourceRows;
  entryReader: EntryReader;
  changes: EntryChangeTransactions;
  commits: Pick<EntryCommits, "removeEntries">;
  snapshots: DataSourceSnapshots;
  attempts: AppUserSignInAttempts;
  recentQueries: Pick<RecentQueries, "record">;
}

export class EntrySearches {
  constructor(private readonly options: EntrySearchesOptions) {}

  /** Returns the IDs of the entries whose hashed columns have the values in `where`, and which match its other conditions. */
  private async compareHashes(
    rights: CallerEntryRights,
    source: StoredDataSource,
    scope: VisibleEntryScope,
    where: SeparatedWhere,
  ): Promise<number[]> {
    const { read, attempts } = this.options;
    const statement = new SqlStatement();
    const condition = entryConditionSql(source, { scope, where: where.whereWithoutHashed }, statement, "e");
    const columns = statement.bind(
      where.hashedComparisons.map(([column]) => column),
      "text[]",
    );
    const sql = `SELECT e.id, ARRAY(SELECT e.doc ->> name FROM unnest(${columns}) AS name) AS stored
      FROM data_source_entry e WHERE ${condition} ORDER BY e."order", e.id LIMIT ${MAX_COMPARED_ENTRIES + 1}`;
    const candidateRows = await read<{ id: number; stored: (string | null)[] }>(source.appId, sql, statement.values);
    if (candidateRows.length > MAX_COMPARED_ENTRIES) {
      const message =
        `a hashed column can be compared with at most ${MAX_COMPARED_ENTRIES} entries; ` +
        'add a condition on another column to "where"';
      throw new ActionError("REQUEST_INVALID", message);
    }
    const ids: number[] = [];
    const queueKey = createHashQueueKey(source.appId, rights.writer.emitter);
    const compareAll = async () => {
      for (const { id, stored } of candidateRows.length > 0 ? candidateRows : [{ id: 0, stored: [] as null[] }]) {
        const hashMatches: boolean[] = [];
        for (const [at, [, text]] of where.hashedComparisons.entries())
          hashMatches.push(await matchesHash(text, stored[at], queueKey));
        if (hashMatches.every(Boolean)) ids.push(id);
      }
      return ids.length > 0;
    };
    // Callers that are not trusted could guess passwords with such queries. So their failed comparisons are limited like failed sign-ins.
    if (rights.caller.isTrusted) await compareAll();
    else {
      const guessedSubjects =
        candidateRows.length > 0
          ? candidateRows.map(({ id }) => [source.id, id])
          : [[source.id, where.whereWithoutHashed]];
      await attempts.runCountedAttempt(source.appId, guessedSubjects, rights.writer.emitter, compareAll);
    }
    return ids;
  }

  /**
   * Returns `where` unchanged if it has no conditions on hashed columns. Otherwise compares the hashes, and returns the other conditions
   * with the IDs of the entries that meet all conditions.
   */
  private async narrowWhere(
    rights: CallerEntryRights,
    source: StoredDataSource,
    scope: VisibleEntryScope,
    where: unknown,
  ) {
    const splitWhere = separateHashedConditions(where, source.hashedColumns);
    if (!splitWhere) return { where };
    return { where: splitWhere.whereWithoutHashed, ids: await this.compareHashes(rights, source, scope, splitWhere) };
  }

  private createReadAccess(
    rights: CallerEntryRights,
    source: StoredDataSource,
    scope: VisibleEntryScope,
    ids: number[] | undefined,
  ): EntryReadAccess<StoredDataSource> {
    const findJoinedSource = (dataSource: JoinOptions["dataSource"]) =>
      this.options.sources.find(source.appId, dataSource).catch((error: unknown) => {
        throw rights.caller.isTrusted ? error : rights.createAccessError();
      });
    return {
      scope,
      ...(ids && { ids }),
      findJoinedSource,
      resolveScope: (of, where) => rights.createReadScope(of, where),
    };
  }

  /** Removes the matching entries in batches. Takes a snapshot first if there are more than BULK_WRITE_THRESHOLD_ENTRIES. */
  private async removeMatching(
    change: EntryChangeCollector,
    rights: CallerEntryRights,
    scope: VisibleEntryScope,
    narrowedWhere: { where: unknown; ids?: number[] },
  ) {
    const { commits, snapshots } = this.options;
    const { source, executor } = change;
    const grant = rights.requirePermissions(source, "delete");
    let isFirst = true;
    await lockEntryReplacementShared(executor, source.appId, source.id);
    for (;;) {
      const statement = new SqlStatement();
      const condition = entryConditionSql(source, { scope, ...narrowedWhere }, statement, "e");
      const sql = `SELECT e.id FROM data_source_entry e WHERE ${condition} ORDER BY e.id LIMIT ${REMOVED_PER_STATEMENT}`;
      await rows(executor, `SET LOCAL statement_timeout = ${ENTRY_QUERY_TIMEOUT_MS}`);
      const ids = (await rows<{ id: number }>(executor, sql, statement.values)).map(({ id }) => id);
      await rows(executor, "SET LOCAL statement_timeout = DEFAULT");
      if (ids.length === 0) return;
      if (isFirst && ids.length > BULK_WRITE_THRESHOLD_ENTRIES)
        await snapshots.snapshot(change, rights.writer, "delete");
      isFirst = false;
      const locked = await lockEntries(executor, source, ids);
      // Another transaction may have changed entries before they were locked, so the conditions are evaluated again.
      const secondStatement = new SqlStatement();
      const secondCondition = entryConditionSql(
        source,
        { scope, where: narrowedWhere.where, ids: [...locked.keys()] },
        secondStatement,
        "e",
      );
      const matching = await rows<{ id: number }>(
        executor,
        `SELECT e.id FROM data_source_entry e WHERE ${secondCondition} ORDER BY e.id`,
        secondStatement.values,
      );
      await commits.removeEntries(
        change,
        matching.map(({ id }) => locked.get(id)!),
        grant,
      );
      if (ids.length < REMOVED_PER_STATEMENT) return;
    }
  }

  /**
   * Returns the entries that match a query, or the result of its aggregate functions.
   * @throws DATA_SOURCE_ACCESS_DENIED, REQUEST_INVALID, RATE_LIMIT_EXCEEDED, OVERLOADED
   */
  async find(
    rights: CallerEntryRights,
    source: StoredDataSource,
    query: unknown,
    reserve?: ReserveResponseBytes,
  ): Promise<FindEntriesResult> {
    const { entryReader, recentQueries } = this.options;
    const input = isObject(query) ? query["where"] : undefined;
    const scope = rights.createReadScope(source, input);
    const { where, ids } = await this.narrowWhere(rights, source, scope, input);
    const access = { ...this.createReadAccess(rights, source, scope, ids), ...(reserve && { reserve }) };
    const startedAtMs = performance.now();
    const elapsedMs = () => performance.now() - startedAtMs;
    try {
      const foundEntries = await entryReader.find(
        source,
        isObject(query) && input !== undefined ? { ...query, where } : query,
        access,
      );
      recentQueries.record(source, query, elapsedMs());
      return foundEntries;
    } catch (error) {
      // A query that exceeded its time limit is recorded too, because an index might make it faster.
      if (error instanceof ActionError && elapsedMs() >= ENTRY_QUERY_TIMEOUT_MS)
        recentQueries.record(source, query, elapsedMs());
      throw error;
    }
  }

  async distinct(rights: CallerEntryRights, source: StoredDataSource, columns: readonly string[]) {
    return this.options.entryReader.distinct(source, columns, rights.createReadScope(source, null));
  }

  async remove(rights: CallerEntryRights, source: StoredDataSource, input: unknown): Promise<{ deletedCount: number }> {
    const scope = rights.createRemovalScope(source, input);
    const narrowedWhere = await this.narrowWhere(rights, source, scope, input);
    return this.options.changes.commit(source, rights.writer, async (change) => {
      await this.removeMatching(change, rights, scope, narrowedWhere).catch((error: unknown) => {
        throw toRemovalError(error);
      });
      return { deletedCount: change.counts.deleted };
    });
  }
}
