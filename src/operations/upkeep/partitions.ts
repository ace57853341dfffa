/**
 * Creates and drops partitions of the tables of logs, runs and the audit log. A partition contains about one day's rows, and is dropped
 * when all of them are too old. The last partition has no upper bound, so that every row has a partition.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { EntityManager } from "typeorm";
import { type Db, isDeadlock, isLockTimeout, rows } from "../../data/database.js";
import { listPartitions, type Partition } from "../../data/partitions.js";

/** Minimum number of row IDs in a partition. A statement without an ID searches all partitions, so too many would be slow. */
const PARTITION_IDS_MIN = 100_000;
const PARTITION_IDS_MAX = 50_000_000;
/** Number of empty partitions after the one to which rows are added now. */
const PARTITIONS_AHEAD = 2;
const DAY_MS = 86_400_000;
/**
 * Maximum wait for a lock in milliseconds, short because other statements wait behind it. All waits of an attempt must stay below one
 * second: then PostgreSQL looks for deadlocks, and could cancel a request.
 */
const LOCK_TIMEOUT_MS = 30;
const LOCK_ATTEMPTS_MAX = 60;
/** Maximum of the random pause between two attempts. */
const ATTEMPT_PAUSE_MAX_MS = 300;
/**
 * Maximum number of partitions that one transaction detaches. Detaching thirty takes 140 ms, and every connection then plans its statements
 * again: smaller groups cost the other connections far more.
 */
const DETACHED_PER_TRANSACTION_MAX = 30;
/** Milliseconds between two transactions that detach partitions. */
const DETACH_PAUSE_MS = 100;
/** Milliseconds of pause after each dropped table. A drop takes about as long, so other statements run undisturbed half of the time. */
const DROP_PAUSE_MS = 25;
/** Prefix of partitions that were detached but not yet dropped. No other table has it, and backups skip these tables. */
const DETACHED_PREFIX = "DROPPED_";
/** Key of the advisory lock for changes of partitions by one process at a time. The number has no meaning. */
const PARTITION_LOCK_KEY = 7_203_114_285_024;

/** Tables whose partitions have the same bounds: rows of further tables belong to rows of the first one, and have the same IDs. */
interface PartitionFamily {
  tables: readonly [head: string, ...others: string[]];
  /** Column with the time at which a row was written. */
  timeColumn: string;
  /**
   * Additional days for which rows are stored because others refer to them. For example, a log entry refers to the payload in its run's
   * row.
   */
  extraRetentionDays: number;
  /** SQL condition for rows that are in use, and so stay however old they are. */
  busyCondition?: string;
}

/** Partitions are dropped in this order: each table after the tables whose rows refer to it. Entries of the audit log do not expire. */
const PARTITION_FAMILIES: readonly (PartitionFamily & { dropped: boolean })[] = [
  { tables: ["execution_log"], timeColumn: "created_at", extraRetentionDays: 0, dropped: true },
  {
    tables: ["run", "console_line", "run_search"],
    timeColumn: "queued_at",
    extraRetentionDays: 1,
    busyCondition: "finished_at IS NULL",
    dropped: true,
  },
  { tables: ["log_event"], timeColumn: "created_at", extraRetentionDays: 1, dropped: true },
  { tables: ["audit_entry"], timeColumn: "created_at", extraRetentionDays: 0, dropped: false },
];

/* Selects detached partitions that are not dropped yet. $1 is the prefix of their names. */
const SELECT_DETACHED = `
  SELECT relname AS name FROM pg_class
   WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND NOT relispartition AND starts_with(relname, $1) ORDER BY oid`;

/** Returns false if `error` means that a lock was not available in time. Throws all other errors again. */
function falseIfLockTimeout(error: unknown): false {
  if (isLockTimeout(error) || isDeadlock(error)) return false;
  throw error;
}

export class Partitions {
  constructor(private readonly options: { db: Db; days: number }) {}

  /**
   * Runs `work` in a transaction with a short wait for locks, in one process at a time. Repeats it without locks; returns false if all
   * attempts failed.
   */
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
        const [lock] = await rows<{ mine: boolean }>(manager, "SELECT pg_try_advisory_xact_lock($1) AS mine", [
          PARTITION_LOCK_KEY,
        ]);
        if (!lock!.mine) return false;
        await manager.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await work(manager);
        return true;
      });
    } catch (error) {
      return falseIfLockTimeout(error);
    }
  }

  /** Returns how many row IDs the next partition should contain: as many as a day uses, estimated from the rows since `lowerBound`. */
  private async partitionSize(
    { tables: [head], timeColumn }: PartitionFamily,
    lowerBound: number | null,
    last: number,
  ): Promise<number> {
    const sql = `SELECT id, extract(epoch FROM now() - ${timeColumn}) * 1000 AS ms FROM ${head} WHERE id >= $1 ORDER BY id LIMIT 1`;
    const [oldest] = await rows<{ id: number; ms: number }>(this.options.db, sql, [lowerBound ?? 0]);
    const aDay = oldest ? ((last - oldest.id) * DAY_MS) / Math.max(Number(oldest.ms), 60_000) : 0;
    return Math.min(
      PARTITION_IDS_MAX,
      Math.max(PARTITION_IDS_MIN, Math.ceil(aDay / PARTITION_IDS_MIN) * PARTITION_IDS_MIN),
    );
  }

  /**
   * Ends the last partition of each table, which is usually empty, at `until`, and adds a new one. Returns false if no locks were
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

  private async createPartitionsAhead(family: PartitionFamily): Promise<void> {
    const { db } = this.options;
    const [head] = family.tables;
    const [counter] = await rows<{ last: number }>(db, `SELECT last_value AS last FROM ${head}_id_seq`);
    const { last } = counter!;
    for (;;) {
      const all = await listPartitions(db, head);
      const { low: begin } = all.at(-1)!;
      const size = await this.partitionSize(
        family,
        all.find(({ high }) => high === null || high > last)?.low ?? null,
        last,
      );
      if (begin === null || begin - last >= PARTITIONS_AHEAD * size) return;
      if (!(await this.extendFamily(family, Math.max(begin, last + 1) + size))) return;
    }
  }

  /** True if all rows of a partition are older than `olderDays` days and none of them is in use. */
  private async isOlder(
    { timeColumn, busyCondition }: PartitionFamily,
    name: string,
    olderDays: number,
  ): Promise<boolean> {
    const newestTime = `(SELECT ${timeColumn} FROM ${name} ORDER BY id DESC LIMIT 1)`;
    const isFreeCondition = busyCondition ? `NOT EXISTS (SELECT FROM ${name} WHERE ${busyCondition})` : "true";
    const sql = `SELECT coalesce(${newestTime} < now() - $1 * interval '1 day', true) AND ${isFreeCondition} AS older`;
    return (await rows<{ older: boolean }>(this.options.db, sql, [olderDays]))[0]!.older;
  }

  /**
   * Detaches the partitions with IDs below `below`, so that no statement reads them. Other statements wait only for this step, not for the
   * drop. Returns false if the locks were not available.
   */
  private async detachBelow({ tables }: PartitionFamily, below: number): Promise<boolean> {
    return this.runExclusively(async (manager) => {
      const leavingPartitions: { table: string; name: string }[] = [];
      for (const table of tables) {
        for (const { name, high } of await listPartitions(manager, table)) {
          if (high !== null && high <= below) leavingPartitions.push({ table, name });
        }
      }
      if (leavingPartitions.length === 0) return;
      const lockedTables = [...tables.map((table) => `ONLY ${table}`), ...leavingPartitions.map(({ name }) => name)];
      await manager.query(
        [
          // Takes all locks first, so that no work is lost if a lock is not available.
          `LOCK TABLE ${lockedTables.join(", ")} IN ACCESS EXCLUSIVE MODE`,
          ...leavingPartitions.map(({ table, name }) => `ALTER TABLE ${table} DETACH PARTITION ${name}`),
          ...leavingPartitions.map(({ name }) => `ALTER TABLE ${name} RENAME TO "${DETACHED_PREFIX}${name}"`),
        ].join(";"),
      );
    });
  }

  /** Drops detached partitions, also those of a crashed process. A later call drops a partition that a backup is reading. */
  private async dropDetached(): Promise<void> {
    const { db } = this.options;
    for (const { name } of await rows<{ name: string }>(db, SELECT_DETACHED, [DETACHED_PREFIX])) {
      // One message is one transaction. Two transactions would slow concurrent runs twice as much.
      await db
        .query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; DROP TABLE IF EXISTS "${name}"`)
        .catch(falseIfLockTimeout);
      await delay(DROP_PAUSE_MS);
    }
  }

  /** Returns the oldest partitions, up to the first with a row that is newer than `olderDays` days, or to which rows may still be added. */
  private async oldPartitions(family: PartitionFamily, olderDays: number): Promise<(Partition & { high: number })[]> {
    const { db } = this.options;
    const [head] = family.tables;
    const [counter] = await rows<{ last: number }>(db, `SELECT last_value AS last FROM ${head}_id_seq`);
    const old: (Partition & { high: number })[] = [];
    for (const { name, low, high } of await listPartitions(db, head)) {
      if (high === null || high > counter!.last || !(await this.isOlder(family, name, olderDays))) break;
      old.push({ name, low, high });
    }
    return old;
  }

  /** Creates partitions before rows for them exist. Call this method every minute. */
  async makeAhead(): Promise<void> {
    for (const family of PARTITION_FAMILIES) await this.createPartitionsAhead(family);
  }

  /** Drops the partitions whose rows are all too old. Returns their number. */
  async dropOld(): Promise<number> {
    await this.dropDetached();
    let droppedCount = 0;
    for (const family of PARTITION_FAMILIES) {
      if (!family.dropped) continue;
      const old = await this.oldPartitions(family, this.options.days + family.extraRetentionDays);
      for (let from = 0; from < old.length; from += DETACHED_PER_TRANSACTION_MAX) {
        const someTables = old.slice(from, from + DETACHED_PER_TRANSACTION_MAX);
        if (!(await this.detachBelow(family, someTables.at(-1)!.high))) break;
        droppedCount += someTables.length;
        await this.dropDetached();
        await delay(DETACH_PAUSE_MS);
      }
    }
    return droppedCount;
  }

  /**
   * Returns the ID below which all rows are in partitions that will be dropped within about a day, so that no statement must delete these
   * rows.
   */
  async endOfExpiringPartitions(table: string): Promise<number> {
    const family = PARTITION_FAMILIES.find(({ tables }) => tables[0] === table)!;
    // Selects partitions whose newest row will be too old within 1.1 days.
    const old = await this.oldPartitions(family, this.options.days + family.extraRetentionDays - 1.1);
    return old.at(-1)?.high ?? Number.MIN_SAFE_INTEGER;
  }
}
