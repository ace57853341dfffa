/**
 * Creates, revokes and accepts invitations. Each can be accepted once. An invitation to the address of an existing
 * account can be accepted only in that account's own session, so that a link cannot take over an account.
 */
import type { DataSource } from "typeorm";
import { runInBackground } from "../../background.js";
import { rows } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, rateLimitError } from "../../errors.js";
import { INVITATION_HOURS, INVITATION_MAX_HOURS, INVITATIONS_MAX } from "../../limits.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import { describeValue } from "../../rules/described.js";
import { requireEmail } from "../../rules/fields.js";
import { type ExpectedTags, requireExpectedItemVersion } from "../../rules/precondition.js";
import { isRoleAbove, parseRole, type RoleScope } from "../../rules/roles.js";
import { flatShape, refuseUnknownFields, reportUnknownField } from "../../rules/unknown-fields.js";
import type { Credentials } from "../access/credentials.js";
import type { User } from "../access/people.js";
import { recordAccessEvent } from "../accounts/access-events.js";
import type { Accounts, SignInRequest, SignInResult } from "../accounts/accounts.js";
import type { Links } from "../accounts/links.js";
import {
  type Invitation,
  insertInvitation,
  invitationOfLink,
  pendingInvitation,
  pendingInvitations,
  revokeInvitation,
} from "./invitation-rows.js";
import type { Members } from "./members.js";

const HOUR_MS = 3_600_000;
const INVITATIONS_PER_HOUR = 200;

const ACCEPT_FIELDS = flatShape(["token", "firstName", "lastName", "passphrase"]);

/** Sends the link to the invited person; null if the service has no mail server. */
export type SendInvitation = ((invitation: Invitation, link: string) => Promise<void>) | null;

/** Result of an accepted invitation. `session` is null if the account was already signed in. */
export interface AcceptedInvitation {
  user: User;
  /** ISO 8601; null for a credential that does not expire. */
  expiresAt: string | null;
  session: SignInResult["session"] | null;
}

/** @throws REQUEST_INVALID */
function hoursOf(value: unknown): number {
  if (value === undefined || value === null) return INVITATION_HOURS;
  const hours = value as number;
  if (Number.isSafeInteger(value) && hours >= 1 && hours <= INVITATION_MAX_HOURS) return hours;
  const message = `expiresInHours must be an integer from 1 to ${INVITATION_MAX_HOURS} (got ${describeValue(value)})`;
  throw new ActionError("REQUEST_INVALID", message);
}

export type Invitations = ReturnType<typeof createInvitations>;

export function createInvitations(options: {
  db: DataSource;
  credentials: Credentials;
  members: Members;
  accounts: Accounts;
  links: Links;
  send: SendInvitation;
}) {
  const { db, credentials, members, accounts, links, send } = options;
  const invitationBucket = createTokenBucket({ limit: INVITATIONS_PER_HOUR, windowMs: HOUR_MS });

  /** Gives the person the invited role, unless the person already has this role or a higher one. */
  async function joinOrganization(
    user: User,
    { organizationId, appId, role }: Invitation,
    request: SignInRequest,
    body: Record<string, unknown>,
  ) {
    const scope = { organizationId, appId };
    await db.transaction(async (manager) => {
      await members.lockOrganization(manager, scope);
      await links.redeem(body["token"], "invitation", manager);
      const before = await members.roleAt(manager, scope, user.id);
      if (isRoleAbove(role, before)) {
        if (before === null) await members.refuseTooMany(manager, scope);
        await members.writeRole(manager, scope, user.id, role);
      }
      refuseUnknownFields(body, ACCEPT_FIELDS);
      const actor = { personId: user.id, credentialId: request.caller!.credentialId, address: request.address };
      await members.recordRoleChange(manager, actor, scope, {
        type: "invitation.accept",
        subjectId: user.id,
        data: { role, before },
      });
    });
    await credentials.announce();
  }

  return {
    list: (scope: RoleScope): Promise<Invitation[]> => pendingInvitations(db, scope),

    /** Finds a pending invitation of the organization; undefined if there is none. */
    find: (organizationId: number, id: number) => pendingInvitation(db, organizationId, id),

    /**
     * Creates an invitation. Only this response and the invitation's e-mail contain the link.
     * @throws ActionError REQUEST_INVALID; FORBIDDEN for a role above the caller's; RATE_LIMIT_EXCEEDED
     */
    async create(
      caller: Caller,
      scope: RoleScope,
      data: Record<string, unknown>,
    ): Promise<{ invitation: Invitation; link: string }> {
      const email = requireEmail(data["email"], "email");
      const role = parseRole(data["role"], "role");
      const lifetimeMs = hoursOf(data["expiresInHours"]) * HOUR_MS;
      const retryAfter = invitationBucket.takeTokens(String(scope.organizationId));
      if (retryAfter > 0)
        throw rateLimitError("the organization has created too many invitations; try again later", retryAfter);
      const { personId, address } = caller;
      const issuedInvitation = await db.transaction(async (manager) => {
        await members.lockOrganization(manager, scope);
        const callerRank = await members.rankOf(manager, caller, scope);
        if (isRoleAbove(role, callerRank))
          throw new ActionError("FORBIDDEN", "permission denied: the role is above your own");
        const { organizationId } = scope;
        const pending = await pendingInvitations(manager, { organizationId, appId: null });
        if (pending.length >= INVITATIONS_MAX) {
          throw new ActionError(
            "REQUEST_INVALID",
            `an organization can have at most ${INVITATIONS_MAX} pending invitations; revoke one first`,
          );
        }
        const link = await links.issue({ kind: "invitation", createdBy: personId, lifetimeMs }, manager);
        const invitation = await insertInvitation(manager, link.id, scope, { email, role });
        reportUnknownField(caller);
        const invitationFacts = { email, role, appId: scope.appId, invitationId: invitation.id };
        await recordAccessEvent(manager, {
          type: "invitation.create",
          organizationId,
          personId,
          address,
          data: invitationFacts,
        });
        return { invitation, link: link.link };
      });
      if (send) runInBackground(send(issuedInvitation.invitation, issuedInvitation.link));
      return issuedInvitation;
    },

    /** @throws RESOURCE_CHANGED */
    async revoke({ personId, address }: Caller, invitation: Invitation, precondition?: ExpectedTags): Promise<void> {
      const { id, organizationId, email, role, appId } = invitation;
      await db.transaction(async (manager) => {
        if (precondition) {
          const pendingLists = [null, appId].map((invitedTo) =>
            pendingInvitations(manager, { organizationId, appId: invitedTo }),
          );
          requireExpectedItemVersion(invitation, await Promise.all(pendingLists), precondition);
        }
        await revokeInvitation(manager, id);
        const data = { email, role, invitationId: id };
        await recordAccessEvent(manager, { type: "invitation.delete", organizationId, personId, address, data });
      });
    },

    /**
     * Accepts an invitation: creates an account and signs in, or adds the role to the account with that address.
     * @throws LINK_EXPIRED; UNAUTHORIZED if the account exists and the request has no session of it; REQUEST_INVALID;
     *   PASSPHRASE_TOO_WEAK; EMAIL_IN_USE
     */
    async accept(request: SignInRequest, body: Record<string, unknown>): Promise<AcceptedInvitation> {
      const link = await links.peek(body["token"], "invitation");
      const invitation = await invitationOfLink(db, link.id);
      const { email, organizationId, appId, role } = invitation;
      const [owner] = await rows<{ id: number }>(db, "SELECT id FROM person WHERE lower(email) = lower($1)", [email]);
      if (owner) {
        const { caller } = request;
        if (!caller || !isPersonCaller(caller) || caller.personId !== owner.id) {
          throw new ActionError(
            "UNAUTHORIZED",
            "an account with this e-mail address exists; sign in to this account to accept the invitation",
          );
        }
        const user = await accounts.user(owner.id);
        await joinOrganization(user, invitation, request, body);
        const { expiresAt } = caller;
        return {
          user,
          session: null,
          expiresAt: Number.isFinite(expiresAt) ? new Date(expiresAt).toISOString() : null,
        };
      }
      const joinedPerson = accounts.join(request, body, { email, organizationId }, async (user, manager) => {
        const scope = { organizationId, appId };
        await members.lockOrganization(manager, scope);
        await links.redeem(body["token"], "invitation", manager);
        await members.refuseTooMany(manager, scope);
        await members.writeRole(manager, scope, user.id, role);
        refuseUnknownFields(body, ACCEPT_FIELDS);
        const actor = { personId: user.id, credentialId: null, address: request.address };
        const data = { role, before: null };
        await members.recordRoleChange(manager, actor, scope, { type: "invitation.accept", subjectId: user.id, data });
      });
      const signedIn = await joinedPerson.catch(async (error: unknown) => {
        // A concurrent request may have created the account with this link. Then `peek` throws LINK_EXPIRED.
        if (error instanceof ActionError && error.status === "EMAIL_IN_USE")
          await links.peek(body["token"], "invitation");
        throw error;
      });
      await credentials.announce();
      return { ...signedIn, expiresAt: signedIn.session.expiresAt };
    },
  };
}
