/**
 * Creates, revokes and accepts invitations. If the invited e-mail address belongs to an account, only a session of this account can accept
 * the invitation. So the link cannot be used to take over the account.
 */
import type { EntityManager } from "typeorm";
import { runInBackground } from "../../background.js";
import { type Db, rows } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import {
  INVITATION_LIFETIME_DEFAULT_HOURS,
  INVITATION_LIFETIME_MAX_HOURS,
  PENDING_INVITATIONS_PER_ORGANIZATION_MAX,
} from "../../limits.js";
import { type Caller, isPersonCaller } from "../../rules/access.js";
import { describeValue } from "../../rules/describe-value.js";
import { requireEmail } from "../../rules/fields.js";
import { type ExpectedVersions, requireExpectedItemVersion } from "../../rules/precondition.js";
import { isRoleAbove, parseRole, type RoleScope } from "../../rules/roles.js";
import { createFlatShape, refuseUnknownFields, throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { Credentials } from "../access/credentials.js";
import type { User } from "../access/people.js";
import { recordAccessEvent } from "../accounts/access-events.js";
import type { Accounts, SignInRequest, SignInResult } from "../accounts/accounts.js";
import { lockPersonAndOneTimeLinks } from "../accounts/invalid-links.js";
import type { OneTimeLinks } from "../accounts/links.js";
import { requireMemberCapacity } from "../accounts/member-limit.js";
import {
  findPendingInvitation,
  type Invitation,
  insertInvitation,
  listPendingInvitations,
  readInvitationByLinkId,
  revokeInvitation,
} from "./invitation-rows.js";
import { createTooHighRoleError, type Members } from "./members.js";

const HOUR_MS = 3_600_000;
const INVITATIONS_PER_HOUR_MAX = 200;

const ACCEPT_BODY_SHAPE = createFlatShape(["token", "firstName", "lastName", "passphrase"]);

/** Sends the invitation's link to the invited e-mail address; null if the service has no mail server. */
export type SendInvitation = ((invitation: Invitation, link: string) => Promise<void>) | null;

/** Result of accepting an invitation. `session` is null if the person was already signed in. */
export interface AcceptedInvitation {
  user: User;
  /** Time at which the person's session expires, as ISO 8601 text; null if it does not expire. */
  expiresAt: string | null;
  session: SignInResult["session"] | null;
}

/** Parses the lifetime of an invitation, in hours. @throws REQUEST_INVALID */
function parseLifetimeHours(value: unknown): number {
  if (value === undefined || value === null) return INVITATION_LIFETIME_DEFAULT_HOURS;
  const hours = value as number;
  if (Number.isSafeInteger(value) && hours >= 1 && hours <= INVITATION_LIFETIME_MAX_HOURS) return hours;
  const message = `expiresInHours must be an integer from 1 to ${INVITATION_LIFETIME_MAX_HOURS} (got ${describeValue(value)})`;
  throw new ActionError("REQUEST_INVALID", message);
}

export const createInvitationNotFoundError = (): ActionError =>
  new ActionError("NOT_FOUND", "the organization has no pending invitation with this ID");

interface InvitationsOptions {
  db: Db;
  credentials: Credentials;
  members: Members;
  accounts: Accounts;
  links: OneTimeLinks;
  send: SendInvitation;
}

export class Invitations {
  private readonly invitationBucket = createTokenBucket({ limit: INVITATIONS_PER_HOUR_MAX, windowMs: HOUR_MS });

  constructor(private readonly options: InvitationsOptions) {}

  /** Redeems the link of an invitation. First locks rows in the same order as a role change does, to prevent deadlocks. */
  private async redeemLink(
    manager: EntityManager,
    scope: RoleScope,
    personId: number,
    { id, token }: { id: number; token: unknown },
  ): Promise<void> {
    const { members, links } = this.options;
    await members.lockOrganization(manager, scope);
    await lockPersonAndOneTimeLinks(manager, personId, id);
    await links.redeem(token, "invitation", manager);
  }

  /** Gives the person the role of the invitation, unless the person already has this role or a higher one. */
  private async joinOrganization(
    user: User,
    { organizationId, appId, role }: Invitation,
    request: SignInRequest,
    { body, linkId }: { body: Record<string, unknown>; linkId: number },
  ) {
    const { db, credentials, members } = this.options;
    const scope = { organizationId, appId };
    await db.transaction(async (manager) => {
      await this.redeemLink(manager, scope, user.id, { id: linkId, token: body["token"] });
      const before = await members.readRoleInScope(manager, scope, user.id);
      if (isRoleAbove(role, before)) {
        await requireMemberCapacity(manager, scope, user.id);
        await members.writeRole(manager, scope, user.id, role);
      }
      refuseUnknownFields(body, ACCEPT_BODY_SHAPE);
      const actor = { personId: user.id, credentialId: request.caller!.credentialId, address: request.address };
      await members.recordRoleChange(manager, actor, scope, {
        type: "invitation.accept",
        subjectId: user.id,
        data: { role, before },
      });
    });
    await credentials.clearCallerCaches();
  }

  /**
   * Counts an invitation in the limit of the organization. Call this function after all checks, so that rejected requests do not count.
   * @throws RATE_LIMIT_EXCEEDED
   */
  private countInvitation(organizationId: number): void {
    const retryAfter = this.invitationBucket.takeTokens(String(organizationId));
    if (retryAfter > 0)
      throw createRateLimitError("the organization has created too many invitations; try again later", retryAfter);
  }

  list(scope: RoleScope): Promise<Invitation[]> {
    return listPendingInvitations(this.options.db, scope);
  }

  find(organizationId: number, id: number) {
    return findPendingInvitation(this.options.db, organizationId, id);
  }

  /**
   * Creates an invitation, and sends its link by e-mail if the service has a mail server. The service stores only a hash of the link, so
   * this is the only response with the link.
   * @throws ActionError REQUEST_INVALID; FORBIDDEN for a role above the caller's role; RATE_LIMIT_EXCEEDED
   */
  async create(
    caller: Caller,
    scope: RoleScope,
    data: Record<string, unknown>,
  ): Promise<{ invitation: Invitation; link: string }> {
    const { db, members, links, send } = this.options;
    const email = requireEmail(data["email"], "email");
    const role = parseRole(data["role"], "role");
    const lifetimeMs = parseLifetimeHours(data["expiresInHours"]) * HOUR_MS;
    const { personId, address } = caller;
    const issuedInvitation = await db.transaction(async (manager) => {
      await members.lockOrganization(manager, scope);
      const callerRole = await members.requireManagingRole(manager, caller, scope);
      if (isRoleAbove(role, callerRole)) throw createTooHighRoleError(`the role ${role}`);
      const { organizationId } = scope;
      const pending = await listPendingInvitations(manager, { organizationId, appId: null });
      if (pending.length >= PENDING_INVITATIONS_PER_ORGANIZATION_MAX) {
        throw new ActionError(
          "REQUEST_INVALID",
          `an organization can have at most ${PENDING_INVITATIONS_PER_ORGANIZATION_MAX} pending invitations; revoke one first`,
        );
      }
      const link = await links.issue({ kind: "invitation", createdBy: personId, lifetimeMs }, manager);
      const invitation = await insertInvitation(manager, link.id, scope, { email, role });
      throwIfUnknownField(caller);
      this.countInvitation(organizationId);
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
  }

  /** Revokes an invitation. @throws NOT_FOUND if the invitation is not pending any more; FORBIDDEN; RESOURCE_CHANGED */
  async revoke(caller: Caller, invitation: Invitation, precondition?: ExpectedVersions): Promise<void> {
    const { db, members } = this.options;
    const { personId, address } = caller;
    const { id, organizationId, email, role, appId } = invitation;
    await db.transaction(async (manager) => {
      await members.lockOrganization(manager, invitation);
      await members.requireManagingRole(manager, caller, invitation);
      if (precondition) {
        const pendingLists = [null, appId].map((invitedTo) =>
          listPendingInvitations(manager, { organizationId, appId: invitedTo }),
        );
        requireExpectedItemVersion(invitation, await Promise.all(pendingLists), precondition);
      }
      if (!(await revokeInvitation(manager, id))) throw createInvitationNotFoundError();
      throwIfUnknownField(caller);
      const data = { email, role, invitationId: id };
      await recordAccessEvent(manager, { type: "invitation.delete", organizationId, personId, address, data });
    });
  }

  /**
   * Accepts an invitation. If no account has the invited e-mail address, creates one and signs in; otherwise adds the role to the account.
   * @throws LINK_EXPIRED; UNAUTHORIZED if an account exists and the request has no session of this account; REQUEST_INVALID;
   * PASSPHRASE_TOO_WEAK; EMAIL_IN_USE
   */
  async accept(request: SignInRequest, body: Record<string, unknown>): Promise<AcceptedInvitation> {
    const { db, credentials, members, accounts, links } = this.options;
    const link = await links.readValidLink(body["token"], "invitation");
    const invitation = await readInvitationByLinkId(db, link.id);
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
      const user = await accounts.requireUser(owner.id);
      await this.joinOrganization(user, invitation, request, { body, linkId: link.id });
      const { expiresAt } = caller;
      return {
        user,
        session: null,
        expiresAt: Number.isFinite(expiresAt) ? new Date(expiresAt).toISOString() : null,
      };
    }
    const joinedPerson = accounts.join(request, body, { email, organizationId }, async (user, manager) => {
      const scope = { organizationId, appId };
      await this.redeemLink(manager, scope, user.id, { id: link.id, token: body["token"] });
      await requireMemberCapacity(manager, scope, user.id);
      await members.writeRole(manager, scope, user.id, role);
      refuseUnknownFields(body, ACCEPT_BODY_SHAPE);
      const actor = { personId: user.id, credentialId: null, address: request.address };
      const data = { role, before: null };
      await members.recordRoleChange(manager, actor, scope, { type: "invitation.accept", subjectId: user.id, data });
    });
    const signedIn = await joinedPerson.catch(async (error: unknown) => {
      // If a concurrent request used the same link, LINK_EXPIRED explains the error better than EMAIL_IN_USE.
      if (error instanceof ActionError && error.status === "EMAIL_IN_USE")
        await links.readValidLink(body["token"], "invitation");
      throw error;
    });
    await credentials.clearCallerCaches();
    return { ...signedIn, expiresAt: signedIn.session.expiresAt };
  }
}
