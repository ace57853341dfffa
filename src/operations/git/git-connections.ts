/**
 * Stores the connection of each app to its Git repository, with the encrypted token and webhook secret. Determines the
 * current rights of the person who connected the repository.
 */
import { randomBytes } from "node:crypto";
import type { EntityManager } from "typeorm";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import {
  type GitConnectionFields,
  type GitConnectionInput,
  parseGitConnectionInput,
  refuseUnknownGitConnectionFields,
} from "../../rules/git-input.js";
import { type ExpectedVersions, NEXT_UPDATED_AT_SQL, requireExpectedVersion } from "../../rules/precondition.js";
import { getHighestRole, type Role } from "../../rules/roles.js";
import type { Credentials } from "../access/credentials.js";
import { requireCurrentRight } from "../access/current-rights.js";
import { recordChange } from "../records/audit.js";
import { lockOrganizationOfApp, transactWithAppLock } from "../settings/app-lock.js";
import type { Settings } from "../settings/settings.js";

const SECRET_BYTES = 32;
/** Labels of encrypted values. A value that was encrypted with one label cannot be decrypted with the other. */
const [TOKEN_PURPOSE, SECRET_PURPOSE] = ["git token", "git webhook"];

export interface LastGitPull {
  ref: string;
  /** Hash of the commit; null if the pull failed before it found the commit. Also null if the last attempt was interrupted. */
  commit: string | null;
  /** Names of the actions that the pull published. Empty for the pull of a branch, which publishes nothing. */
  published: string[];
  /** Error message of the pull; null if the pull succeeded. */
  error: string | null;
  /** Time at which the pull ended, as ISO 8601 text. */
  at: string;
}

/** Connection of an app to a Git repository, as the API returns it to editors. */
export interface GitConnection extends GitConnectionFields {
  hasToken: boolean;
  /** URL to which the Git server must send its webhook. */
  webhookUrl: string;
  /** ID of the person who connected the repository. Pulls after a webhook run with the rights of this person. */
  userId: number | null;
  lastPull: LastGitPull | null;
  updatedAt: string;
}

/** Result of changing a Git connection. `webhookSecret` is the new secret of the webhook; null if the change created no new secret. */
export interface GitConnectionChange {
  git: GitConnection;
  webhookSecret: string | null;
}

export interface GitConnectionChangeTarget {
  appId: number;
  precondition?: ExpectedVersions;
}

/** Row of the table app_git: the connection of an app to a Git repository, with encrypted secrets. */
export interface GitConnectionRow extends GitConnectionFields {
  sealedToken: Buffer | null;
  sealedSecret: Buffer;
  personId: number | null;
  credentialId: number | null;
  lastPull: LastGitPull | null;
  updatedAt: Date;
}

const SELECT_CONNECTION = `
  SELECT provider, url, branch, folder, tag_pattern AS "tagPattern", prune, username, sealed_token AS "sealedToken",
         sealed_secret AS "sealedSecret", person_id AS "personId", credential_id AS "credentialId", last_pull AS "lastPull",
         updated_at AS "updatedAt"
    FROM app_git WHERE app_id = $1`;

const UPSERT_CONNECTION = `
  INSERT INTO app_git (app_id, provider, url, branch, folder, tag_pattern, prune, username, sealed_token, sealed_secret, person_id,
                       credential_id, updated_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, date_trunc('milliseconds', clock_timestamp()))
  ON CONFLICT (app_id) DO UPDATE SET provider = excluded.provider, url = excluded.url, branch = excluded.branch,
    folder = excluded.folder, tag_pattern = excluded.tag_pattern, prune = excluded.prune, username = excluded.username,
    sealed_token = excluded.sealed_token, sealed_secret = excluded.sealed_secret, person_id = excluded.person_id,
    credential_id = excluded.credential_id,
    updated_at = ${NEXT_UPDATED_AT_SQL.replaceAll("updated_at", "app_git.updated_at")}`;

/**
 * Selects the current rights of the person $1 on the app $2. Returns no row if the credential $3 is revoked, for example because the person
 * has set a new passphrase. Then pulls fail.
 */
const SELECT_CREDENTIAL_RIGHTS = `
  SELECT is_administrator AS "isAdministrator", ARRAY(
           SELECT role FROM app_role WHERE app_role.person_id = person.id AND app_role.app_id = $2) AS roles
    FROM person WHERE id = $1 AND EXISTS (SELECT FROM credential WHERE id = $3 AND revoked_at IS NULL)`;

interface GitConnectionsOptions {
  db: Db;
  settings: Pick<Settings, "sealFor" | "unsealFor">;
  credentials: Pick<Credentials, "issue">;
  baseUrl: string;
  /** True if the URL of a repository can use http instead of https (ALLOW_PRIVATE_NETWORK). */
  allowHttp: boolean;
}

async function findConnection(executor: SqlClient, appId: number): Promise<GitConnectionRow | null> {
  const [row] = await rows<GitConnectionRow>(executor, SELECT_CONNECTION, [appId]);
  return row ?? null;
}

const revokeCredential = async (manager: EntityManager, id: number | null): Promise<void> => {
  if (id !== null) await rows(manager, "UPDATE credential SET revoked_at = now() WHERE id = $1", [id]);
};

export class GitConnections {
  constructor(private readonly options: GitConnectionsOptions) {}

  private toGitConnection(appId: number, row: GitConnectionRow): GitConnection {
    const { sealedToken, sealedSecret: _, credentialId: __, personId, updatedAt, ...fields } = row;
    return {
      ...fields,
      hasToken: sealedToken !== null,
      webhookUrl: `${this.options.baseUrl}/v1/apps/${appId}/git/webhook`,
      userId: personId,
      updatedAt: updatedAt.toISOString(),
    };
  }

  private checkPrecondition(appId: number, row: GitConnectionRow | null, precondition: ExpectedVersions): void {
    if (row) requireExpectedVersion(this.toGitConnection(appId, row), precondition);
    else if (precondition)
      throw new ActionError("RESOURCE_CHANGED", "no Git repository is connected to this app any more");
  }

  /**
   * Returns the encrypted token to store. If the request omits the token, reuses the stored one, but only for an unchanged URL. Otherwise
   * an editor could change the URL and make the service send the token to another server.
   */
  private async sealToken(
    manager: EntityManager,
    appId: number,
    input: GitConnectionInput,
    before: GitConnectionRow | null,
  ) {
    if (input.token === null) return null;
    if (input.token !== undefined) return this.options.settings.sealFor(manager, appId, TOKEN_PURPOSE, input.token);
    if (!before?.sealedToken) return null;
    if (before.url === input.url) return before.sealedToken;
    throw new ActionError(
      "REQUEST_INVALID",
      '"token" is required when "url" changes; send the token of the new repository, or null if it needs none',
    );
  }

  /**
   * Creates the credential of the connection. The audit log shows this credential for pulls after a webhook. If the credential is revoked,
   * these pulls fail. Its secret is discarded, so that it cannot be used to sign in.
   */
  private async createCredential(manager: EntityManager, { personId }: Caller): Promise<number> {
    return (await this.options.credentials.issue({ kind: "editor", personId, name: "git" }, manager)).id;
  }

  async get(appId: number): Promise<GitConnection | null> {
    const row = await findConnection(this.options.db.manager, appId);
    return row && this.toGitConnection(appId, row);
  }

  findRow(appId: number): Promise<GitConnectionRow | null> {
    return findConnection(this.options.db.manager, appId);
  }

  /** Connects a repository to an app, or changes the connection. @throws REQUEST_INVALID, FORBIDDEN, RESOURCE_CHANGED */
  async connect(
    caller: Caller,
    { appId, precondition }: GitConnectionChangeTarget,
    body: unknown,
  ): Promise<GitConnectionChange> {
    const { db, settings, allowHttp } = this.options;
    const input = parseGitConnectionInput(body, allowHttp);
    const connect = async (manager: EntityManager) => {
      await requireCurrentRight(manager, caller, "writeGit", appId);
      const before = await findConnection(manager, appId);
      this.checkPrecondition(appId, before, precondition);
      const token = await this.sealToken(manager, appId, input, before);
      const secret = before && !input.newSecret ? null : randomBytes(SECRET_BYTES).toString("base64url");
      const sealedSecret =
        secret === null ? before!.sealedSecret : await settings.sealFor(manager, appId, SECRET_PURPOSE, secret);
      await revokeCredential(manager, before?.credentialId ?? null);
      const credentialId = await this.createCredential(manager, caller);
      const { provider, url, branch, folder, tagPattern, prune, username } = input;
      const values = [appId, provider, url, branch, folder, tagPattern, prune, username, token, sealedSecret];
      await rows(manager, UPSERT_CONNECTION, [...values, caller.personId, credentialId]);
      const data = { url, branch, folder, tagPattern, prune, newSecret: secret !== null };
      refuseUnknownGitConnectionFields(body);
      await recordChange(manager, caller, { appId, type: "app.git.connect", data });
      return { git: this.toGitConnection(appId, (await findConnection(manager, appId))!), webhookSecret: secret };
    };
    return transactWithAppLock(db, appId, connect, (manager) => lockOrganizationOfApp(manager, appId));
  }

  /** Removes the connection of an app. @throws NOT_FOUND if no repository is connected, FORBIDDEN, RESOURCE_CHANGED */
  async disconnect(caller: Caller, { appId, precondition }: GitConnectionChangeTarget): Promise<void> {
    const disconnect = async (manager: EntityManager) => {
      await requireCurrentRight(manager, caller, "writeGit", appId);
      const before = await findConnection(manager, appId);
      this.checkPrecondition(appId, before, precondition);
      if (!before) throw new ActionError("NOT_FOUND", "no Git repository is connected to this app");
      await rows(manager, "DELETE FROM app_git WHERE app_id = $1", [appId]);
      await revokeCredential(manager, before.credentialId);
      await recordChange(manager, caller, { appId, type: "app.git.disconnect", data: { url: before.url } });
    };
    const { db } = this.options;
    await transactWithAppLock(db, appId, disconnect, (manager) => lockOrganizationOfApp(manager, appId));
  }

  async readToken(appId: number, { sealedToken }: GitConnectionRow): Promise<string | null> {
    return sealedToken && this.options.settings.unsealFor(appId, TOKEN_PURPOSE, sealedToken);
  }

  readWebhookSecret(appId: number, { sealedSecret }: GitConnectionRow): Promise<string> {
    return this.options.settings.unsealFor(appId, SECRET_PURPOSE, sealedSecret);
  }

  /**
   * Returns a caller with the current rights that the person who connected the repository has on this app. The caller
   * has no rights on other apps.
   * @throws ActionError FORBIDDEN if the person no longer has a role on the app, or has set a new passphrase after
   *   connecting the repository
   */
  async resolveCaller(appId: number, { personId, credentialId }: GitConnectionRow): Promise<Caller> {
    const [rights] = await rows<{ isAdministrator: boolean; roles: Role[] }>(
      this.options.db,
      SELECT_CREDENTIAL_RIGHTS,
      [personId, appId, credentialId],
    );
    const role = rights && getHighestRole(rights.roles);
    if (!rights || credentialId === null || !(role || rights.isAdministrator))
      throw new ActionError(
        "FORBIDDEN",
        "the person who connected the repository has no role on this app any more, or has set a new passphrase; " +
          "connect the repository again",
      );
    return {
      credentialId,
      kind: rights.isAdministrator ? "admin" : "editor",
      ...{ personId, appId: null, roles: new Map(role ? [[appId, role]] : []), organizations: new Map() },
      ...{
        scopes: null,
        runId: null,
        runDepth: 0,
        debugActionId: null,
        copy: "master",
        expiresAt: Number.POSITIVE_INFINITY,
      },
    };
  }
}
