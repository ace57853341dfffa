/**
 * Checks the total size of an app's entries (`DATA_SOURCE_QUOTA_MB`) in the transaction that adds entries. Read this
 * file before you write code that adds entries.
 */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";

/** Up to this share of the quota, transactions run in parallel, which do not see each other's entries. Above it, they check one by one. */
const PARALLEL_SHARE = 0.9;
/** Maximum size of a parallel transaction, as a share of the quota. The rest of the quota is enough for 100 of them. */
const PARALLEL_CHANGE_SHARE = 0.001;

const LOCK_QUOTA = "SELECT pg_advisory_xact_lock(hashtextextended('svc_entry_quota:' || $1::bigint, 0))";
const SUM_BYTES = "SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM data_source_tally WHERE app_id = $1";

export interface EntryGrowth {
  appId: number;
  /** Bytes that the transaction adds; negative if it removes more than it adds. */
  addedBytes: number;
  /** Size of all entries of the app in bytes, with this change, as the transaction sees it. */
  totalBytes: number;
}

/**
 * Checks that the app's entries do not exceed the quota. A change that adds no bytes is always accepted. Near the quota,
 * takes an advisory lock of the app until the transaction ends. Call it after all other statements that can wait for a
 * lock. A transaction with this lock then waits for no other lock, so it causes no deadlock.
 * @param quotaBytes maximum size of all entries of the app; 0 for no limit
 * @throws REQUEST_INVALID if the entries exceed the quota
 */
export async function requireEntryQuota(
  executor: SqlClient,
  quotaBytes: number,
  { appId, addedBytes, totalBytes }: EntryGrowth,
): Promise<void> {
  if (addedBytes <= 0 || quotaBytes === 0) return;
  const isSmall = addedBytes <= quotaBytes * PARALLEL_CHANGE_SHARE;
  if (isSmall && totalBytes <= quotaBytes * PARALLEL_SHARE) return;
  await rows(executor, LOCK_QUOTA, [appId]);
  // A new statement, which sees the entries of all transactions that had this lock before.
  const [{ bytes }] = (await rows<{ bytes: number }>(executor, SUM_BYTES, [appId])) as [{ bytes: number }];
  if (bytes <= quotaBytes) return;
  const message = `the entries of one app can use at most ${quotaBytes} bytes; this change would make ${bytes}`;
  throw new ActionError("REQUEST_INVALID", message);
}
