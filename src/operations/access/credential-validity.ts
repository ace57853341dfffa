/** SQL conditions for valid credentials. Read this file before you add a way in which a credential ends. */
import { isClosedStageSql } from "../../data/app.js";
import { isOperationAllowedForRole } from "../../rules/access.js";
import { ROLES } from "../../rules/roles.js";

/** Roles that may open an app's viewer and debug pages. A person who loses these roles also loses the tokens of pages that are open. */
const PREVIEW_ROLES_SQL = `ARRAY[${ROLES.filter((role) => isOperationAllowedForRole("previewApp", role)).map((role) => `'${role}'`)}]`;

/** SQL condition: the OAuth grant `g` is valid. A grant that a person created with an API token ends with this token. */
export const IS_GRANT_VALID_SQL = `(g.revoked_at IS NULL AND (g.maker_id IS NULL OR EXISTS (
  SELECT FROM credential m WHERE m.id = g.maker_id AND m.revoked_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > now()))))`;

/**
 * SQL condition: the credential `c` is valid. The session of a live page ends when the app is unpublished. The session of a viewer or debug
 * page ends when the person who opened the page signs out, or loses the necessary role. The credentials of a stage end when the
 * stage closes.
 */
export const IS_CREDENTIAL_VALID_SQL = `
     c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > now())
     AND NOT ${isClosedStageSql("c.app_id")}
     AND (c.grant_id IS NULL OR EXISTS (SELECT FROM oauth_grant g WHERE g.id = c.grant_id AND ${IS_GRANT_VALID_SQL}))
     AND (NOT c.page_session OR CASE c.kind WHEN 'live'
       THEN EXISTS (SELECT FROM app WHERE id = c.app_id AND published_at IS NOT NULL)
       ELSE EXISTS (SELECT FROM credential p
                     WHERE p.id = c.parent_id AND p.revoked_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > now())
                       AND (p.kind = 'admin' OR EXISTS
                         (SELECT FROM person_session s JOIN person a ON a.id = s.person_id
                           WHERE s.credential_id = p.id AND a.is_administrator AND NOT s.is_provisional) OR EXISTS
                         (SELECT FROM app_role r WHERE r.app_id = c.app_id AND r.person_id = p.person_id AND r.role = ANY (${PREVIEW_ROLES_SQL}))))
       END)`;
