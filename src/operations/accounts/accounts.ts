/**
 * Accounts of people: the first administrator, sign-in by passphrase, reset of the passphrase. Other files in this
 * folder have sessions, links and counts of failures.
 */
import type { DataSource, EntityManager } from "typeorm";
import { runInBackground } from "../../background.js";
import { type Executor, isDuplicate, rows } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, rateLimitError } from "../../errors.js";
import { RESET_LINK_MS, SETUP_LINK_MS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { addressBlock } from "../../rules/address-block.js";
import { requiredEmail, requiredText } from "../../rules/fields.js";
import { checkPassphrase, readPassphrase } from "../../rules/passphrase.js";
import { flatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { People, User } from "../access/people.js";
import { type HashTurn, hashText, matchesHash } from "../records/hashes.js";
import { recordAccess } from "./access-events.js";
import type { IssuedLink, Links } from "./links.js";
import type { NewSession, PersonSessions, SessionOrigin } from "./person-sessions.js";
import type { SignInAttempts } from "./sign-in-attempts.js";

/** Sign-in request. `caller` is the caller of the session that the browser had before; null if it had none. */
export interface SignInRequest extends SessionOrigin {
  caller: Caller | null;
}

/** Result of a sign-in: the person and the new session. */
export interface SignInResult {
  user: User;
  session: NewSession;
}

/** Method by which a person has proven their identity. */
export interface IdentityProof {
  by: "passphrase" | "passkey" | "openid" | "invitation";
  /** ID of the OpenID provider. */
  provider?: string;
}

/** Sends a reset link to a person; null if the service has no mail server. */
export type SendReset = ((user: User, link: string) => Promise<void>) | null;

const USER_COLUMNS = `id, organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email`;
const BY_EMAIL = `SELECT ${USER_COLUMNS}, passphrase_hash AS "passphraseHash" FROM person WHERE lower(email) = lower($1)`;
const BY_ID = `SELECT ${USER_COLUMNS}, passphrase_hash AS "passphraseHash" FROM person WHERE id = $1`;
const INSERT_PERSON = `
  INSERT INTO person (organization_id, first_name, last_name, email, passphrase_hash, is_administrator)
  VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${USER_COLUMNS}`;
const MAKE_OWNER = "INSERT INTO organization_member (organization_id, person_id, role) VALUES ($1, $2, 'owner')";
const SET_PASSPHRASE = "UPDATE person SET passphrase_hash = $2 WHERE id = $1";
/* Selects a row if any administrator exists, including one who has never signed in and only uses tokens. */
const HAS_ADMINISTRATOR = "SELECT 1 FROM person WHERE is_administrator LIMIT 1";
const LOCK_PERSON = "SELECT id FROM person WHERE id = $1 FOR NO KEY UPDATE";
const RECENT_RESETS = `
  SELECT count(*) FROM one_time_link WHERE kind = 'reset' AND person_id = $1 AND created_at > now() - interval '10 minutes'`;

const RESETS_PER_ADDRESS = 10;
const RESETS_PER_PERSON = 3;
const RESET_WINDOW_MS = 600_000;

const SETUP_FIELDS = flatShape(["token", "email", "firstName", "lastName", "passphrase"]);
const SIGN_IN = flatShape(["email", "passphrase"]);
const RESET_FIELDS = flatShape(["email"]);
const CONFIRM_FIELDS = flatShape(["token", "passphrase"]);
const ACCOUNT_FIELDS = flatShape(["firstName", "lastName", "passphrase", "currentPassphrase"]);

interface PersonRow extends User {
  passphraseHash: string | null;
}

const hashTurnOf = ({ address }: SessionOrigin): HashTurn => ({ appId: 0, sender: addressBlock(address ?? "") });

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

export type Accounts = ReturnType<typeof createAccounts>;

export function createAccounts(options: {
  db: DataSource;
  people: People;
  sessions: PersonSessions;
  links: Links;
  attempts: SignInAttempts;
  sendReset: SendReset;
}) {
  const { db, people, sessions, links, attempts, sendReset } = options;
  const resetBucket = createTokenBucket({ limit: RESETS_PER_ADDRESS, windowMs: RESET_WINDOW_MS });

  async function personOf(sql: string, key: unknown): Promise<{ user: User; passphraseHash: string | null } | null> {
    const [foundPerson] = await rows<PersonRow>(db, sql, [key]);
    if (!foundPerson) return null;
    const { passphraseHash, ...user } = foundPerson;
    return { user, passphraseHash };
  }

  async function insertPerson(values: unknown[], executor: Executor): Promise<User> {
    const [user] = await rows<User>(executor, INSERT_PERSON, values).catch((error: unknown) => {
      throw isDuplicate(error) ? new ActionError("EMAIL_IN_USE") : error;
    });
    return user!;
  }

  async function sendResetTo(email: string, address: string | undefined): Promise<void> {
    const person = await personOf(BY_EMAIL, email);
    if (!person || !sendReset) return;
    const { user } = person;
    const link = await db.transaction(async (manager) => {
      await rows(manager, LOCK_PERSON, [user.id]);
      const [recent] = await rows<{ count: number }>(manager, RECENT_RESETS, [user.id]);
      if (recent!.count >= RESETS_PER_PERSON) return null;
      await recordAccess(manager, { type: "person.resetRequested", subjectId: user.id, address });
      return (await links.issue({ kind: "reset", personId: user.id, lifetimeMs: RESET_LINK_MS }, manager)).link;
    });
    if (link !== null) await sendReset(user, link);
  }

  return {
    /** Reads a person by ID. @throws NOT_FOUND */
    async user(id: number): Promise<User> {
      const foundPerson = await personOf(BY_ID, id);
      if (!foundPerson) throw new ActionError("NOT_FOUND", "no such person");
      return foundPerson.user;
    },

    /** True if the service has an administrator. */
    hasAdministrator: async (): Promise<boolean> => (await rows(db, HAS_ADMINISTRATOR)).length > 0,

    /** Creates the link with which the first administrator sets up an account; revokes an unused earlier link. */
    async createSetupLink(): Promise<IssuedLink> {
      return db.transaction(async (manager) => {
        await links.revokeAll("setup", null, manager);
        return links.issue({ kind: "setup", lifetimeMs: SETUP_LINK_MS }, manager);
      });
    },

    /**
     * Creates an administrator of the service and signs in. Without a passphrase the session must register a passkey
     * first.
     * @throws REQUEST_INVALID, PASSPHRASE_TOO_WEAK, LINK_EXPIRED, EMAIL_IN_USE
     */
    async setup(request: SignInRequest, body: Record<string, unknown>): Promise<SignInResult> {
      const email = requiredEmail(body["email"], "email");
      const names = [requiredText(body["firstName"], "firstName"), requiredText(body["lastName"], "lastName")];
      const passphrase = isPresent(body["passphrase"]) ? checkPassphrase(body["passphrase"]) : null;
      await links.peek(body["token"], "setup");
      const passphraseHash = passphrase === null ? null : await hashText(passphrase, hashTurnOf(request));
      const organizationId = await people.organizationOf(null);
      return db.transaction(async (manager) => {
        await links.redeem(body["token"], "setup", manager);
        const user = await insertPerson([organizationId, ...names, email, passphraseHash, true], manager);
        await manager.query(MAKE_OWNER, [organizationId, user.id]);
        refuseUnknownFields(body, SETUP_FIELDS);
        const sessionOptions = { replaced: request.caller, isProvisional: passphraseHash === null };
        const session = await sessions.beginSession(user.id, request, sessionOptions, manager);
        const { address } = request;
        await recordAccess(manager, { type: "person.setup", personId: user.id, subjectId: user.id, address });
        return { user, session };
      });
    },

    /**
     * Creates an account for an invited person and signs in. Without a passphrase the session must register a passkey
     * first.
     * @param acceptInvitation marks the invitation as used, in the transaction that creates the account
     * @throws REQUEST_INVALID, PASSPHRASE_TOO_WEAK, EMAIL_IN_USE
     */
    async join(
      request: SignInRequest,
      body: Record<string, unknown>,
      { email, organizationId }: { email: string; organizationId: number },
      acceptInvitation: (user: User, manager: EntityManager) => Promise<void>,
    ): Promise<SignInResult> {
      const names = [requiredText(body["firstName"], "firstName"), requiredText(body["lastName"], "lastName")];
      const passphrase = isPresent(body["passphrase"]) ? checkPassphrase(body["passphrase"]) : null;
      const passphraseHash = passphrase === null ? null : await hashText(passphrase, hashTurnOf(request));
      return db.transaction(async (manager) => {
        const user = await insertPerson([organizationId, ...names, email, passphraseHash, false], manager);
        await acceptInvitation(user, manager);
        const sessionOptions = { replaced: request.caller, isProvisional: passphraseHash === null };
        return { user, session: await sessions.beginSession(user.id, request, sessionOptions, manager) };
      });
    },

    /**
     * Signs in by passphrase. An unknown account, an account without a passphrase, and a wrong passphrase have the same
     * response and duration.
     * @throws REQUEST_INVALID; SIGN_IN_FAILED; RATE_LIMIT_EXCEEDED after too many failures; OVERLOADED
     */
    async signIn(request: SignInRequest, body: Record<string, unknown>): Promise<SignInResult> {
      const email = requiredEmail(body["email"], "email");
      const passphrase = readPassphrase(body["passphrase"]);
      const { address } = request;
      const user = await attempts.runCounted(email.toLowerCase(), address, async () => {
        const foundPerson = await personOf(BY_EMAIL, email);
        return (await matchesHash(passphrase, foundPerson?.passphraseHash ?? null, hashTurnOf(request)))
          ? foundPerson!.user
          : null;
      });
      if (!user) {
        await recordAccess(db, { type: "person.signInFailed", address, data: { email } });
        throw new ActionError("SIGN_IN_FAILED");
      }
      refuseUnknownFields(body, SIGN_IN);
      return this.beginSession(request, user, { by: "passphrase" });
    },

    /**
     * Starts a session for a person who has proven their identity, in the transaction of `executor` if it is set.
     */
    async beginSession(
      request: SignInRequest,
      user: User,
      proof: IdentityProof,
      executor?: EntityManager,
    ): Promise<SignInResult> {
      if (!executor) return db.transaction((manager) => this.beginSession(request, user, proof, manager));
      const { address, caller: replaced } = request;
      const { by, provider = null } = proof;
      const session = await sessions.beginSession(user.id, request, { replaced, provider }, executor);
      const data = provider === null ? { by } : { by, provider };
      await recordAccess(executor, { type: "person.signIn", personId: user.id, subjectId: user.id, address, data });
      return { user, session };
    },

    /** Ends the caller's session. Does nothing for a token that no sign-in has created. */
    async signOut({ caller, address }: SignInRequest): Promise<void> {
      if (!caller?.session || caller.personId === null) return;
      const { personId } = caller;
      await sessions.endSession(personId, caller.credentialId);
      await recordAccess(db, { type: "person.signOut", personId, subjectId: personId, address });
    },

    /**
     * Sends a reset link if the account exists. Returns before it looks for the account, so that the duration does not
     * reveal whether the account exists.
     * @throws ActionError REQUEST_INVALID; RATE_LIMIT_EXCEEDED for an address with too many requests
     */
    requestReset({ address }: SignInRequest, body: Record<string, unknown>): void {
      const email = requiredEmail(body["email"], "email");
      refuseUnknownFields(body, RESET_FIELDS);
      const retryAfter = resetBucket.takeTokens(addressBlock(address ?? ""));
      if (retryAfter > 0) throw rateLimitError("too many requests for a reset from this address", retryAfter);
      runInBackground(sendResetTo(email, address));
    },

    /**
     * Creates a reset link that an administrator passes on to the person.
     * @param check throws unless the administrator may create the link; runs in the same transaction
     */
    async createResetLink(
      personId: number,
      createdBy: number | null,
      check: (manager: EntityManager) => Promise<void>,
    ): Promise<IssuedLink> {
      return db.transaction(async (manager) => {
        await check(manager);
        const resetLink = await links.issue({ kind: "reset", personId, createdBy, lifetimeMs: RESET_LINK_MS }, manager);
        await recordAccess(manager, { type: "person.resetLink", personId: createdBy, subjectId: personId });
        return resetLink;
      });
    },

    /**
     * Sets a passphrase by a reset link. Ends all sessions and tokens of the person, and the access of programs, so
     * that afterwards only the person with the link can use the account.
     * @throws PASSPHRASE_TOO_WEAK, LINK_EXPIRED
     */
    async confirmReset(request: SignInRequest, body: Record<string, unknown>): Promise<void> {
      const passphrase = checkPassphrase(body["passphrase"]);
      await links.peek(body["token"], "reset");
      const passphraseHash = await hashText(passphrase, hashTurnOf(request));
      await db.transaction(async (manager) => {
        const { personId } = await links.redeem(body["token"], "reset", manager);
        refuseUnknownFields(body, CONFIRM_FIELDS);
        await manager.query(SET_PASSPHRASE, [personId, passphraseHash]);
        await links.revokeAll("reset", personId, manager);
        await sessions.endAllWithTokens(personId!, manager);
        await recordAccess(manager, { type: "person.reset", subjectId: personId, address: request.address });
      });
    },

    /**
     * Changes the caller's own names or passphrase. A new passphrase requires the current one, if the person has one,
     * and ends all other sessions.
     * @throws REQUEST_INVALID, PASSPHRASE_TOO_WEAK, SIGN_IN_FAILED, RATE_LIMIT_EXCEEDED
     */
    async update(request: SignInRequest & { caller: Caller }, body: Record<string, unknown>): Promise<User> {
      const { credentialId, personId } = request.caller;
      const foundPerson = await personOf(BY_ID, personId);
      if (!foundPerson) throw new ActionError("NOT_FOUND", "no such person");
      const { user, passphraseHash } = foundPerson;
      const name = (field: "firstName" | "lastName") =>
        isPresent(body[field]) ? requiredText(body[field], field) : user[field];
      const names = { firstName: name("firstName"), lastName: name("lastName") };
      const passphrase = isPresent(body["passphrase"]) ? checkPassphrase(body["passphrase"]) : null;
      if (passphrase !== null && passphraseHash !== null) {
        const currentPassphrase = readPassphrase(body["currentPassphrase"]);
        const isRight = await attempts.runCounted(user.email.toLowerCase(), request.address, async () =>
          (await matchesHash(currentPassphrase, passphraseHash, hashTurnOf(request))) ? true : null,
        );
        if (!isRight) throw new ActionError("SIGN_IN_FAILED", "currentPassphrase is wrong");
      }
      refuseUnknownFields(body, ACCOUNT_FIELDS);
      const hashed = passphrase === null ? null : await hashText(passphrase, hashTurnOf(request));
      await db.transaction(async (manager) => {
        const values = [user.id, names.firstName, names.lastName, hashed];
        await manager.query(
          `UPDATE person SET first_name = $2, last_name = $3, passphrase_hash = coalesce($4, passphrase_hash) WHERE id = $1`,
          values,
        );
        if (hashed === null) return;
        await sessions.endAll(user.id, credentialId, manager);
        await sessions.grantFullRights(credentialId, manager);
        const { address } = request;
        await recordAccess(manager, { type: "person.passphrase", personId: user.id, subjectId: user.id, address });
      });
      return { ...user, ...names };
    },
  };
}
