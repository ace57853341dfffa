/**
 * Creates and drops partitions of the tables of logs, runs and the audit log. A partition contains about one day's rows. The last partition
 * has no upper bound, so that every new row has a partition.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { EntityManager } from "typeorm";
import { type Db, isDeadlock, isLockTimeout, rows } from "../../data/database.js";
import { listPartitions, type Partition } from "../../data/partitions.js";

/** Minimum number of row IDs in a partition. A statement without an ID searches all partitions, so too many partitions would be slow. */
const PARTITION_IDS_MIN = 100_000;
const PARTITION_IDS_MAX = 50_000_000;
/** Number of empty partitions after the partition to which rows are added now. */
const PARTITIONS_AHEAD = 2;
const DAY_MS = 86_400_000;
/**
 * Maximum wait for a lock. It is short, because other statements wait behind this statement. It is also shorter than the second after which
 * PostgreSQL detects a deadlock.
 */
const LOCK_TIMEOUT_MS = 30;
const LOCK_ATTEMPTS_MAX = 60;
/** Maximum of the random pause between two attempts. */
const ATTEMPT_PAUSE_MAX_MS = 300;
/**
 * Maximum partitions of each table that one transaction detaches. After each transaction, all connections plan their statements again, so a
 * high maximum saves work.
 */
const DETACHED_PER_TRANSACTION_MAX = 30;
const DETACH_PAUSE_MS = 100;
/** Pause after each dropped table, so that other statements run undisturbed. */
const DROP_PAUSE_MS = 25;
/** Prefix of partitions that were detached but not dropped yet. Backups skip tables with this prefix. */
const DETACHED_PREFIX = "DROPPED_";
/** Key of the advisory lock with which one process at a time changes partitions. The number has no meaning. */
const PARTITION_LOCK_KEY = 7_203_114_285_024;

/** Tables whose partitions have the same bounds, because rows of `others` belong to the row of `head` with the same ID. */
interface PartitionFamily {
  tables: readonly [head: string, ...others: string[]];
  /** Column with the time at which a row was written. */
  timeColumn: string;
  /** Additional days until rows are dropped, because other rows refer to them. For example, a log entry refers to its run's payload. */
  extraRetentionDays: number;
  /** SQL condition for rows in use, whose partition must not be dropped. */
  busyCondition?: string;
}

/** Partitions are dropped in this order: each table after the tables whose rows refer to it. */
const PARTITION_FAMILIES: readonly (PartitionFamily & { isDropped: boolean })[] = [
  { tables: ["execution_log"], timeColumn: "created_at", extraRetentionDays: 0, isDropped: true },
  {
    tables: ["run", "console_line", "run_search"],
    timeColumn: "queued_at",
    extraRetentionDays: 1,
    busyCondition: "finished_at IS NULL",
    isDropped: true,
  },
  { tables: ["log_event"], timeColumn: "created_at", extraRetentionDays: 1, isDropped: true },
  { tables: ["audit_entry"], timeColumn: "created_at", extraRetentionDays: 0, isDropped: false },
];

const SELECT_DETACHED = `
  SELECT relname AS name FROM pg_class
   WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND NOT relispartition AND starts_with(relname, $1) ORDER BY oid`;

/** Returns false if a lock was not available in time, or after a deadlock. Throws all other errors again. */
function returnFalseIfLocked(error: unknown): false {
  if (isLockTimeout(error) || isDeadlock(error)) return false;
  throw error;
}

export class Partitions {
  constructor(private readonly options: { db: Db; days: number }) {}

  /** Runs `work` in one process at a time, with short waits for locks. Returns false if no attempt got all locks. */
  private async runExclusively(work: (manager: EntityManager) => Promise<void>): Promise<boolean> {
    for (let attempt = 1; attempt <= LOCK_ATTEMPTS_MAX; attempt += 1) {
      if (await this.attemptExclusively(work)) return true;
      await delay(ATTEMPT_PAUSE_MAX_MS * Math.random(), undefined, { ref: false });
    }
    return false;
  }

  private async attemptExclusively(work: (manager: EntityManager) => Promise<void>): Promise<boolean> {
    try {
      return await this.options.db.transaction(async (manager) => {
        const [lock] = await rows<{ isLocked: boolean }>(
          manager,
          'SELECT pg_try_advisory_xact_lock($1) AS "isLocked"',
          [PARTITION_LOCK_KEY],
        );
        if (!lock!.isLocked) return false;
        await manager.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await work(manager);
        return true;
      });
    } catch (error) {
      return returnFalseIfLocked(error);
    }
  }

  /** Returns how many row IDs the next partition should contain: as many as a day uses, estimated from the rows since `lowerBound`. */
  private async computePartitionSize(
    { tables: [head], timeColumn }: PartitionFamily,
    lowerBound: number | null,
    last: number,
  ): Promise<number> {
    const sql = `SELECT id, extract(epoch FROM now() - ${timeColumn}) * 1000 AS ms FROM ${head} WHERE id >= $1 ORDER BY id LIMIT 1`;
    const [oldest] = await rows<{ id: number; ms: number }>(this.options.db, sql, [lowerBound ?? 0]);
    const idsPerDay = oldest ? ((last - oldest.id) * DAY_MS) / Math.max(Number(oldest.ms), 60_000) : 0;
    return Math.min(
      PARTITION_IDS_MAX,
      Math.max(PARTITION_IDS_MIN, Math.ceil(idsPerDay / PARTITION_IDS_MIN) * PARTITION_IDS_MIN),
    );
  }

  /**
   * Ends the last partition, which is usually empty, at the ID `until`, and adds a new last partition. Returns false if the locks were not
   * available.
   */
  private async extendFamily({ tables }: PartitionFamily, until: number): Promise<boolean> {
    return this.runExclusively(async (manager) => {
      for (const table of tables) {
        const restTable = `${table}_rest`;
        const lastPartition = (await listPartitions(manager, table)).at(-1)!;
        if (lastPartition.low === null || lastPartition.low >= until) continue;
        await manager.query(`
          ALTER TABLE ${table} DETACH PARTITION ${restTable};
          ALTER TABLE ${restTable} RENAME TO ${table}_p${lastPartition.low};
          ALTER TABLE ${table} ATTACH PARTITION ${table}_p${lastPartition.low} FOR VALUES FROM (${lastPartition.low}) TO (${until});
          CREATE TABLE ${restTable} PARTITION OF ${table} FOR VALUES FROM (${until}) TO (MAXVALUE)`);
      }
    });
  }

  private async createPartitionsOfFamily(family: PartitionFamily): Promise<void> {
    const { db } = this.options;
    const [head] = family.tables;
    const [counter] = await rows<{ last: number }>(db, `SELECT last_value AS last FROM ${head}_id_seq`);
    const { last } = counter!;
    for (;;) {
      const allPartitions = await listPartitions(db, head);
      const { low: lastPartitionStart } = allPartitions.at(-1)!;
      const size = await this.computePartitionSize(
        family,
        allPartitions.find(({ high }) => high === null || high > last)?.low ?? null,
        last,
      );
      if (lastPartitionStart === null || lastPartitionStart - last >= PARTITIONS_AHEAD * size) return;
      if (!(await this.extendFamily(family, Math.max(lastPartitionStart, last + 1) + size))) return;
    }
  }

  /**
   * True if the row with the highest ID in a partition is older than `days` days, and no row of the partition is in use. An empty
   * partition counts as older.
   */
  private async isOlderThanDays(
    { timeColumn, busyCondition }: PartitionFamily,
    name: string,
    days: number,
  ): Promise<boolean> {
    const newestTimeSql = `(SELECT ${timeColumn} FROM ${name} ORDER BY id DESC LIMIT 1)`;
    const isFreeCondition = busyCondition ? `NOT EXISTS (SELECT FROM ${name} WHERE ${busyCondition})` : "true";
    const sql = `SELECT coalesce(${newestTimeSql} < now() - $1 * interval '1 day', true) AND ${isFreeCondition} AS "isOlder"`;
    return (await rows<{ isOlder: boolean }>(this.options.db, sql, [days]))[0]!.isOlder;
  }

  /**
   * Detaches the partitions whose IDs are all below `below`. `dropDetachedPartitions` drops them in a separate step, which takes longer.
   * Returns false if the locks were not available.
   */
  private async detachPartitionsBelow({ tables }: PartitionFamily, below: number): Promise<boolean> {
    return this.runExclusively(async (manager) => {
      const partitionsToDetach: { table: string; name: string }[] = [];
      for (const table of tables) {
        for (const { name, high } of await listPartitions(manager, table)) {
          if (high !== null && high <= below) partitionsToDetach.push({ table, name });
        }
      }
      if (partitionsToDetach.length === 0) return;
      const lockedTables = [...tables.map((table) => `ONLY ${table}`), ...partitionsToDetach.map(({ name }) => name)];
      await manager.query(
        [
          // Takes all locks first, so that no work is lost if a lock is not available.
          `LOCK TABLE ${lockedTables.join(", ")} IN ACCESS EXCLUSIVE MODE`,
          ...partitionsToDetach.map(({ table, name }) => `ALTER TABLE ${table} DETACH PARTITION ${name}`),
          ...partitionsToDetach.map(({ name }) => `ALTER TABLE ${name} RENAME TO "${DETACHED_PREFIX}${name}"`),
        ].join(";"),
      );
    });
  }

  /** Drops detached partitions, also those that a crashed process has detached. Skips partitions that a backup is reading. */
  private async dropDetachedPartitions(): Promise<void> {
    const { db } = this.options;
    for (const { name } of await rows<{ name: string }>(db, SELECT_DETACHED, [DETACHED_PREFIX])) {
      // Both statements are one message and so one transaction, to which `SET LOCAL` applies.
      await db
        .query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; DROP TABLE IF EXISTS "${name}"`)
        .catch(returnFalseIfLocked);
      await delay(DROP_PAUSE_MS);
    }
  }

  /**
   * Returns the oldest partitions whose rows are all older than `days` days and not in use. Stops at the first partition that has
   * other rows, or can still get rows.
   */
  private async listOldPartitions(family: PartitionFamily, days: number): Promise<(Partition & { high: number })[]> {
    const { db } = this.options;
    const [head] = family.tables;
    const [counter] = await rows<{ last: number }>(db, `SELECT last_value AS last FROM ${head}_id_seq`);
    const old: (Partition & { high: number })[] = [];
    for (const { name, low, high } of await listPartitions(db, head)) {
      if (high === null || high > counter!.last || !(await this.isOlderThanDays(family, name, days))) break;
      old.push({ name, low, high });
    }
    return old;
  }

  /** Creates partitions before rows for them exist. Call this method every minute. */
  async createPartitionsAhead(): Promise<void> {
    for (const family of PARTITION_FAMILIES) await this.createPartitionsOfFamily(family);
  }

  /**
   * Drops partitions whose rows are all too old and not in use. Returns the number of detached partitions, without those of the tables
   * `others`.
   */
  async dropOldPartitions(): Promise<number> {
    await this.dropDetachedPartitions();
    let droppedCount = 0;
    for (const family of PARTITION_FAMILIES) {
      if (!family.isDropped) continue;
      const old = await this.listOldPartitions(family, this.options.days + family.extraRetentionDays);
      for (let from = 0; from < old.length; from += DETACHED_PER_TRANSACTION_MAX) {
        const batch = old.slice(from, from + DETACHED_PER_TRANSACTION_MAX);
        if (!(await this.detachPartitionsBelow(family, batch.at(-1)!.high))) break;
        droppedCount += batch.length;
        await this.dropDetachedPartitions();
        await delay(DETACH_PAUSE_MS);
      }
    }
    return droppedCount;
  }

  /** Returns the ID below which all partitions will be dropped within about a day. So other statements need not delete their rows. */
  async findEndOfExpiringPartitions(table: string): Promise<number> {
    const family = PARTITION_FAMILIES.find(({ tables }) => tables[0] === table)!;
    const old = await this.listOldPartitions(family, this.options.days + family.extraRetentionDays - 1.1);
    return old.at(-1)?.high ?? Number.MIN_SAFE_INTEGER;
  }
}
