/**
 * The audit log of access to the service, such as sign-ins, failed sign-ins, roles and invitations. The audit log of one app is in
 * `records/audit.ts`.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { createRowCursor, parseLimitAndOffset, parseRowCursor } from "../../rules/page.js";

/** Entry to write to the audit log of access. `data` contains names and IDs, but never a secret. */
export interface AccessEvent {
  /** Type of the event, such as `person.signIn`, `person.signInFailed` or `person.passkey.create`. */
  type: string;
  organizationId?: number | null;
  /** ID of the person who caused the event; null if this person is unknown. */
  personId?: number | null;
  /** ID of the person whose account or access the event concerns. */
  subjectId?: number | null;
  address?: string | undefined;
  data?: Record<string, unknown>;
}

const INSERT_ACCESS_EVENT = `
  INSERT INTO access_event (type, organization_id, person_id, subject_id, address, data) VALUES ($1, $2, $3, $4, $5, $6)`;

/** Writes one entry to the audit log of access. Pass the executor of the transaction that makes the recorded change. */
export async function recordAccessEvent(executor: SqlClient | Db, event: AccessEvent): Promise<void> {
  const { type, organizationId = null, personId = null, subjectId = null, address = null, data = {} } = event;
  await rows(executor as SqlClient, INSERT_ACCESS_EVENT, [
    type,
    organizationId,
    personId,
    subjectId,
    address,
    JSON.stringify(data),
  ]);
}

/** Entry of the audit log of access in the form that responses contain. Times are ISO 8601. */
export interface AccessLogEntry {
  id: number;
  type: string;
  organizationId: number | null;
  userId: number | null;
  subjectId: number | null;
  address: string | null;
  data: Record<string, unknown>;
  createdAt: string;
}

export interface AccessLogPage {
  entries: AccessLogEntry[];
  pagination: { hasMore: boolean; nextCursor?: string };
}

/**
 * Selects entries of the organization $1 and of its members' accounts. If $2 is true (the caller is an administrator), also selects all
 * other entries without an organization.
 */
const SELECT_ACCESS_EVENTS = `
  SELECT id, type, organization_id AS "organizationId", person_id AS "userId", subject_id AS "subjectId", address, data,
         created_at AS "createdAt"
    FROM access_event
   WHERE ($3::bigint IS NULL OR id < $3)
     AND (organization_id = $1
          OR organization_id IS NULL AND subject_id IN (SELECT person_id FROM organization_member WHERE organization_id = $1)
          OR organization_id IS NULL AND $2)
   ORDER BY id DESC LIMIT $4`;

/**
 * Returns the organization's entries of the audit log of access, the newest first.
 * @throws ActionError REQUEST_INVALID
 */
export type ListAccessLogEntries = (
  organizationId: number,
  isAdministrator: boolean,
  options: { limit?: number | null; cursor?: string | null },
) => Promise<AccessLogPage>;

export function createAccessLogLister({ db }: { db: Db }): ListAccessLogEntries {
  return async (organizationId, isAdministrator, options) => {
    const { limit } = parseLimitAndOffset(options);
    const values = [organizationId, isAdministrator, parseRowCursor(options.cursor), limit + 1];
    const eventRows = await rows<AccessLogEntry & { createdAt: Date }>(db, SELECT_ACCESS_EVENTS, values);
    const entries = eventRows.slice(0, limit).map((entry) => ({ ...entry, createdAt: entry.createdAt.toISOString() }));
    const hasMore = eventRows.length > limit;
    const last = entries.at(-1);
    return { entries, pagination: { hasMore, ...(hasMore && last && { nextCursor: createRowCursor(last.id) }) } };
  };
}
