/** Creates, lists and revokes an app's tokens of the kinds "api", "viewer" and "live". Logs a warning before an API token expires. */
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import type { CredentialKind } from "../../data/credential.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { TOKENS_PER_APP } from "../../limits.js";
import { type Caller, TOKEN_SCOPES, type TokenScope } from "../../rules/access.js";
import { parseOptionalId, refuseField, requireText } from "../../rules/fields.js";
import { parseIsoTime } from "../../rules/iso-time.js";
import { type ExpectedVersions, type ListItemVersion, requireExpectedItemVersion } from "../../rules/precondition.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { recordChange } from "../records/audit.js";
import { lockOrganizationOfApp, transactWithAppLock } from "../settings/app-lock.js";
import type { Credentials } from "./credentials.js";
import { requireCurrentRight } from "./current-rights.js";
import type { People } from "./people.js";

export const APP_TOKEN_KINDS = ["api", "viewer", "live"] as const satisfies readonly CredentialKind[];

/** A token of an app as responses contain it, without the token's secret. Times are ISO 8601. */
export interface TokenSummary {
  id: number;
  kind: CredentialKind;
  name: string | null;
  userId: number | null;
  /** Scopes of an API token. Null for an API token with all rights, and for tokens of other kinds. */
  scopes: TokenScope[] | null;
  createdAt: string;
  expiresAt: string | null;
  /** Time of the token's last use, accurate to one minute; null if the token was never used. */
  lastUsedAt: string | null;
  /** Network address from which the token was last used; null if unknown. */
  lastUsedAddress: string | null;
}

type TokenRow = Omit<TokenSummary, "createdAt" | "expiresAt" | "lastUsedAt"> & {
  createdAt: Date;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
};

/** A token summary with `updatedAt`, from which the token's ETag is computed. */
export type VersionedTokenSummary = TokenSummary & ListItemVersion;

/** A token cannot be changed, only revoked. So `updatedAt` always equals `createdAt`. */
const addUpdatedAt = (token: TokenSummary): VersionedTokenSummary => ({ ...token, updatedAt: token.createdAt });

const IS_VALID_TOKEN =
  "kind <> 'task' AND NOT page_session AND grant_id IS NULL AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())";
const COUNT_VALID_TOKENS = `SELECT count(*) FROM credential WHERE app_id = $1 AND ${IS_VALID_TOKEN}`;
const EXPIRY_WARNING_INTERVAL = "interval '7 days'";
/**
 * Marks and returns the API tokens that expire within 7 days, except tokens that had such a short lifetime from the start. Returns each
 * token only once, so that only one process logs the warning.
 */
const MARK_EXPIRY_WARNED = `
  UPDATE credential SET expiry_warned_at = now()
   WHERE kind = 'api' AND ${IS_VALID_TOKEN} AND expires_at < now() + ${EXPIRY_WARNING_INTERVAL} AND expiry_warned_at IS NULL
     AND created_at < expires_at - ${EXPIRY_WARNING_INTERVAL}
  RETURNING id, app_id AS "appId", name, expires_at AS "expiresAt"`;

async function selectValidTokens(executor: SqlClient, condition: string, appId: number): Promise<TokenSummary[]> {
  const tokenRows = await rows<TokenRow>(
    executor,
    `SELECT id, kind, name, person_id AS "userId", scopes, created_at AS "createdAt", expires_at AS "expiresAt",
            last_used_at AS "lastUsedAt", last_used_address AS "lastUsedAddress"
       FROM credential WHERE ${condition} AND ${IS_VALID_TOKEN} ORDER BY id DESC`,
    [appId],
  );
  return tokenRows.map(({ createdAt, expiresAt, lastUsedAt, ...row }) => ({
    ...row,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  }));
}

/** Returns the app's tokens and the service's `admin` tokens. Also returns the sessions and tokens of people with a role on the app. */
export const listTokensWithSessions = (db: Db, appId: number): Promise<TokenSummary[]> =>
  selectValidTokens(
    db,
    `(app_id = $1 OR kind = 'admin' OR kind = 'editor' AND person_id IN (SELECT person_id FROM app_role WHERE app_id = $1))`,
    appId,
  );

/**
 * Parses the field "scopes". Returns null if it is missing or null: the token then has the rights of `api` in the access table.
 * @throws REQUEST_INVALID
 */
function parseScopes(value: unknown, kind: unknown): TokenScope[] | null {
  if (value === undefined || value === null) return null;
  if (kind !== "api") throw new ActionError("REQUEST_INVALID", '"scopes" is only allowed for tokens of the kind "api"');
  const knownScopes: readonly unknown[] = TOKEN_SCOPES;
  if (!Array.isArray(value) || value.length === 0 || value.length > TOKEN_SCOPES.length) {
    refuseField("scopes", `a list of 1 to ${TOKEN_SCOPES.length} scopes`, value);
  }
  const unknownIndex = value.findIndex((scope) => !knownScopes.includes(scope));
  if (unknownIndex >= 0) {
    refuseField(`scopes[${unknownIndex}]`, `one of ${TOKEN_SCOPES.join(", ")}`, value[unknownIndex]);
  }
  return TOKEN_SCOPES.filter((scope) => value.includes(scope));
}

/** Parses the field "expiresAt". Returns null if it is missing or null. @throws REQUEST_INVALID if it is not a time in the future */
function parseExpiry(value: unknown): Date | null {
  if (value === undefined || value === null) return null;
  const time = value instanceof Date ? value.getTime() : parseIsoTime(value);
  if (time > Date.now()) return new Date(time);
  const expected = Number.isNaN(time) ? "a time such as 2030-01-31T12:00:00Z" : "in the future";
  refuseField("expiresAt", expected, value);
}

/** The token that a request revokes, and the ETags that the request accepts (`If-Match`). */
export interface TokenToRevoke {
  appId: number;
  id: number;
  precondition?: ExpectedVersions;
}

interface AppTokensOptions {
  db: Db;
  credentials: Credentials;
  people: People;
  log: Logger;
}

export class AppTokens {
  constructor(private readonly options: AppTokensOptions) {}

  /** Lists the app's valid tokens, the newest first. */
  async list(appId: number): Promise<VersionedTokenSummary[]> {
    return (await selectValidTokens(this.options.db, "app_id = $1", appId)).map(addUpdatedAt);
  }

  /** Creates a token. Only this response contains the token's secret. @throws REQUEST_INVALID, FORBIDDEN */
  async create(caller: Caller, appId: number, data: Record<string, unknown>): Promise<{ id: number; token: string }> {
    const { db, credentials, people } = this.options;
    const { kind } = data;
    if (!APP_TOKEN_KINDS.some((knownKind) => knownKind === kind)) {
      refuseField("kind", '"api", "viewer" or "live"', kind);
    }
    const personId = parseOptionalId(data["userId"], "userId");
    const name = data["name"] === undefined || data["name"] === null ? null : requireText(data["name"], "name");
    const scopes = parseScopes(data["scopes"], kind);
    const expiresAt = parseExpiry(data["expiresAt"]);
    const create = async (manager: EntityManager) => {
      await requireCurrentRight(manager, caller, "manageTokens", appId);
      await people.requireAppUser(manager, appId, personId);
      const [tokenCount] = await rows<{ count: number }>(manager, COUNT_VALID_TOKENS, [appId]);
      if (tokenCount!.count >= TOKENS_PER_APP) {
        throw new ActionError(
          "REQUEST_INVALID",
          `an app can have at most ${TOKENS_PER_APP} tokens; revoke unused tokens`,
        );
      }
      const fields = { kind: kind as CredentialKind, appId, personId, name, scopes, expiresAt };
      const issuedToken = await credentials.issue(fields, manager);
      throwIfUnknownField(caller);
      const tokenFacts = { tokenId: issuedToken.id, kind, name, scopes, expiresAt: expiresAt?.toISOString() ?? null };
      await recordChange(manager, caller, { appId, type: "token.create", data: tokenFacts });
      return issuedToken;
    };
    return transactWithAppLock(db, appId, create, (manager) => lockOrganizationOfApp(manager, appId));
  }

  /** Revokes a token in every process of the service. @throws NOT_FOUND, FORBIDDEN, RESOURCE_CHANGED */
  async revoke(caller: Caller, { appId, id, precondition }: TokenToRevoke): Promise<void> {
    const { db, credentials } = this.options;
    await db.transaction(async (manager) => {
      await lockOrganizationOfApp(manager, appId);
      await requireCurrentRight(manager, caller, "manageTokens", appId);
      if (precondition) {
        const tokens = (await selectValidTokens(manager, "app_id = $1", appId)).map(addUpdatedAt);
        const token = tokens.find((token) => token.id === id);
        if (token) requireExpectedItemVersion(token, [tokens], precondition);
      }
      await credentials.revoke(id, appId, manager);
      await recordChange(manager, caller, { appId, type: "token.delete", data: { tokenId: id } });
    });
    await credentials.clearCallerCaches();
  }

  /** Logs one warning for each API token that expires within 7 days. A token with a lifetime of less than 7 days causes no warning. */
  async warnOfExpiry(): Promise<null> {
    const { db, log } = this.options;
    type ExpiringToken = { id: number; appId: number; name: string | null; expiresAt: Date };
    for (const { id, appId, name, expiresAt } of await rows<ExpiringToken>(db, MARK_EXPIRY_WARNED)) {
      const tokenFacts = { tokenId: id, appId, name, expiresAt: expiresAt.toISOString() };
      log.warn(
        tokenFacts,
        "an API token expires within 7 days; create a new token, and use it in all programs that use this one",
      );
    }
    return null;
  }
}
