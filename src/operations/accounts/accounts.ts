/**
 * Accounts of people: creates accounts from set-up links and invitations, signs people in by passphrase, changes and
 * resets passphrases. Sessions, one-time links and the counts of failed sign-ins are in other files of this folder.
 */
import type { EntityManager } from "typeorm";
import { runInBackground } from "../../background.js";
import { type Db, isUniqueViolation, rows, type SqlClient } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import { SETUP_LINK_LIFETIME_MS, SIGN_IN_RESET_LINK_LIFETIME_MS } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { requireEmail, requireText } from "../../rules/fields.js";
import { normalizePassphrase, parseNewPassphrase } from "../../rules/passphrase.js";
import { createFlatShape, refuseUnknownFields, throwIfUnknownField } from "../../rules/unknown-fields.js";
import { lockAdministrators } from "../access/administrator-right.js";
import type { People, User } from "../access/people.js";
import { type HashQueueKey, hashText, matchesHash } from "../records/hashes.js";
import { recordAccessEvent } from "./access-events.js";
import { lockPersonAndOneTimeLinks } from "./invalid-links.js";
import type { IssuedOneTimeLink, OneTimeLinks } from "./links.js";
import type { NewPersonSession, PersonSessions, SessionClientInfo } from "./person-sessions.js";
import type { PersonSignInAttempts } from "./sign-in-attempts.js";
import { lockCallersSignInMethods, lockPassphrase } from "./sign-in-methods.js";

/** Sign-in request of a browser. `caller` is the caller of the browser's previous session; null if the browser had no session. */
export interface SignInRequest extends SessionClientInfo {
  caller: Caller | null;
}

export interface SignInResult {
  user: User;
  session: NewPersonSession;
}

export interface IdentityProof {
  by: "passphrase" | "passkey" | "openid" | "invitation";
  /** ID of the OpenID provider; set only if the person signed in at a provider. */
  provider?: string;
}

/** Sends the link for a new passphrase to a person; null if the service has no mail server. */
export type SendResetLink = ((user: User, link: string) => Promise<void>) | null;

const USER_COLUMNS = `id, organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email`;
const SELECT_PERSON_BY_EMAIL = `SELECT ${USER_COLUMNS}, passphrase_hash AS "passphraseHash" FROM person WHERE lower(email) = lower($1)`;
const SELECT_PERSON_BY_ID = `SELECT ${USER_COLUMNS}, passphrase_hash AS "passphraseHash" FROM person WHERE id = $1`;
const INSERT_PERSON = `
  INSERT INTO person (organization_id, first_name, last_name, email, passphrase_hash, is_administrator)
  VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${USER_COLUMNS}`;
const INSERT_OWNER = "INSERT INTO organization_member (organization_id, person_id, role) VALUES ($1, $2, 'owner')";
const SET_PASSPHRASE = "UPDATE person SET passphrase_hash = $2 WHERE id = $1";
/**
 * Changes a person's names and passphrase hash. A null parameter keeps the value of its column. If there is a new hash ($4), the stored
 * hash must still be $5. Otherwise nothing changes, because another request has changed the passphrase.
 */
const UPDATE_PERSON = `
  UPDATE person SET first_name = coalesce($2, first_name), last_name = coalesce($3, last_name),
         passphrase_hash = coalesce($4, passphrase_hash)
   WHERE id = $1 AND ($4::text IS NULL OR passphrase_hash IS NOT DISTINCT FROM $5) RETURNING ${USER_COLUMNS}`;
const SELECT_ANY_ADMINISTRATOR = "SELECT 1 FROM person WHERE is_administrator LIMIT 1";
const LOCK_PERSON = "SELECT id FROM person WHERE id = $1 FOR NO KEY UPDATE";
const COUNT_RECENT_RESETS = `
  SELECT count(*) FROM one_time_link WHERE kind = 'reset' AND person_id = $1 AND created_at > now() - interval '10 minutes'`;

const RESETS_PER_ADDRESS = 10;
const RESETS_PER_PERSON = 3;
const PASSPHRASE_RESET_WINDOW_MS = 600_000;

const SETUP_BODY_SHAPE = createFlatShape(["token", "email", "firstName", "lastName", "passphrase"]);
const SIGN_IN_BODY_SHAPE = createFlatShape(["email", "passphrase"]);
const RESET_REQUEST_BODY_SHAPE = createFlatShape(["email"]);
const RESET_CONFIRMATION_BODY_SHAPE = createFlatShape(["token", "passphrase"]);
const ACCOUNT_FIELDS = ["firstName", "lastName", "passphrase", "currentPassphrase"];

interface PersonRow extends User {
  passphraseHash: string | null;
}

const createHashQueueKey = ({ address }: SessionClientInfo): HashQueueKey => ({
  appId: 0,
  sender: getAddressBlock(address ?? ""),
});

const createWrongPassphraseError = () =>
  new ActionError("SIGN_IN_FAILED", '"currentPassphrase" is not the current passphrase of the account');

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

interface AccountsOptions {
  db: Db;
  people: People;
  sessions: PersonSessions;
  links: OneTimeLinks;
  attempts: PersonSignInAttempts;
  sendResetLink: SendResetLink;
}

async function insertPerson(values: unknown[], executor: SqlClient): Promise<User> {
  const [user] = await rows<User>(executor, INSERT_PERSON, values).catch((error: unknown) => {
    throw isUniqueViolation(error) ? new ActionError("EMAIL_IN_USE") : error;
  });
  return user!;
}

export class Accounts {
  private readonly resetBucket = createTokenBucket({ limit: RESETS_PER_ADDRESS, windowMs: PASSPHRASE_RESET_WINDOW_MS });

  constructor(private readonly options: AccountsOptions) {}

  private async findPerson(
    sql: string,
    key: unknown,
    executor: SqlClient = this.options.db,
  ): Promise<{ user: User; passphraseHash: string | null } | null> {
    const [foundPerson] = await rows<PersonRow>(executor, sql, [key]);
    if (!foundPerson) return null;
    const { passphraseHash, ...user } = foundPerson;
    return { user, passphraseHash };
  }

  /** Revokes all unused set-up links and creates one. The transaction must have called `lockAdministrators`. */
  private async replaceSetupLink(manager: EntityManager): Promise<IssuedOneTimeLink> {
    const { links } = this.options;
    await links.revokeAll("setup", null, manager);
    return links.issue({ kind: "setup", lifetimeMs: SETUP_LINK_LIFETIME_MS }, manager);
  }

  private async sendResetLinkTo(email: string, address: string | undefined): Promise<void> {
    const { db, links, sendResetLink } = this.options;
    const person = await this.findPerson(SELECT_PERSON_BY_EMAIL, email);
    if (!person || !sendResetLink) return;
    const { user } = person;
    const link = await db.transaction(async (manager) => {
      await rows(manager, LOCK_PERSON, [user.id]);
      const [recentResets] = await rows<{ count: number }>(manager, COUNT_RECENT_RESETS, [user.id]);
      if (recentResets!.count >= RESETS_PER_PERSON) return null;
      await recordAccessEvent(manager, { type: "person.resetRequested", subjectId: user.id, address });
      return (
        await links.issue({ kind: "reset", personId: user.id, lifetimeMs: SIGN_IN_RESET_LINK_LIFETIME_MS }, manager)
      ).link;
    });
    if (link !== null) await sendResetLink(user, link);
  }

  async requireUser(id: number, executor?: SqlClient): Promise<User> {
    const foundPerson = await this.findPerson(SELECT_PERSON_BY_ID, id, executor);
    if (!foundPerson) throw new ActionError("NOT_FOUND", "no such person");
    return foundPerson.user;
  }

  /**
   * Creates a one-time link with which a person creates an administrator account. Revokes all earlier unused set-up links, so that only one
   * set-up link is valid.
   */
  async createSetupLink(): Promise<IssuedOneTimeLink> {
    return this.options.db.transaction(async (manager) => {
      await lockAdministrators(manager);
      return this.replaceSetupLink(manager);
    });
  }

  /** Same as `createSetupLink`, for the first administrator. Returns null if the service already has an administrator. */
  async createFirstSetupLink(): Promise<IssuedOneTimeLink | null> {
    return this.options.db.transaction(async (manager) => {
      await lockAdministrators(manager);
      return (await rows(manager, SELECT_ANY_ADMINISTRATOR)).length > 0 ? null : this.replaceSetupLink(manager);
    });
  }

  /**
   * Creates an administrator of the service and starts a session for them. If `body` has no passphrase, the session
   * can only register a passkey at first.
   * @throws REQUEST_INVALID, PASSPHRASE_TOO_WEAK, LINK_EXPIRED, EMAIL_IN_USE
   */
  async setup(request: SignInRequest, body: Record<string, unknown>): Promise<SignInResult> {
    const { db, people, sessions, links } = this.options;
    const email = requireEmail(body["email"], "email");
    const names = [requireText(body["firstName"], "firstName"), requireText(body["lastName"], "lastName")];
    const passphrase = isPresent(body["passphrase"]) ? parseNewPassphrase(body["passphrase"]) : null;
    await links.readValidLink(body["token"], "setup");
    const passphraseHash = passphrase === null ? null : await hashText(passphrase, createHashQueueKey(request));
    const organizationId = await people.requireOrganizationId(null);
    return db.transaction(async (manager) => {
      await lockAdministrators(manager);
      await links.redeem(body["token"], "setup", manager);
      const user = await insertPerson([organizationId, ...names, email, passphraseHash, true], manager);
      await manager.query(INSERT_OWNER, [organizationId, user.id]);
      refuseUnknownFields(body, SETUP_BODY_SHAPE);
      const sessionOptions = { replacedCaller: request.caller, isProvisional: passphraseHash === null };
      const session = await sessions.beginSession(user.id, request, sessionOptions, manager);
      const { address } = request;
      await recordAccessEvent(manager, { type: "person.setup", personId: user.id, subjectId: user.id, address });
      return { user, session };
    });
  }

  /**
   * Creates an account for an invited person and starts a session for them. If `body` has no passphrase, the session
   * can only register a passkey at first.
   * @param acceptInvitation marks the invitation as used, in the transaction that creates the account
   * @throws REQUEST_INVALID, PASSPHRASE_TOO_WEAK, EMAIL_IN_USE
   */
  async join(
    request: SignInRequest,
    body: Record<string, unknown>,
    { email, organizationId }: { email: string; organizationId: number },
    acceptInvitation: (user: User, manager: EntityManager) => Promise<void>,
  ): Promise<SignInResult> {
    const { db, sessions } = this.options;
    const names = [requireText(body["firstName"], "firstName"), requireText(body["lastName"], "lastName")];
    const passphrase = isPresent(body["passphrase"]) ? parseNewPassphrase(body["passphrase"]) : null;
    const passphraseHash = passphrase === null ? null : await hashText(passphrase, createHashQueueKey(request));
    return db.transaction(async (manager) => {
      const user = await insertPerson([organizationId, ...names, email, passphraseHash, false], manager);
      await acceptInvitation(user, manager);
      const sessionOptions = { replacedCaller: request.caller, isProvisional: passphraseHash === null };
      return { user, session: await sessions.beginSession(user.id, request, sessionOptions, manager) };
    });
  }

  /**
   * Signs a person in by passphrase. The response and its duration are the same for an unknown account, an account
   * without a passphrase, and a wrong passphrase.
   * @throws REQUEST_INVALID; SIGN_IN_FAILED; RATE_LIMIT_EXCEEDED after too many failures; OVERLOADED
   */
  async signIn(request: SignInRequest, body: Record<string, unknown>): Promise<SignInResult> {
    const { db, attempts } = this.options;
    const email = requireEmail(body["email"], "email");
    const passphrase = normalizePassphrase(body["passphrase"]);
    const { address } = request;
    const person = await attempts.runCountedAttempt(email.toLowerCase(), address, async () => {
      const foundPerson = await this.findPerson(SELECT_PERSON_BY_EMAIL, email);
      return (await matchesHash(passphrase, foundPerson?.passphraseHash ?? null, createHashQueueKey(request)))
        ? foundPerson
        : null;
    });
    if (person) {
      refuseUnknownFields(body, SIGN_IN_BODY_SHAPE);
      const signedIn = await db.transaction(async (manager) => {
        if (!(await lockPassphrase(manager, person.user.id, person.passphraseHash!))) return null;
        return this.beginSession(request, person.user, { by: "passphrase" }, manager);
      });
      if (signedIn) return signedIn;
    }
    await recordAccessEvent(db, { type: "person.signInFailed", address, data: { email } });
    throw new ActionError("SIGN_IN_FAILED");
  }

  /**
   * Starts a session for a person who has proven their identity. Before the call, the transaction of `executor` must
   * lock the sign-in method, and then check that it is still valid. Otherwise a reset that ends all sessions could miss
   * the new session.
   */
  async beginSession(
    request: SignInRequest,
    user: User,
    proof: IdentityProof,
    executor: EntityManager,
  ): Promise<SignInResult> {
    const { address, caller: replacedCaller } = request;
    const { by, provider = null } = proof;
    const session = await this.options.sessions.beginSession(user.id, request, { replacedCaller, provider }, executor);
    const data = provider === null ? { by } : { by, provider };
    await recordAccessEvent(executor, {
      type: "person.signIn",
      personId: user.id,
      subjectId: user.id,
      address,
      data,
    });
    return { user, session };
  }

  /** Ends the caller's session. Does nothing if the session has ended, or if the caller's token does not belong to a session. */
  async signOut({ caller, address }: SignInRequest): Promise<void> {
    const { db, sessions } = this.options;
    if (!caller?.session || caller.personId === null) return;
    const { personId } = caller;
    // Another request, such as a sign-out in another tab, may have ended the session at the same time.
    if (!(await sessions.endSessionIfValid(personId, caller.credentialId))) return;
    await recordAccessEvent(db, { type: "person.signOut", personId, subjectId: personId, address });
  }

  /**
   * Sends a link for a new passphrase if the account exists; at most three links per account in ten minutes. Returns
   * before it looks for the account, so that the duration does not reveal whether the account exists.
   * @throws ActionError REQUEST_INVALID; RATE_LIMIT_EXCEEDED if the network address sent too many requests
   */
  requestReset({ address }: SignInRequest, body: Record<string, unknown>): void {
    const email = requireEmail(body["email"], "email");
    refuseUnknownFields(body, RESET_REQUEST_BODY_SHAPE);
    const retryAfter = this.resetBucket.takeTokens(getAddressBlock(address ?? ""));
    if (retryAfter > 0) {
      const message = `too many requests for a new passphrase from this network address; try again in ${retryAfter} s`;
      throw createRateLimitError(message, retryAfter);
    }
    runInBackground(this.sendResetLinkTo(email, address));
  }

  /**
   * Creates a link for a new passphrase, which an administrator sends to the person.
   * @param creator the administrator
   * @param check throws if the administrator may not create the link; runs in the same transaction
   */
  async createResetLink(
    personId: number,
    creator: Pick<Caller, "personId" | "address" | "unknownField">,
    check: (manager: EntityManager) => Promise<void>,
  ): Promise<IssuedOneTimeLink> {
    const { db, links } = this.options;
    return db.transaction(async (manager) => {
      await check(manager);
      throwIfUnknownField(creator);
      const { personId: createdBy, address } = creator;
      const resetLink = await links.issue(
        { kind: "reset", personId, createdBy, lifetimeMs: SIGN_IN_RESET_LINK_LIFETIME_MS },
        manager,
      );
      await recordAccessEvent(manager, { type: "person.resetLink", personId: createdBy, subjectId: personId, address });
      return resetLink;
    });
  }

  /**
   * Sets a new passphrase for the person of the reset link. Ends the person's sessions and editor tokens, and the access of
   * authorized programs. The person's passkeys and identities at OpenID providers stay valid.
   * @throws PASSPHRASE_TOO_WEAK, LINK_EXPIRED
   */
  async confirmReset(request: SignInRequest, body: Record<string, unknown>): Promise<void> {
    const { db, sessions, links } = this.options;
    const passphrase = parseNewPassphrase(body["passphrase"]);
    const { id: linkId, personId } = await links.readValidLink(body["token"], "reset");
    const passphraseHash = await hashText(passphrase, createHashQueueKey(request));
    await db.transaction(async (manager) => {
      await lockPersonAndOneTimeLinks(manager, personId!, linkId);
      await links.redeem(body["token"], "reset", manager);
      refuseUnknownFields(body, RESET_CONFIRMATION_BODY_SHAPE);
      await manager.query(SET_PASSPHRASE, [personId, passphraseHash]);
      await links.revokeAll("reset", personId, manager);
      await sessions.endAllSessionsAndTokens(personId!, manager);
      await recordAccessEvent(manager, { type: "person.reset", subjectId: personId, address: request.address });
    });
  }

  /**
   * Changes the caller's first name, last name or passphrase. If the account already has a passphrase, a request with a new one must
   * also contain the current one. A new passphrase ends all other sessions of the person.
   * @throws REQUEST_INVALID, PASSPHRASE_TOO_WEAK, SIGN_IN_FAILED, RATE_LIMIT_EXCEEDED
   */
  async update(request: SignInRequest & { caller: Caller }, body: Record<string, unknown>): Promise<User> {
    const { db, sessions, attempts } = this.options;
    const { credentialId, personId } = request.caller;
    const foundPerson = await this.findPerson(SELECT_PERSON_BY_ID, personId);
    if (!foundPerson) throw new ActionError("NOT_FOUND", "no such person");
    const { user, passphraseHash } = foundPerson;
    const name = (field: "firstName" | "lastName") => (isPresent(body[field]) ? requireText(body[field], field) : null);
    const names = [name("firstName"), name("lastName")];
    const passphrase = isPresent(body["passphrase"]) ? parseNewPassphrase(body["passphrase"]) : null;
    if (passphrase !== null && passphraseHash !== null) {
      const currentPassphrase = normalizePassphrase(body["currentPassphrase"], "currentPassphrase");
      const isPassphraseCorrect = await attempts.runCountedAttempt(
        user.email.toLowerCase(),
        request.address,
        async () => ((await matchesHash(currentPassphrase, passphraseHash, createHashQueueKey(request))) ? true : null),
      );
      if (!isPassphraseCorrect) throw createWrongPassphraseError();
    }
    // Clients may send unchanged fields of the account back. A changed ID or e-mail address counts as an unknown field.
    const unchangedFields = Object.entries(user).flatMap(([field, value]) => (body[field] === value ? [field] : []));
    refuseUnknownFields(body, createFlatShape(ACCOUNT_FIELDS, unchangedFields));
    const newPassphraseHash = passphrase === null ? null : await hashText(passphrase, createHashQueueKey(request));
    return db.transaction(async (manager) => {
      if (newPassphraseHash !== null) await lockCallersSignInMethods(manager, { personId: user.id, credentialId });
      const values = [user.id, ...names, newPassphraseHash, passphraseHash];
      const [changedUser] = await rows<User>(manager, UPDATE_PERSON, values);
      if (!changedUser) throw createWrongPassphraseError();
      if (newPassphraseHash === null) return changedUser;
      await sessions.endAllSessions(user.id, credentialId, manager);
      await sessions.grantFullRights(credentialId, manager);
      const { address } = request;
      await recordAccessEvent(manager, { type: "person.passphrase", personId: user.id, subjectId: user.id, address });
      return changedUser;
    });
  }
}
