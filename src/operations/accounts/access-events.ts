/** Audit log of access to the service: sign-ins, failures, roles, invitations, tokens. Entries of one app are in `records/audit.ts`. */
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";

/** `data` has names and ids, never a secret. */
export interface AccessEvent {
  /** For example `person.signIn`, `person.signInFailed`, `person.passkey.create`. */
  type: string;
  organizationId?: number | null;
  /** The person who did it; null if unknown. */
  personId?: number | null;
  /** The person whom it was done to. */
  subjectId?: number | null;
  address?: string | undefined;
  data?: Record<string, unknown>;
}

const INSERT = `
  INSERT INTO access_event (type, organization_id, person_id, subject_id, address, data) VALUES ($1, $2, $3, $4, $5, $6)`;

/** Writes one entry; pass the executor of the transaction that makes the change. */
export async function recordAccess(executor: Executor | DataSource, event: AccessEvent): Promise<void> {
  const { type, organizationId = null, personId = null, subjectId = null, address = null, data = {} } = event;
  await rows(executor as Executor, INSERT, [type, organizationId, personId, subjectId, address, JSON.stringify(data)]);
}
