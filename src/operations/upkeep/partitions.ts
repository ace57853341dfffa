/**
 * Creates and drops partitions of logs, runs and the audit log. A partition holds about one day's rows and is dropped
 * when all of them are too old. The last one has no upper bound, so that each row has a partition.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { DataSource, EntityManager } from "typeorm";
import { isDeadlock, isLockTimeout, rows } from "../../data/database.js";
import { type Partition, partitionsOf } from "../../data/partitions.js";

/** Minimum rows of a partition. There must be few partitions, because a statement without an ID searches each of them. */
const ROWS_MIN = 100_000;
const ROWS_MAX = 50_000_000;
/** Number of empty partitions after the one that receives rows. */
const PARTITIONS_AHEAD = 2;
const DAY_MS = 86_400_000;
/**
 * Maximum wait for a lock. Other statements queue behind a waiting lock, so the wait is short and the whole attempt is
 * repeated. All waits of one attempt together stay under one second, after which PostgreSQL would check for deadlocks
 * and could end a request.
 */
const LOCK_LIMIT_MS = 30;
const ATTEMPTS = 60;
const ATTEMPT_AGAIN_MS = 300;
/**
 * Maximum number of partitions that are detached at once: each time every connection plans its statements again, for all remaining
 * partitions. Thirty at once take a seventh of a second, and ten at a time cost all connections far more.
 */
const DETACHED_AT_ONCE = 30;
const DETACH_PAUSE_MS = 100;
/** Pause between two dropped tables, so that other work has the database to itself for half of the time. */
const DROP_PAUSE_MS = 25;
/** Prefix of the name of a detached partition until it is dropped. No other table has it, and backups leave these tables out. */
const DETACHED_PREFIX = "DROPPED_";
const PARTITION_LOCK = 7_203_114_285_024;

/** Tables that are partitioned alike: the rows of each have the IDs of rows of the first one. */
interface PartitionFamily {
  tables: readonly [head: string, ...others: string[]];
  /** The column with the time at which a row was written. */
  at: string;
  /** Days for which these rows are kept longer than the rows that refer to them, because a log entry's payload is stored with its run. */
  extraDays: number;
  /** Condition for rows that must stay at any age. */
  busy?: string;
}

/** Partition families in the order of dropping: each table comes after those that refer to it. Entries of the audit log do not expire. */
const PARTITION_FAMILIES: readonly (PartitionFamily & { dropped: boolean })[] = [
  { tables: ["execution_log"], at: "created_at", extraDays: 0, dropped: true },
  {
    tables: ["run", "console_line", "run_search"],
    at: "queued_at",
    extraDays: 1,
    busy: "finished_at IS NULL",
    dropped: true,
  },
  { tables: ["log_event"], at: "created_at", extraDays: 1, dropped: true },
  { tables: ["audit_entry"], at: "created_at", extraDays: 0, dropped: false },
];

/* Selects the detached tables. $1 is the prefix of their names. */
const SELECT_DETACHED = `
  SELECT relname AS name FROM pg_class
   WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND NOT relispartition AND starts_with(relname, $1) ORDER BY oid`;

/** Returns false if a lock could not be acquired. Rethrows any other error. */
function falseIfLockTimeout(error: unknown): false {
  if (isLockTimeout(error) || isDeadlock(error)) return false;
  throw error;
}

export type Partitions = ReturnType<typeof createPartitions>;

export function createPartitions({ db, days }: { db: DataSource; days: number }) {
  /** @returns false if locks could not be acquired in any attempt */
  async function runExclusively(work: (manager: EntityManager) => Promise<void>): Promise<boolean> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      if (await attemptExclusively(work)) return true;
      await delay(ATTEMPT_AGAIN_MS * Math.random(), undefined, { ref: false });
    }
    return false;
  }

  async function attemptExclusively(work: (manager: EntityManager) => Promise<void>): Promise<boolean> {
    try {
      return await db.transaction(async (manager) => {
        const [lock] = await rows<{ mine: boolean }>(manager, "SELECT pg_try_advisory_xact_lock($1) AS mine", [
          PARTITION_LOCK,
        ]);
        if (!lock!.mine) return false;
        await manager.query(`SET LOCAL lock_timeout = ${LOCK_LIMIT_MS}`);
        await work(manager);
        return true;
      });
    } catch (error) {
      return falseIfLockTimeout(error);
    }
  }

  /** Returns the rows per day, from the rows written since the last non-empty partition began. */
  async function rowsOfADay(
    { tables: [head], at }: PartitionFamily,
    lowerBound: number | null,
    last: number,
  ): Promise<number> {
    const sql = `SELECT id, extract(epoch FROM now() - ${at}) * 1000 AS ms FROM ${head} WHERE id >= $1 ORDER BY id LIMIT 1`;
    const [oldest] = await rows<{ id: number; ms: number }>(db, sql, [lowerBound ?? 0]);
    const aDay = oldest ? ((last - oldest.id) * DAY_MS) / Math.max(Number(oldest.ms), 60_000) : 0;
    return Math.min(ROWS_MAX, Math.max(ROWS_MIN, Math.ceil(aDay / ROWS_MIN) * ROWS_MIN));
  }

  /** Gives each table's unbounded partition, which is usually empty, an upper bound and adds another after it. */
  async function extendFamily({ tables }: PartitionFamily, until: number): Promise<boolean> {
    return runExclusively(async (manager) => {
      for (const table of tables) {
        const restTable = `${table}_rest`;
        const lastPartition = (await partitionsOf(manager, table)).at(-1)!;
        if (lastPartition.low === null || lastPartition.low >= until) continue;
        await manager.query(`
          ALTER TABLE ${table} DETACH PARTITION ${restTable};
          ALTER TABLE ${restTable} RENAME TO ${table}_p${lastPartition.low};
          ALTER TABLE ${table} ATTACH PARTITION ${table}_p${lastPartition.low} FOR VALUES FROM (${lastPartition.low}) TO (${until});
          CREATE TABLE ${restTable} PARTITION OF ${table} FOR VALUES FROM (${until}) TO (MAXVALUE)`);
      }
    });
  }

  async function createPartitionsAhead(family: PartitionFamily): Promise<void> {
    const [head] = family.tables;
    const [counter] = await rows<{ last: number }>(db, `SELECT last_value AS last FROM ${head}_id_seq`);
    const { last } = counter!;
    for (;;) {
      const all = await partitionsOf(db, head);
      const { low: begin } = all.at(-1)!;
      const size = await rowsOfADay(family, all.find(({ high }) => high === null || high > last)?.low ?? null, last);
      if (begin === null || begin - last >= PARTITIONS_AHEAD * size) return;
      if (!(await extendFamily(family, Math.max(begin, last + 1) + size))) return;
    }
  }

  /** True if all rows of a partition are older than this many days, and none is in use. */
  async function isOlder({ at, busy }: PartitionFamily, name: string, olderDays: number): Promise<boolean> {
    const newestTime = `(SELECT ${at} FROM ${name} ORDER BY id DESC LIMIT 1)`;
    const isFreeCondition = busy ? `NOT EXISTS (SELECT FROM ${name} WHERE ${busy})` : "true";
    const sql = `SELECT coalesce(${newestTime} < now() - $1 * interval '1 day', true) AND ${isFreeCondition} AS older`;
    return (await rows<{ older: boolean }>(db, sql, [olderDays]))[0]!.older;
  }

  /**
   * Detaches partitions from their tables, so that no statement reads them. Other statements wait only for this step,
   * not for the deletion of the files.
   */
  async function detachBelow({ tables }: PartitionFamily, below: number): Promise<boolean> {
    return runExclusively(async (manager) => {
      const leavingPartitions: { table: string; name: string }[] = [];
      for (const table of tables) {
        for (const { name, high } of await partitionsOf(manager, table)) {
          if (high !== null && high <= below) leavingPartitions.push({ table, name });
        }
      }
      if (leavingPartitions.length === 0) return;
      const lockedTables = [...tables.map((table) => `ONLY ${table}`), ...leavingPartitions.map(({ name }) => name)];
      await manager.query(
        [
          // Takes all locks before any work, so that locks of others only cost the wait for them.
          `LOCK TABLE ${lockedTables.join(", ")} IN ACCESS EXCLUSIVE MODE`,
          ...leavingPartitions.map(({ table, name }) => `ALTER TABLE ${table} DETACH PARTITION ${name}`),
          ...leavingPartitions.map(({ name }) => `ALTER TABLE ${name} RENAME TO "${DETACHED_PREFIX}${name}"`),
        ].join(";"),
      );
    });
  }

  /** Drops detached tables, including those that a stopped process left. A table that a backup still reads stays until the next time. */
  async function dropDetached(): Promise<void> {
    for (const { name } of await rows<{ name: string }>(db, SELECT_DETACHED, [DETACHED_PREFIX])) {
      // One message, and so one transaction: a transaction for each would cost concurrent runs as much again.
      await db
        .query(`SET LOCAL lock_timeout = ${LOCK_LIMIT_MS}; DROP TABLE IF EXISTS "${name}"`)
        .catch(falseIfLockTimeout);
      await delay(DROP_PAUSE_MS);
    }
  }

  /** Returns the oldest partitions, up to the first that still receives rows or has a row that is not too old. */
  async function oldPartitions(family: PartitionFamily, olderDays: number): Promise<(Partition & { high: number })[]> {
    const [head] = family.tables;
    const [counter] = await rows<{ last: number }>(db, `SELECT last_value AS last FROM ${head}_id_seq`);
    const old: (Partition & { high: number })[] = [];
    for (const { name, low, high } of await partitionsOf(db, head)) {
      if (high === null || high > counter!.last || !(await isOlder(family, name, olderDays))) break;
      old.push({ name, low, high });
    }
    return old;
  }

  return {
    /** Creates partitions ahead of time. Call it every minute. */
    async makeAhead(): Promise<void> {
      for (const family of PARTITION_FAMILIES) await createPartitionsAhead(family);
    },

    /** Drops the partitions whose rows are all too old. @returns their number */
    async dropOld(): Promise<number> {
      await dropDetached();
      let droppedCount = 0;
      for (const family of PARTITION_FAMILIES) {
        if (!family.dropped) continue;
        const old = await oldPartitions(family, days + family.extraDays);
        for (let from = 0; from < old.length; from += DETACHED_AT_ONCE) {
          const someTables = old.slice(from, from + DETACHED_AT_ONCE);
          if (!(await detachBelow(family, someTables.at(-1)!.high))) break;
          droppedCount += someTables.length;
          await dropDetached();
          await delay(DETACH_PAUSE_MS);
        }
      }
      return droppedCount;
    },

    /** Ids below this belong to partitions that are dropped within about a day, so their rows are not deleted one by one. */
    async wholeBelow(table: string): Promise<number> {
      const family = PARTITION_FAMILIES.find(({ tables }) => tables[0] === table)!;
      // The newest row of the partition expires within a day; its oldest rows are about a day older.
      const old = await oldPartitions(family, days + family.extraDays - 1.1);
      return old.at(-1)?.high ?? Number.MIN_SAFE_INTEGER;
    },
  };
}
