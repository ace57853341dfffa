/**
 * Runs transactions that change an app, and limits their database connections. Locks the row of the app or its organization, so that the
 * changes of one app run one after the other.
 */
import type { EntityManager } from "typeorm";
import { isClosedStageSql } from "../../data/app.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import { OVERLOADED_RETRY_SECONDS } from "../../limits.js";

/** Maximum number of concurrent transactions that change apps: half of DATABASE_POOL_CONNECTIONS. */
const APP_CHANGES_MAX = 5;
/** Maximum number of concurrent transactions that change one app. */
const APP_CHANGES_PER_APP = 2;
/** Maximum number of changes of one app that wait in memory for their start. */
const WAITING_CHANGES_PER_APP = 100;
const CHANGE_WAIT_MAX_MS = 30_000;
/** Maximum number of concurrent transactions that change entries. These transactions can be slow. */
const ENTRY_CHANGES_MAX = 8;
/** Maximum number of concurrent transactions that change entries of one app. */
const ENTRY_CHANGES_PER_APP = 4;

/** Separate limits for changes of apps and of entries. So changes of an app do not wait for changes of entries, which visitors can make. */
class ChangeLimits {
  readonly appChanges = new FairSemaphore(APP_CHANGES_MAX, APP_CHANGES_PER_APP, "halved");
  readonly entryChanges = new FairSemaphore(ENTRY_CHANGES_MAX, ENTRY_CHANGES_PER_APP, "halved");
}

const limitsByDb = new WeakMap<Db, ChangeLimits>();

function getChangeLimits(db: Db): ChangeLimits {
  const limits = limitsByDb.get(db) ?? new ChangeLimits();
  limitsByDb.set(db, limits);
  return limits;
}

/** Runs a transaction that changes entries of an app, as soon as a slot is free. The waiting apps get slots in turn. */
export async function runEntryChangeInSlot<T>(db: Db, appId: number, work: () => Promise<T>): Promise<T> {
  const releaseSlot = await getChangeLimits(db).entryChanges.enter(appId);
  return work().finally(releaseSlot);
}

const createOverloadedError = () =>
  new ActionError(
    "OVERLOADED",
    `too many requests wait to change this app; try again in ${OVERLOADED_RETRY_SECONDS} s`,
    {
      retryAfter: OVERLOADED_RETRY_SECONDS,
    },
  );

/**
 * Runs a transaction that changes an app, its actions or data sources, as soon as a slot is free. The waiting apps get slots in turn.
 * `work` must not call this function or `transactWithAppLock`.
 * @throws OVERLOADED if too many changes of the app wait, or if this change waits for too long
 */
export async function runAppChangeInSlot<T>(db: Db, appId: number, work: () => Promise<T>): Promise<T> {
  const { appChanges } = getChangeLimits(db);
  if (appChanges.countWaiting(appId) >= WAITING_CHANGES_PER_APP) throw createOverloadedError();
  const releaseSlot = await appChanges
    .enter(appId, () => AbortSignal.timeout(CHANGE_WAIT_MAX_MS))
    .catch(() => {
      throw createOverloadedError();
    });
  return work().finally(releaseSlot);
}

/**
 * Locks the app's organization. Call this function in a transaction that gives a person a right on the app. Call it before checking the
 * person's membership and locking the app. The removal of a member takes the same lock, so that the person cannot keep the right.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export async function lockOrganizationOfApp(executor: SqlClient, appId: number): Promise<void> {
  const sql = "SELECT FROM organization WHERE id = (SELECT organization_id FROM app WHERE id = $1) FOR NO KEY UPDATE";
  if ((await rows(executor, sql, [appId])).length === 0) throw new ActionError("APP_NOT_FOUND");
}

async function lockApp(executor: SqlClient, appId: number): Promise<void> {
  const appRows = await rows(executor, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [appId]);
  // Checks after taking the lock if the stage is closed, because another transaction may have closed it before.
  const closedStageRows = await rows(executor, `SELECT WHERE ${isClosedStageSql("$1::bigint")}`, [appId]);
  if (appRows.length === 0 || closedStageRows.length > 0) throw new ActionError("APP_NOT_FOUND");
}

/**
 * Locks the first app of a stage group. Call this function in a transaction that has locked a new stage of the group. No other transaction
 * may lock two apps, because this could cause a deadlock.
 * @throws APP_NOT_FOUND if another request has deleted the app
 */
export const lockFirstAppOfStageGroup = lockApp;

/**
 * Runs `work` in a transaction that has locked the app's row. Such transactions of one app run one after the other. Deadlocks with code
 * that does not take this lock, such as writes of entries, are possible.
 * @param beforeLock takes locks that must be taken before the app's lock, such as `lockOrganizationOfApp`
 * @throws APP_NOT_FOUND if another request has deleted the app or closed the stage; the errors of `runAppChangeInSlot`
 */
export async function transactWithAppLock<T>(
  db: Db,
  appId: number,
  work: (manager: EntityManager) => Promise<T>,
  beforeLock?: (manager: EntityManager) => Promise<void>,
): Promise<T> {
  const workInLock = async (manager: EntityManager) => {
    await beforeLock?.(manager);
    await lockApp(manager, appId);
    return work(manager);
  };
  return runAppChangeInSlot(db, appId, () => db.transaction(workInLock));
}
