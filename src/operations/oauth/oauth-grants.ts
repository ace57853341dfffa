/**
 * Stores OAuth grants. With a grant, a person authorizes a program to use some scopes on one app. Authorization codes and tokens are stored
 * only as hashes.
 */
import { isClosedStageSql } from "../../data/app.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { TOKEN_SCOPES, type TokenScope } from "../../rules/access.js";
import type { Role } from "../../rules/roles.js";
import { IS_GRANT_VALID_SQL } from "../access/credential-validity.js";
import type { Credentials } from "../access/credentials.js";
import { hashToken } from "../access/tokens.js";
import { lockCallersSignInMethods } from "../accounts/sign-in-methods.js";
import { recordChange } from "../records/audit.js";
import { lockOrganizationOfApp } from "../settings/app-lock.js";
import { OauthError } from "./oauth-failure.js";

export interface OAuthGrant {
  id: number;
  clientId: string;
  personId: number;
  appId: number;
  scopes: TokenScope[];
}

/** An OAuth grant in API responses to the person who created it. Times are ISO 8601 text. */
export interface OauthGrantSummary {
  id: number;
  client: string;
  appId: number;
  scopes: TokenScope[];
  createdAt: string;
  lastUsedAt: string | null;
}

export interface GrantDecision {
  personId: number;
  /** ID of the session or token that the person used for the decision. */
  credentialId: number;
  /** API token that the person used for the decision; the grant ends when this token ends. Null if the person used a session. */
  decidingTokenId: number | null;
  appId: number;
  scopes: readonly TokenScope[];
}

/** An app for which a person can authorize programs. `scopes` are the scopes that the person's role allows. */
export interface GrantableApp {
  id: number;
  name: string;
  role: Role;
  scopes: readonly TokenScope[];
}

export function listGrantableScopes(role: Role): readonly TokenScope[] {
  switch (role) {
    case "reader":
      return ["read"];
    case "operator":
      return ["read", "run"];
    case "editor":
    case "admin":
    case "owner":
      return TOKEN_SCOPES;
  }
}

const GRANT_COLUMNS = `g.id, g.client_id AS "clientId", g.person_id AS "personId", g.app_id AS "appId", g.scopes`;

/** Selects the apps on which the person $1 has a role, with the highest role on each app. The app $2 is first. */
const SELECT_GRANTABLE_APPS = `
  SELECT id, name, role FROM (
    SELECT DISTINCT ON (app.id) app.id, app.name, CASE WHEN p.is_administrator THEN 'owner' ELSE r.role END AS role
      FROM person p CROSS JOIN app LEFT JOIN app_role r ON r.app_id = app.id AND r.person_id = p.id
     WHERE p.id = $1 AND (p.is_administrator OR r.role IS NOT NULL) AND NOT ${isClosedStageSql("app.id")}
     ORDER BY app.id, array_position(ARRAY['owner', 'admin', 'editor', 'operator', 'reader'], r.role)) AS grantable
   ORDER BY id IS NOT DISTINCT FROM $2::bigint DESC, id LIMIT 500`;

export interface CodeOrRefreshToken {
  grant: OAuthGrant;
  redirectUri: string | null;
  codeChallenge: string | null;
  expiresAt: Date;
  isUsed: boolean;
  isRevoked: boolean;
}

export class OauthGrants {
  readonly #db: Db;
  readonly #credentials: Credentials;

  constructor(db: Db, credentials: Credentials) {
    this.#db = db;
    this.#credentials = credentials;
  }

  /**
   * Lists up to 500 apps on which the person has a role, with the highest role on each app. An administrator counts as owner of all apps.
   * @param appId app that comes first, so that the list contains it even if the person has more than 500 apps; null for none
   */
  async listGrantableApps(
    personId: number,
    appId: number | null,
    executor: SqlClient = this.#db,
  ): Promise<GrantableApp[]> {
    const appRows = await rows<{ id: number; name: string; role: Role }>(executor, SELECT_GRANTABLE_APPS, [
      personId,
      appId,
    ]);
    return appRows.map((app) => ({ ...app, scopes: listGrantableScopes(app.role) }));
  }

  /**
   * Checks the scopes of a decision.
   * @throws FORBIDDEN if there is no scope, or if the person's role on the app does not include all scopes
   */
  async #requireGrantableScopes({ personId, appId, scopes }: GrantDecision, executor: SqlClient): Promise<void> {
    const app = (await this.listGrantableApps(personId, appId, executor)).find(({ id }) => id === appId);
    if (app && scopes.length > 0 && scopes.every((scope) => app.scopes.includes(scope))) return;
    throw new ActionError(
      "FORBIDDEN",
      "choose at least one scope, and only scopes that your role on this app includes",
    );
  }

  /**
   * Creates a grant. Locks the organization and then checks the person's role again, because another request may have removed the role.
   * @throws FORBIDDEN if the role does not include all of the scopes; UNAUTHORIZED if the person's credential was revoked
   */
  async create(decision: GrantDecision, clientId: string): Promise<OAuthGrant> {
    const { personId, decidingTokenId, appId, scopes } = decision;
    await this.#requireGrantableScopes(decision, this.#db);
    return this.#db.transaction(async (manager) => {
      await lockOrganizationOfApp(manager, appId);
      await lockCallersSignInMethods(manager, decision);
      await this.#requireGrantableScopes(decision, manager);
      const [createdGrant] = await rows<{ id: number }>(
        manager,
        "INSERT INTO oauth_grant (client_id, person_id, app_id, scopes, maker_id) VALUES ($1, $2, $3, $4, $5) RETURNING id",
        [clientId, personId, appId, scopes, decidingTokenId],
      );
      const data = { grantId: createdGrant!.id, clientId, scopes };
      await recordChange(
        manager,
        { personId, credentialId: decidingTokenId },
        { appId, type: "app.grant.create", data },
      );
      return { id: createdGrant!.id, clientId, personId, appId, scopes: [...scopes] };
    });
  }

  /** Returns the grant with this ID; null if it does not exist or is no longer valid. */
  async find(id: number): Promise<OAuthGrant | null> {
    const [grant] = await rows<OAuthGrant>(
      this.#db,
      `SELECT ${GRANT_COLUMNS} FROM oauth_grant g WHERE g.id = $1 AND ${IS_GRANT_VALID_SQL}`,
      [id],
    );
    return grant ?? null;
  }

  async addSecret(
    kind: "code" | "refresh",
    secret: string,
    grantId: number,
    options: { expiresAt: Date; redirectUri?: string | null; codeChallenge?: string | null },
    executor: SqlClient = this.#db,
  ): Promise<void> {
    const { expiresAt, redirectUri = null, codeChallenge = null } = options;
    await rows(
      executor,
      `INSERT INTO oauth_secret (hash, kind, grant_id, redirect_uri, code_challenge, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
      [hashToken(secret), kind, grantId, redirectUri, codeChallenge, expiresAt],
    );
  }

  /**
   * Returns an unused authorization code or refresh token of a valid grant, even if it has expired; null otherwise. If the secret was
   * already used, ends its grant, because another program may have stolen the secret.
   */
  async findSecret(kind: "code" | "refresh", secret: string): Promise<CodeOrRefreshToken | null> {
    const [row] = await rows<OAuthGrant & Omit<CodeOrRefreshToken, "grant">>(
      this.#db,
      `SELECT ${GRANT_COLUMNS}, s.redirect_uri AS "redirectUri", s.code_challenge AS "codeChallenge", s.expires_at AS "expiresAt",
              s.used_at IS NOT NULL AS "isUsed", NOT ${IS_GRANT_VALID_SQL} AS "isRevoked"
         FROM oauth_secret s JOIN oauth_grant g ON g.id = s.grant_id WHERE s.hash = $1 AND s.kind = $2`,
      [hashToken(secret), kind],
    );
    if (!row || row.isRevoked) return null;
    if (row.isUsed) {
      await this.#end(row.id);
      return null;
    }
    const { redirectUri, codeChallenge, expiresAt, isUsed, isRevoked, ...grant } = row;
    return { grant, redirectUri, codeChallenge, expiresAt, isUsed, isRevoked };
  }

  /**
   * Locks a grant, and stores when it was last used. Locks the app first, as the deletion of an app does, so that the two cannot deadlock.
   * @throws OauthError invalid_grant if another request has ended the grant
   */
  async lockForUse(executor: SqlClient, { id, appId }: OAuthGrant): Promise<void> {
    await rows(executor, "SELECT FROM app WHERE id = $1 FOR KEY SHARE", [appId]);
    const sql = "UPDATE oauth_grant SET last_used_at = now() WHERE id = $1 AND revoked_at IS NULL RETURNING id";
    if ((await rows(executor, sql, [id])).length === 0)
      throw new OauthError("invalid_grant", "the program's access has ended; sign in again");
  }

  /** Marks an authorization code or refresh token as used. @returns false if another request has already used it */
  async markSecretUsed(secret: string, executor: SqlClient): Promise<boolean> {
    const usedSecret = await rows(
      executor,
      "UPDATE oauth_secret SET used_at = now() WHERE hash = $1 AND used_at IS NULL RETURNING 1 AS matched",
      [hashToken(secret)],
    );
    return usedSecret.length > 0;
  }

  /**
   * Stores an access token of a grant, as an API token of the app. If the grant was created with an API token, the access token expires no
   * later than that token.
   * @returns the lifetime of the access token in seconds
   */
  async addAccessToken(
    token: string,
    grant: OAuthGrant,
    { clientName, lifetimeMs }: { clientName: string; lifetimeMs: number },
    executor: SqlClient,
  ): Promise<number> {
    const [addedToken] = await rows<{ seconds: number }>(
      executor,
      `INSERT INTO credential (kind, hash, name, app_id, person_id, scopes, expires_at, grant_id)
       VALUES ('api', $1, $2, $3, $4, $5, least(now() + $6 * interval '1 millisecond',
         (SELECT m.expires_at FROM oauth_grant g JOIN credential m ON m.id = g.maker_id WHERE g.id = $7)), $7)
       RETURNING greatest(0, floor(extract(epoch FROM expires_at - now())))::int AS seconds`,
      [hashToken(token), clientName, grant.appId, grant.personId, grant.scopes, lifetimeMs, grant.id],
    );
    await rows(executor, "DELETE FROM credential WHERE grant_id = $1 AND expires_at < now() - interval '1 day'", [
      grant.id,
    ]);
    return addedToken!.seconds;
  }

  async listGrantsOf(personId: number): Promise<OauthGrantSummary[]> {
    const grantRows = await rows<OauthGrantSummary & { createdAt: Date; lastUsedAt: Date | null }>(
      this.#db,
      `SELECT g.id, c.name AS client, g.app_id AS "appId", g.scopes, g.created_at AS "createdAt", g.last_used_at AS "lastUsedAt"
         FROM oauth_grant g JOIN oauth_client c ON c.id = g.client_id
        WHERE g.person_id = $1 AND ${IS_GRANT_VALID_SQL} ORDER BY g.id DESC LIMIT 500`,
      [personId],
    );
    return grantRows.map((row) => ({
      ...row,
      createdAt: row.createdAt.toISOString(),
      lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    }));
  }

  /** Ends a grant that the person created, and revokes all tokens of the grant. @throws NOT_FOUND if the person has no such grant */
  async revoke(personId: number, id: number): Promise<void> {
    const [validGrant] = await rows(
      this.#db,
      "SELECT 1 FROM oauth_grant WHERE id = $1 AND person_id = $2 AND revoked_at IS NULL",
      [id, personId],
    );
    if (!validGrant) throw new ActionError("NOT_FOUND", "no such grant");
    await this.#end(id);
  }

  /** Ends the grant to which a refresh token or access token belongs (RFC 7009). An unknown token causes no error. */
  async revokeByToken(token: string, clientId: string): Promise<void> {
    const [grant] = await rows<{ id: number }>(
      this.#db,
      `SELECT g.id FROM oauth_grant g WHERE g.client_id = $2 AND (g.id IN (SELECT grant_id FROM oauth_secret WHERE hash = $1)
          OR g.id IN (SELECT grant_id FROM credential WHERE hash = $1))`,
      [hashToken(token), clientId],
    );
    if (grant) await this.#end(grant.id);
  }

  async #end(grantId: number): Promise<void> {
    await this.#db.transaction(async (manager) => {
      await this.#endIn(manager, grantId);
      await this.#credentials.clearCallerCaches(manager);
    });
  }

  async #endIn(manager: SqlClient, grantId: number): Promise<void> {
    const endedGrants = await rows<{ appId: number; personId: number }>(
      manager,
      `UPDATE oauth_grant SET revoked_at = now() WHERE id = $1 AND revoked_at IS NULL
       RETURNING app_id AS "appId", person_id AS "personId"`,
      [grantId],
    );
    await rows(manager, "UPDATE credential SET revoked_at = now() WHERE grant_id = $1 AND revoked_at IS NULL", [
      grantId,
    ]);
    for (const { appId, personId } of endedGrants) {
      const caller = { personId, credentialId: null };
      await recordChange(manager, caller, { appId, type: "app.grant.revoke", data: { grantId } });
    }
  }
}
