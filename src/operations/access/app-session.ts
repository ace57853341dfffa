/** Who a page or a server run works for, as `Svc.Session` reads it (specification, Authentication 3). Makes no credential. */
import type { DataSource } from "typeorm";
import type { Copy } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import type { AppSession } from "../../rules/env-script.js";

const USER = `SELECT id, first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = $1`;

export async function appSession(
  db: DataSource,
  { appId, personId, copy }: { appId: number; personId: number | null; copy: Copy },
): Promise<AppSession> {
  const found = personId === null ? [] : await rows<NonNullable<AppSession["user"]>>(db, USER, [personId]);
  return { appId, user: found[0] ?? null, environment: copy };
}
