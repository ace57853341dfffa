/**
 * Passkeys of people: a signed-in person registers a passkey, and can later sign in with it. The WebAuthn library verifies passkeys; this
 * file stores keys and challenges. A challenge can be used once, within five minutes, in any process.
 */
import { hash } from "node:crypto";
import type {
  AuthenticationResponseJSON,
  AuthenticatorTransport,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import { type Db, isUniqueViolation, rows } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { getAddressBlock } from "../../rules/address-block.js";
import { isObject } from "../../rules/describe-value.js";
import { requireText } from "../../rules/fields.js";
import { type ExpectedVersions, requireExpectedItemVersion } from "../../rules/precondition.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import type { User } from "../access/people.js";
import { recordAccessEvent } from "./access-events.js";
import type { Accounts, SignInRequest, SignInResult } from "./accounts.js";
import type { PersonSessions } from "./person-sessions.js";
import type { PersonSignInAttempts } from "./sign-in-attempts.js";
import { lockCallersSignInMethods, lockSignInMethods, requireSignInMethod } from "./sign-in-methods.js";

/** A passkey as responses contain it, without its public key. Times are ISO 8601. */
export interface Passkey {
  id: number;
  name: string;
  createdAt: string;
  /** Equals `createdAt`: requests can remove a passkey, but not change it. */
  updatedAt: string;
  lastUsedAt: string | null;
}

/** Origin of the page that requests a passkey from the browser. A passkey only works on the host name of this origin. */
export interface PasskeyPageOrigin {
  origin: string;
}

/** Request of a signed-in person. */
export type SignedInRequest = SignInRequest & { caller: Caller & { personId: number } };

/** Loads the WebAuthn library. This takes 85 ms, so the service calls this function at its start, while it connects to the database. */
export const loadWebAuthn = () => import("@simplewebauthn/server");

const SERVICE_NAME = "Svc App Actions";
const CHALLENGE_SECONDS = 300;
const CHALLENGES_PER_ADDRESS = 60;
const CHALLENGE_WINDOW_MS = 60_000;
const PASSKEYS_PER_PERSON = 20;
/** COSE identifiers of Ed25519, ES256 and RS256. The library's default list has algorithms that Node reports as experimental. */
const PASSKEY_ALGORITHMS = [-8, -7, -257];
const DEFAULT_PASSKEY_NAME = "Passkey";

const SELECT_USER = `
  SELECT id, organization_id AS "organizationId", first_name AS "firstName", last_name AS "lastName", email FROM person WHERE id = $1`;
const INSERT_CHALLENGE = `
  INSERT INTO passkey_challenge (hash, session_id, expires_at) VALUES ($1, $2, now() + interval '${CHALLENGE_SECONDS} seconds')`;
const DELETE_OLD_CHALLENGES = `
  DELETE FROM passkey_challenge WHERE hash IN
    (SELECT hash FROM passkey_challenge WHERE expires_at < now() LIMIT 20 FOR UPDATE SKIP LOCKED)`;
const DELETE_VALID_CHALLENGE = `
  DELETE FROM passkey_challenge
   WHERE hash = $1 AND session_id IS NOT DISTINCT FROM $2::bigint AND expires_at > now() RETURNING hash`;
const PASSKEY_COLUMNS = `id, name, created_at AS "createdAt", last_used_at AS "lastUsedAt"`;
const SELECT_PASSKEYS_OF_PERSON = `SELECT ${PASSKEY_COLUMNS} FROM passkey WHERE person_id = $1 AND ($2::bigint IS NULL OR id = $2) ORDER BY id`;
const SELECT_PASSKEY_IDS = `SELECT credential_id AS id, transports FROM passkey WHERE person_id = $1`;
const INSERT_PASSKEY = `
  INSERT INTO passkey (person_id, credential_id, public_key, counter, transports, name)
  VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${PASSKEY_COLUMNS}`;
const SELECT_PASSKEY = `
  SELECT id, person_id AS "personId", public_key AS "publicKey", counter, transports FROM passkey WHERE credential_id = $1`;
const MARK_PASSKEY_USED = "UPDATE passkey SET counter = $2, last_used_at = now() WHERE id = $1 RETURNING id";
const DELETE_PASSKEY = "DELETE FROM passkey WHERE id = $1 AND person_id = $2 RETURNING id";

interface UsedPasskey {
  id: number;
  personId: number;
  /** Signature counter of the authenticator, which the service stores for the next sign-in. */
  counter: number;
}

type PasskeyRow = Pick<Passkey, "id" | "name"> & { createdAt: Date; lastUsedAt: Date | null };

const toPasskey = ({ createdAt, lastUsedAt, ...row }: PasskeyRow): Passkey => ({
  ...row,
  createdAt: createdAt.toISOString(),
  updatedAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
});

const hashChallenge = (challenge: string): Buffer => hash("sha256", challenge, "buffer");

/** Fields of the browser's WebAuthn response. The library checks their contents. */
const CREDENTIAL_SHAPE = createFlatShape([
  "id",
  "rawId",
  "type",
  "response",
  "clientExtensionResults",
  "authenticatorAttachment",
]);

/** Checks only the fields that this file reads. The WebAuthn library checks the response later. @throws REQUEST_INVALID */
function checkWebAuthnResponse(body: Record<string, unknown>): void {
  const { id, response } = body;
  if (typeof id !== "string" || id === "" || id.length > 2_000 || !isObject(response)) {
    throw new ActionError(
      "REQUEST_INVALID",
      'the body must be a WebAuthn credential as JSON, with "id" (a text of 1 to 2000 characters) and "response" (an object)',
    );
  }
}

interface PasskeysOptions {
  db: Db;
  accounts: Accounts;
  sessions: PersonSessions;
  attempts: PersonSignInAttempts;
}

export class Passkeys {
  private readonly challengeBucket = createTokenBucket({
    limit: CHALLENGES_PER_ADDRESS,
    windowMs: CHALLENGE_WINDOW_MS,
  });

  constructor(private readonly options: PasskeysOptions) {}

  private async storeChallenge(
    challenge: string,
    sessionId: number | null,
    address: string | undefined,
  ): Promise<void> {
    const { db } = this.options;
    const retryAfter = this.challengeBucket.takeTokens(getAddressBlock(address ?? ""));
    if (retryAfter > 0) {
      const message = `too many requests for passkey options from this network address; try again in ${retryAfter} s`;
      throw createRateLimitError(message, retryAfter);
    }
    await rows(db, DELETE_OLD_CHALLENGES);
    await rows(db, INSERT_CHALLENGE, [hashChallenge(challenge), sessionId]);
  }

  /**
   * Returns a function that deletes a valid challenge. The function returns false if the challenge is not valid. A challenge is valid until
   * it expires, for the session to which it was issued. If `sessionId` is null, only challenges for a sign-in are valid.
   */
  private createChallengeConsumer(sessionId: number | null) {
    return async (challenge: string) =>
      (await rows(this.options.db, DELETE_VALID_CHALLENGE, [hashChallenge(challenge), sessionId])).length > 0;
  }

  private async verifyRegistration(
    { caller }: SignedInRequest,
    { origin }: PasskeyPageOrigin,
    body: Record<string, unknown>,
  ) {
    const verification = await (await loadWebAuthn())
      .verifyRegistrationResponse({
        response: body as unknown as RegistrationResponseJSON,
        expectedChallenge: this.createChallengeConsumer(caller.credentialId),
        expectedOrigin: origin,
        expectedRPID: new URL(origin).hostname,
        supportedAlgorithmIDs: PASSKEY_ALGORITHMS,
      })
      // The library throws if the response is invalid.
      .catch(() => null);
    if (verification?.verified) return verification.registrationInfo.credential;
    throw new ActionError(
      "REQUEST_INVALID",
      "the passkey could not be verified; request new registration options and try again",
    );
  }

  /** Returns the passkey that signed a valid challenge of this service; null if the passkey is unknown or its signature is not valid. */
  private async verifySignIn(
    { origin }: PasskeyPageOrigin,
    body: Record<string, unknown>,
  ): Promise<UsedPasskey | null> {
    type PasskeyWithKey = {
      id: number;
      personId: number;
      publicKey: Buffer;
      counter: number;
      transports: AuthenticatorTransport[];
    };
    const [passkey] = await rows<PasskeyWithKey>(this.options.db, SELECT_PASSKEY, [body["id"]]);
    if (!passkey) return null;
    const { publicKey, counter, transports } = passkey;
    const verification = await (await loadWebAuthn())
      .verifyAuthenticationResponse({
        response: body as unknown as AuthenticationResponseJSON,
        expectedChallenge: this.createChallengeConsumer(null),
        expectedOrigin: origin,
        expectedRPID: new URL(origin).hostname,
        credential: { id: body["id"] as string, publicKey: new Uint8Array(publicKey), counter, transports },
      })
      // The library throws if the response is invalid.
      .catch(() => null);
    if (!verification?.verified) return null;
    refuseUnknownFields(body, CREDENTIAL_SHAPE);
    return { id: passkey.id, personId: passkey.personId, counter: verification.authenticationInfo.newCounter };
  }

  /** Starts a session of the passkey's person. Returns null if the passkey was removed after its verification. */
  private async beginSession(request: SignInRequest, { id, personId, counter }: UsedPasskey) {
    const { db, accounts } = this.options;
    const user = await accounts.requireUser(personId);
    return db.transaction(async (manager) => {
      await lockSignInMethods(manager, personId);
      if ((await rows(manager, MARK_PASSKEY_USED, [id, counter])).length === 0) return null;
      return accounts.beginSession(request, user, { by: "passkey" }, manager);
    });
  }

  async list(personId: number): Promise<Passkey[]> {
    return (await rows<PasskeyRow>(this.options.db, SELECT_PASSKEYS_OF_PERSON, [personId, null])).map(toPasskey);
  }

  async get(personId: number, id: number): Promise<Passkey> {
    const [row] = await rows<PasskeyRow>(this.options.db, SELECT_PASSKEYS_OF_PERSON, [personId, id]);
    if (!row) throw new ActionError("NOT_FOUND", "no such passkey");
    return toPasskey(row);
  }

  /** Returns the WebAuthn options with which the browser creates a passkey. @throws RATE_LIMIT_EXCEEDED */
  async createRegistrationOptions(
    { caller, address }: SignedInRequest,
    { origin }: PasskeyPageOrigin,
  ): Promise<PublicKeyCredentialCreationOptionsJSON> {
    const { db } = this.options;
    const [user] = await rows<User>(db, SELECT_USER, [caller.personId]);
    const registrationOptions = await (await loadWebAuthn()).generateRegistrationOptions({
      rpName: SERVICE_NAME,
      rpID: new URL(origin).hostname,
      userName: user!.email,
      userDisplayName: `${user!.firstName} ${user!.lastName}`,
      excludeCredentials: await rows(db, SELECT_PASSKEY_IDS, [caller.personId]),
      supportedAlgorithmIDs: PASSKEY_ALGORITHMS,
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
    });
    await this.storeChallenge(registrationOptions.challenge, caller.credentialId, address);
    return registrationOptions;
  }

  /**
   * Stores a passkey that the browser created. A session that could only register a passkey gets full rights.
   * @throws REQUEST_INVALID
   */
  async register(request: SignedInRequest, page: PasskeyPageOrigin, body: Record<string, unknown>): Promise<Passkey> {
    const { db, sessions } = this.options;
    const { caller, address } = request;
    const { personId, credentialId } = caller;
    const { name: input, ...response } = body;
    const name = input === undefined || input === null ? DEFAULT_PASSKEY_NAME : requireText(input, "name");
    checkWebAuthnResponse(response);
    const { id, publicKey, counter, transports = [] } = await this.verifyRegistration(request, page, response);
    return db.transaction(async (manager) => {
      await lockCallersSignInMethods(manager, caller);
      if ((await rows(manager, SELECT_PASSKEYS_OF_PERSON, [personId, null])).length >= PASSKEYS_PER_PERSON) {
        throw new ActionError(
          "REQUEST_INVALID",
          `a person can have at most ${PASSKEYS_PER_PERSON} passkeys; remove one first`,
        );
      }
      const values = [personId, id, Buffer.from(publicKey), counter, JSON.stringify(transports), name];
      const [row] = await rows<PasskeyRow>(manager, INSERT_PASSKEY, values).catch((error: unknown) => {
        throw isUniqueViolation(error)
          ? new ActionError("REQUEST_INVALID", "this passkey is already registered")
          : error;
      });
      refuseUnknownFields(response, CREDENTIAL_SHAPE);
      await sessions.grantFullRights(credentialId, manager);
      await recordAccessEvent(manager, { type: "person.passkey.create", personId, subjectId: personId, address });
      return toPasskey(row!);
    });
  }

  /**
   * Returns the WebAuthn options for a sign-in. The options name no passkey, so the browser can offer all passkeys for this service.
   * @throws RATE_LIMIT_EXCEEDED
   */
  async createAuthenticationOptions(
    { address }: SignInRequest,
    { origin }: PasskeyPageOrigin,
  ): Promise<PublicKeyCredentialRequestOptionsJSON> {
    const signInOptions = await (await loadWebAuthn()).generateAuthenticationOptions({
      rpID: new URL(origin).hostname,
      userVerification: "required",
    });
    await this.storeChallenge(signInOptions.challenge, null, address);
    return signInOptions;
  }

  /**
   * Signs in the person whose passkey signed the challenge.
   * @throws REQUEST_INVALID; SIGN_IN_FAILED; RATE_LIMIT_EXCEEDED
   */
  async signIn(request: SignInRequest, page: PasskeyPageOrigin, body: Record<string, unknown>): Promise<SignInResult> {
    const { db, attempts } = this.options;
    checkWebAuthnResponse(body);
    const { address } = request;
    const passkey = await attempts.runCountedAttempt(`passkey ${body["id"]}`, address, () =>
      this.verifySignIn(page, body),
    );
    const signedIn = passkey && (await this.beginSession(request, passkey));
    if (signedIn) return signedIn;
    await recordAccessEvent(db, { type: "person.signInFailed", address, data: { by: "passkey" } });
    throw new ActionError("SIGN_IN_FAILED");
  }

  /**
   * Removes a passkey of the caller.
   * @throws NOT_FOUND; RESOURCE_CHANGED; REQUEST_INVALID if the person could not sign in without this passkey
   */
  async remove({ caller, address }: SignedInRequest, id: number, precondition?: ExpectedVersions): Promise<void> {
    const { personId } = caller;
    await this.options.db.transaction(async (manager) => {
      await lockSignInMethods(manager, personId);
      const passkeys = (await rows<PasskeyRow>(manager, SELECT_PASSKEYS_OF_PERSON, [personId, null])).map(toPasskey);
      const passkey = passkeys.find((passkey) => passkey.id === id);
      if (passkey) requireExpectedItemVersion(passkey, [passkeys], precondition);
      if ((await rows(manager, DELETE_PASSKEY, [id, personId])).length === 0) {
        throw new ActionError("NOT_FOUND", "no such passkey");
      }
      await requireSignInMethod(manager, personId);
      await recordAccessEvent(manager, { type: "person.passkey.delete", personId, subjectId: personId, address });
    });
  }
}
