/**
 * Writes and lists the audit log: which person or token changed which resource, and when. Entries contain names and IDs, but never code or
 * values of settings.
 */
import { countRows } from "../../data/count.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import type { ActionError } from "../../errors.js";
import {
  createRowCursor,
  parseLimitAndOffset,
  parseRowCursor,
  type ReserveResponseBytes,
  type SizedRow,
  selectIdsThatFitOnPage,
} from "../../rules/page.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";

/** Entry of the audit log. `data` contains IDs and the names of changed keys and fields. `createdAt` is ISO 8601 text. */
export interface AuditEntry {
  id: number;
  type: string;
  userId: number | null;
  credentialId: number | null;
  actionId: number | null;
  data: Record<string, unknown>;
  createdAt: string;
}

export interface AuditLogListOptions {
  actionId?: number | null;
  limit?: number | null;
  offset?: number | null;
  /** Value of `nextCursor` of the previous page; absent for the first page. */
  cursor?: string | null;
}

/** Page of the audit log. For more than EXACT_COUNT_MAX_ROWS entries, `total` is an estimate, and `totalIsExact` is false. */
export interface AuditLogPage {
  entries: AuditEntry[];
  pagination: { total: number; hasMore: boolean; totalIsExact?: false; nextCursor?: string };
}

export type ListAuditLog = (
  appId: number,
  options: AuditLogListOptions,
  reserve?: ReserveResponseBytes,
) => Promise<AuditLogPage>;

export interface NewAuditEntry {
  type: string;
  data: Record<string, unknown>;
}

export interface AuditActor {
  personId: number | null;
  credentialId: number | null;
  /** Error for an unknown field in the request that makes the change. */
  unknownField?: ActionError;
}

/**
 * Writes an audit log entry in the transaction that makes the change, and returns the ID of the entry. `more` are further entries about the
 * same change.
 * @throws REQUEST_INVALID if the request has an unknown field. The transaction then changes nothing
 */
export async function recordChange(
  executor: SqlClient,
  caller: AuditActor | null,
  entry: NewAuditEntry & { appId: number; actionId?: number },
  more: readonly NewAuditEntry[] = [],
): Promise<number> {
  if (caller) throwIfUnknownField(caller);
  const { appId, actionId = null } = entry;
  const allEntries = [entry, ...more];
  const [first] = await rows<{ id: number }>(
    executor,
    `INSERT INTO audit_entry (app_id, type, person_id, credential_id, action_id, data)
     SELECT $1::bigint, fact.type, $3::bigint, $4::bigint, $5::bigint, fact.data FROM unnest($2::text[], $6::json[]) WITH ORDINALITY AS fact (type, data, place)
      ORDER BY fact.place RETURNING id`,
    [
      appId,
      allEntries.map(({ type }) => type),
      caller?.personId ?? null,
      caller?.credentialId ?? null,
      actionId,
      allEntries.map(({ data }) => JSON.stringify(data)),
    ],
  );
  return first!.id;
}

/** Replaces the data of an audit log entry, for a change in several transactions, such as cancelling many runs in batches. */
export async function updateChangeData(
  executor: SqlClient,
  entryId: number,
  data: NewAuditEntry["data"],
): Promise<void> {
  await rows(executor, "UPDATE audit_entry SET data = $2 WHERE id = $1", [entryId, JSON.stringify(data)]);
}

/**
 * Lists the app's audit log, the newest entry first. A page has fewer than `limit` entries if it would exceed LIST_PAGE_MAX_BYTES.
 * @param reserve reserves memory for the page
 * @throws ActionError REQUEST_INVALID; errors of `reserve`
 */
export async function listAuditEntries(
  db: Db,
  appId: number,
  options: AuditLogListOptions,
  reserve?: ReserveResponseBytes,
): Promise<AuditLogPage> {
  const { limit, offset } = parseLimitAndOffset(options);
  const cursorId = parseRowCursor(options.cursor);
  const IS_MATCHING_ENTRY = "app_id = $1 AND ($2::bigint IS NULL OR action_id = $2)";
  const parameters = [appId, options.actionId ?? null];
  const { count, exact } = await countRows(db, `audit_entry WHERE ${IS_MATCHING_ENTRY}`, parameters);
  const entrySizes = await rows<SizedRow>(
    db,
    `SELECT id, octet_length(data::text) AS bytes FROM audit_entry WHERE ${IS_MATCHING_ENTRY} AND ($5::bigint IS NULL OR id < $5)
      ORDER BY id DESC LIMIT $3 OFFSET $4`,
    [...parameters, limit + 1, offset, cursorId],
  );
  const pageIds = await selectIdsThatFitOnPage(entrySizes.slice(0, limit), reserve);
  const entries = await rows<AuditEntry & { createdAt: Date }>(
    db,
    `SELECT id, type, person_id AS "userId", credential_id AS "credentialId", action_id AS "actionId", data,
            created_at AS "createdAt"
       FROM audit_entry WHERE id = ANY ($1::bigint[]) ORDER BY id DESC`,
    [pageIds],
  );
  const hasMore = pageIds.length < entrySizes.length;
  const nextCursor = hasMore && pageIds.length > 0 ? createRowCursor(pageIds.at(-1)!) : undefined;
  return {
    entries: entries.map((entry) => ({ ...entry, createdAt: entry.createdAt.toISOString() })),
    pagination: { total: count, hasMore, ...(!exact && { totalIsExact: false }), ...(nextCursor && { nextCursor }) },
  };
}
