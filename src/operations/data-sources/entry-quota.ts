/**
 * Checks the total size of an app's entries (`DATA_SOURCE_QUOTA_MB`) in the transaction that adds entries. Read this
 * file before you write code that adds entries.
 */
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";

/** Share of the quota up to which transactions add entries in parallel. Above this share, they check the quota one after another. */
const PARALLEL_QUOTA_SHARE = 0.9;
/** Maximum size of a parallel transaction, as a share of the quota. The last 10 % of the quota is enough for 100 such transactions. */
const PARALLEL_CHANGE_SHARE = 0.001;

const LOCK_QUOTA = "SELECT pg_advisory_xact_lock(hashtextextended('svc_entry_quota:' || $1::bigint, 0))";
const SUM_ENTRY_BYTES = "SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM data_source_tally WHERE app_id = $1";

export interface EntryGrowth {
  appId: number;
  /** Bytes that the transaction adds; negative if it removes more than it adds. */
  addedBytes: number;
  /** Size of all entries of the app in bytes including this change, as the transaction sees it. */
  totalBytes: number;
}

/**
 * Checks that the app's entries do not exceed the quota. A change that adds no bytes is always accepted. Near the quota, takes an advisory
 * lock of the app until the transaction ends. Call this last in the transaction: code that waits for other locks afterwards could deadlock.
 * @param quotaBytes maximum size of all entries of the app; 0 for no limit @throws REQUEST_INVALID
 */
export async function requireEntryQuota(
  executor: SqlClient,
  quotaBytes: number,
  { appId, addedBytes, totalBytes }: EntryGrowth,
): Promise<void> {
  if (addedBytes <= 0 || quotaBytes === 0) return;
  const isSmall = addedBytes <= quotaBytes * PARALLEL_CHANGE_SHARE;
  if (isSmall && totalBytes <= quotaBytes * PARALLEL_QUOTA_SHARE) return;
  await rows(executor, LOCK_QUOTA, [appId]);
  // A new statement sees the entries of all transactions that held the app's lock before.
  const [{ bytes }] = (await rows<{ bytes: number }>(executor, SUM_ENTRY_BYTES, [appId])) as [{ bytes: number }];
  if (bytes <= quotaBytes) return;
  const message =
    `the entries of one app can use at most ${quotaBytes} bytes (got ${bytes} with this change); ` +
    "remove entries first";
  throw new ActionError("REQUEST_INVALID", message);
}
