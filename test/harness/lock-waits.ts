/** Counts the database sessions that wait for locks of a transaction. Also runs two requests so that they overlap. */
import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../src/data/database.js";
import { until } from "./until.js";

/*
 * Counts sessions that wait for this connection, directly or not. pg_stat_activity would not change within a transaction, unlike pg_locks.
 * Skips waits of the service's index jobs: a `virtualxid` (DROP INDEX CONCURRENTLY), and an AccessExclusiveLock (DROP STATISTICS).
 */
const COUNT_LOCK_WAITS = `
  WITH RECURSIVE waiting (pid, blockers) AS (
    SELECT pid, pg_blocking_pids(pid) FROM pg_locks
     WHERE NOT granted AND locktype <> 'virtualxid' AND (locktype <> 'relation' OR mode <> 'AccessExclusiveLock')),
  blocked (pid) AS (
    SELECT pid FROM waiting WHERE pg_backend_pid() = ANY (blockers)
    UNION
    SELECT waiting.pid FROM waiting JOIN blocked ON blocked.pid = ANY (waiting.blockers))
  SELECT count(*)::int FROM blocked`;

/** Returns the number of statements that wait for a lock of the transaction, directly or behind another such statement. */
export async function countLockWaits(transaction: EntityManager): Promise<number> {
  const [{ count }] = (await rows<{ count: number }>(transaction, COUNT_LOCK_WAITS)) as [{ count: number }];
  return count;
}

/** Resolves as soon as `waits` statements wait for locks of the transaction, or as soon as `request` has ended. */
export async function untilLockWait(transaction: EntityManager, request: Promise<unknown>, waits = 1): Promise<void> {
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
  };
  request.then(end, end);
  await until(async () => hasEnded || (await countLockWaits(transaction)) >= waits);
}

/**
 * Runs two requests so that they overlap. A transaction executes the statement `lock`. `first` starts and waits for its locks, then
 * `second` starts. When `second` waits for a lock or has ended, the transaction ends.
 */
export async function overlap<First, Second>(
  db: Db,
  lock: [sql: string, ...values: unknown[]],
  first: () => Promise<First>,
  second: () => Promise<Second>,
): Promise<[First, Second]> {
  const [sql, ...values] = lock;
  const sent = await db.transaction(async (manager) => {
    await manager.query(sql, values);
    const firstResult = first();
    await untilLockWait(manager, firstResult);
    const secondResult = second();
    await untilLockWait(manager, secondResult, 2);
    return { results: Promise.all([firstResult, secondResult]) };
  });
  return sent.results;
}
