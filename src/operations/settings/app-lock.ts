/**
 * Runs transactions that change an app. Locks the app's row or its organization's row, so that changes wait for each
 * other, and limits the database connections that the changes of one app use.
 */
import type { EntityManager } from "typeorm";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { OVERLOADED_RETRY_SECONDS } from "../../limits.js";

/**
 * Maximum number of transactions that change apps or their entries, in total and per app. The statements of these
 * transactions can be slow, or wait for the locks of each other. So they leave some of the POOL_CONNECTIONS for other
 * requests, and one app cannot use all of theirs. A further transaction waits.
 */
const CONCURRENT_CHANGES_MAX = 8;
const CONCURRENT_CHANGES_PER_APP = 4;
/**
 * Maximum number of transactions of one app that hold the app's lock or wait for it in the database. They run one after
 * the other, so more of them would only occupy connections.
 */
const LOCKING_CHANGES_PER_APP = 2;
/** Maximum number of further transactions of one app that wait in memory for the app's lock. */
const WAITING_CHANGES_PER_APP = 100;
/** Maximum time in milliseconds that a transaction waits in memory for the app's lock. */
const CHANGE_WAIT_MAX_MS = 30_000;

/** Limits the changes of the apps in one database. A transaction takes a turn to lock its app before it takes a slot. */
class ChangeLimits {
  readonly lockTurns = new FairSemaphore(Number.POSITIVE_INFINITY, LOCKING_CHANGES_PER_APP);
  readonly slots = new FairSemaphore(CONCURRENT_CHANGES_MAX, CONCURRENT_CHANGES_PER_APP, "halved");
}

const limitsByDb = new WeakMap<Db, ChangeLimits>();

function changeLimitsOf(db: Db): ChangeLimits {
  const limits = limitsByDb.get(db) ?? new ChangeLimits();
  limitsByDb.set(db, limits);
  return limits;
}

/**
 * Runs a statement or transaction that changes an app or its entries, as soon as a slot is free. Slots go to the
 * waiting apps in turn. `work` must not call this function or `transactWithAppLock`.
 */
export async function runInChangeSlot<T>(db: Db, appId: number, work: () => Promise<T>): Promise<T> {
  const freeSlot = await changeLimitsOf(db).slots.enter(appId);
  return work().finally(freeSlot);
}

/**
 * Locks the organization of an app until the transaction ends. Call this function before a transaction gives a person
 * something on the app, before the lock of the app, and before the check that the person belongs to the organization. A
 * removal of a member holds the same lock. So it either finds all that the person has, or the check finds that the
 * person is removed.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export async function lockOrganizationOfApp(executor: SqlClient, appId: number): Promise<void> {
  const sql = "SELECT FROM organization WHERE id = (SELECT organization_id FROM app WHERE id = $1) FOR NO KEY UPDATE";
  if ((await rows(executor, sql, [appId])).length === 0) throw new ActionError("APP_NOT_FOUND");
}

async function lockApp(executor: SqlClient, appId: number): Promise<void> {
  const locked = await rows(executor, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [appId]);
  if (locked.length === 0) throw new ActionError("APP_NOT_FOUND");
}

/**
 * Locks the first app of a group in a transaction that has locked a new stage of the group. No other transaction locks
 * two apps.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export const lockFirstAppOfGroup = lockApp;

const overloadedError = () =>
  new ActionError(
    "OVERLOADED",
    `too many requests wait to change this app; try again in ${OVERLOADED_RETRY_SECONDS} s`,
    {
      retryAfter: OVERLOADED_RETRY_SECONDS,
    },
  );

/**
 * Runs `work` in a transaction that has locked the app's row. No other function locks it with this lock. Such
 * transactions run one after the other, so they cannot deadlock with each other. Code that removes or unpublishes one
 * action, changes a data source, or writes entries, runs or messages, does not take this lock. Deadlocks with such code
 * are still possible.
 * @param beforeLock takes locks that must be taken before the app's, such as `lockOrganizationOfApp`
 * @throws APP_NOT_FOUND if another request has deleted the app; OVERLOADED if too many requests wait for the lock
 */
export async function transactWithAppLock<T>(
  db: Db,
  appId: number,
  work: (manager: EntityManager) => Promise<T>,
  beforeLock?: (manager: EntityManager) => Promise<void>,
): Promise<T> {
  const { lockTurns } = changeLimitsOf(db);
  if (lockTurns.countWaiting(appId) >= WAITING_CHANGES_PER_APP) throw overloadedError();
  const endTurn = await lockTurns
    .enter(appId, () => AbortSignal.timeout(CHANGE_WAIT_MAX_MS))
    .catch(() => {
      throw overloadedError();
    });
  const change = async (manager: EntityManager) => {
    await beforeLock?.(manager);
    await lockApp(manager, appId);
    return work(manager);
  };
  return runInChangeSlot(db, appId, () => db.transaction(change)).finally(endTurn);
}
