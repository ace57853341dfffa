/**
 * Sessions of people. A sign-in starts a session. People can list their sessions with device, address and last use, and end one or all of
 * them. The token of a session is a credential of the kind `editor`, which `access/credentials.ts` checks and extends.
 */
import Bowser from "bowser";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { PERSON_SESSION_IDLE_TIMEOUT_MS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type ExpectedVersions, requireExpectedItemVersion } from "../../rules/precondition.js";
import type { Credentials } from "../access/credentials.js";
import { lockSignInMethods } from "./sign-in-methods.js";

export interface SessionClientInfo {
  address?: string | undefined;
  userAgent?: string | undefined;
}

/** A session in the form that responses contain. Times are ISO 8601. */
export interface PersonSession {
  id: number;
  /** Browser and operating system, such as `Firefox on Linux`. */
  device: string;
  /** Network address from which the session was last used; null if the address is unknown. */
  address: string | null;
  createdAt: string;
  /** Equals `createdAt`: requests can end a session, but not change it. */
  updatedAt: string;
  lastUsedAt: string;
  expiresAt: string;
  /** True for the session whose token the request used. */
  isCurrent: boolean;
}

export interface NewPersonSessionOptions {
  /** Caller of the sign-in request, whose previous session ends. */
  replacedCaller?: Caller | null;
  /** True if the person can only register a passkey in the session, because the account has no passphrase. */
  isProvisional?: boolean;
  /** ID of the OpenID provider at which the person signed in; null if the person signed in without a provider. */
  provider?: string | null;
}

export interface NewPersonSession {
  token: string;
  expiresAt: string;
}

const USER_AGENT_MAX_CHARACTERS = 1_000;
const UNKNOWN_DEVICE = "Unknown device";

function describeDevice(userAgent: string | undefined): string {
  if (!userAgent) return UNKNOWN_DEVICE;
  const { browser, os } = Bowser.parse(userAgent.slice(0, USER_AGENT_MAX_CHARACTERS));
  const browserNames = [browser.name, os.name].filter((name) => name);
  return browserNames.length > 0 ? browserNames.join(" on ").slice(0, 100) : UNKNOWN_DEVICE;
}

const INSERT_SESSION = `
  INSERT INTO person_session (credential_id, person_id, is_provisional, device, address, provider)
  VALUES ($1, $2, $3, $4, $5, $6)`;

const SELECT_SESSIONS = `
  SELECT c.id, s.device, s.address, s.created_at AS "createdAt", s.last_used_at AS "lastUsedAt", c.expires_at AS "expiresAt"
    FROM person_session s JOIN credential c ON c.id = s.credential_id
   WHERE s.person_id = $1 AND c.revoked_at IS NULL AND c.expires_at > now()
   ORDER BY s.last_used_at DESC, c.id DESC LIMIT 1000`;

/* Ends sessions, together with the tokens of pages that were opened in these sessions. */
const END_SESSIONS = `
  WITH ended AS (
    UPDATE credential SET revoked_at = now()
     WHERE revoked_at IS NULL AND id IN
       (SELECT credential_id FROM person_session
         WHERE person_id = $1 AND ($2::bigint IS NULL OR credential_id = $2) AND credential_id IS DISTINCT FROM $3::bigint)
    RETURNING id),
  pages AS (
    UPDATE credential SET revoked_at = now() FROM ended WHERE parent_id = ended.id AND page_session AND credential.revoked_at IS NULL)
  SELECT id FROM ended`;

const END_SESSIONS_AND_TOKENS =
  "UPDATE credential SET revoked_at = now() WHERE person_id = $1 AND kind = 'editor' AND revoked_at IS NULL";

const REVOKE_GRANTS = "UPDATE oauth_grant SET revoked_at = now() WHERE person_id = $1 AND revoked_at IS NULL";

const CLEAR_PROVISIONAL_FLAG = "UPDATE person_session SET is_provisional = false WHERE credential_id = $1";

export class PersonSessions {
  constructor(private readonly options: { db: Db; credentials: Credentials }) {}

  /** Ends the session `id`. If `id` is null, ends all sessions except `exceptId`. Returns the number of ended sessions. */
  private async endSessions(
    personId: number,
    id: number | null,
    exceptId: number | null,
    executor: SqlClient,
  ): Promise<number> {
    const endedSessions = await rows(executor, END_SESSIONS, [personId, id, exceptId]);
    if (endedSessions.length > 0) await this.options.credentials.clearCallerCaches(executor);
    return endedSessions.length;
  }

  /** Starts a session and ends the browser's previous session, so that the token of the previous session stops working. */
  async beginSession(
    personId: number,
    { address, userAgent }: SessionClientInfo,
    { replacedCaller = null, isProvisional = false, provider = null }: NewPersonSessionOptions = {},
    executor: SqlClient = this.options.db,
  ): Promise<NewPersonSession> {
    if (replacedCaller?.session && replacedCaller.personId !== null) {
      await this.endSessions(replacedCaller.personId, replacedCaller.credentialId, null, executor);
    }
    const expiresAt = new Date(Date.now() + PERSON_SESSION_IDLE_TIMEOUT_MS);
    const { id, token } = await this.options.credentials.issue(
      { kind: "editor", personId, name: "session", expiresAt },
      executor,
    );
    await rows(executor, INSERT_SESSION, [
      id,
      personId,
      isProvisional,
      describeDevice(userAgent),
      address ?? null,
      provider,
    ]);
    await executor.query("UPDATE person SET last_seen_at = now() WHERE id = $1", [personId]);
    return { token, expiresAt: expiresAt.toISOString() };
  }

  /** Returns the person's valid sessions, the most recently used first. */
  async list(personId: number, currentId: number): Promise<PersonSession[]> {
    type Row = Record<"createdAt" | "lastUsedAt" | "expiresAt", Date> &
      Pick<PersonSession, "id" | "device" | "address">;
    return (await rows<Row>(this.options.db, SELECT_SESSIONS, [personId])).map(
      ({ createdAt, lastUsedAt, expiresAt, ...row }) => ({
        ...row,
        createdAt: createdAt.toISOString(),
        updatedAt: createdAt.toISOString(),
        lastUsedAt: lastUsedAt.toISOString(),
        expiresAt: expiresAt.toISOString(),
        isCurrent: row.id === currentId,
      }),
    );
  }

  /** Returns the ID of the OpenID provider with which the person started the session; null for another sign-in method. */
  async findSessionProvider(id: number): Promise<string | null> {
    const sql = "SELECT provider FROM person_session WHERE credential_id = $1";
    return (await rows<{ provider: string | null }>(this.options.db, sql, [id]))[0]?.provider ?? null;
  }

  /** Ends one session of the person in every process. @throws NOT_FOUND, RESOURCE_CHANGED */
  async endSession(personId: number, id: number, precondition?: ExpectedVersions): Promise<void> {
    if (precondition) {
      const sessions = await this.list(personId, id);
      const session = sessions.find((session) => session.id === id);
      if (session) requireExpectedItemVersion(session, [sessions], precondition);
    }
    if (!(await this.endSessionIfValid(personId, id))) throw new ActionError("NOT_FOUND", "no such session");
  }

  /** Same as `endSession`, but returns false if the session has already ended. */
  async endSessionIfValid(personId: number, id: number): Promise<boolean> {
    return this.options.db.transaction(async (manager) => {
      await lockSignInMethods(manager, personId);
      return (await this.endSessions(personId, id, null, manager)) > 0;
    });
  }

  /** Ends all sessions of the person. If `exceptId` is set, the session with this ID stays valid. */
  async endAllSessions(personId: number, exceptId: number | null = null, executor?: SqlClient): Promise<void> {
    if (!executor) return this.options.db.transaction((manager) => this.endAllSessions(personId, exceptId, manager));
    await lockSignInMethods(executor, personId);
    await this.endSessions(personId, null, exceptId, executor);
  }

  /** Ends the person's sessions and editor tokens, and the access that the person has granted to programs. */
  async endAllSessionsAndTokens(personId: number, executor: SqlClient): Promise<void> {
    await executor.query(END_SESSIONS_AND_TOKENS, [personId]);
    await executor.query(REVOKE_GRANTS, [personId]);
    await this.options.credentials.clearCallerCaches(executor);
  }

  /** Gives full rights to a provisional session, when the person has registered a passkey or set a passphrase. */
  async grantFullRights(credentialId: number, executor: SqlClient = this.options.db): Promise<void> {
    await executor.query(CLEAR_PROVISIONAL_FLAG, [credentialId]);
    await this.options.credentials.clearCallerCaches(executor);
  }
}
