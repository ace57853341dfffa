/** Page of the people of an organization or of an app: their roles, invitations and removal. Only owners and admins can change them. */
import { type FormEvent, useState } from "react";
import type { Role } from "../../../rules/roles.js";
import {
  CreateInvitation,
  CreateSignInResetLink,
  ListAppPeople,
  ListInvitations,
  ListOrganizationPeople,
  RemoveAppMember,
  RemoveOrganizationMember,
  RevokeInvitation,
  SetAppMember,
  SetOrganizationMember,
} from "../documents.js";
import { capitalize, formatAge, formatExactTime } from "../shared/format.js";
import type { Invitation, Member } from "../shared/model.js";
import { NewSecretNotice } from "../shared/secret-once.js";
import { useNewResourceForm } from "../shared/use-new-values.js";
import { type Resource, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { mayManage } from "../shell/rights.js";
import { parseId } from "../shell/studio-route.js";
import { getFullName } from "./people.js";

const ROLE_DESCRIPTIONS: Readonly<Record<Role, string>> = {
  owner: "full access, can add other owners",
  admin: "full access, manages people below owner",
  editor: "writes actions, data and settings",
  operator: "runs, cancels and pauses; sees no code",
  reader: "reads code, runs and data; changes nothing",
};
const ROLE_ORDER = Object.keys(ROLE_DESCRIPTIONS) as Role[];

const INVITATION_LIFETIMES: readonly [hours: number, label: string][] = [
  [24, "1 day"],
  [168, "7 days"],
  [720, "30 days"],
];

const REFRESH_INTERVAL_MS = 10_000;

interface MembersAndInvitations {
  members: Member[];
  /** Invitations that are not accepted yet; null if the signed-in person may not see invitations. */
  invitations: Invitation[] | null;
}

interface PeoplePanelProps extends Pick<PageProps, "api" | "confirm"> {
  organizationId: number;
  /** ID of the app whose people the panel shows; null to show the people of the whole organization. */
  appId: number | null;
  /** Role of the signed-in person, which limits the roles that this person can assign. */
  callerRole: Role;
}

type OneTimeLink = { label: string; secret: string };

/** Returns the roles that a person with the role `callerRole` can assign: this role and all lower ones. */
const getGrantableRoles = (callerRole: Role): Role[] => ROLE_ORDER.slice(ROLE_ORDER.indexOf(callerRole));

function RoleChoice({
  callerRole,
  value,
  isBusy,
  onChange,
  label,
}: {
  callerRole: Role;
  value: Role;
  isBusy: boolean;
  onChange: (role: Role) => void;
  label: string;
}) {
  const roles = getGrantableRoles(callerRole);
  return (
    <label>
      <span className="unseen">{label}</span>
      <select
        value={value}
        disabled={!roles.includes(value)}
        aria-disabled={isBusy}
        title={ROLE_DESCRIPTIONS[value]}
        onChange={(event) => {
          if (!isBusy) onChange(event.target.value as Role);
        }}
      >
        {(roles.includes(value) ? roles : [value]).map((role) => (
          <option key={role} value={role}>
            {capitalize(role)}
          </option>
        ))}
      </select>
    </label>
  );
}

function InviteForm({
  people,
  callerRole,
  invite,
}: {
  people: Resource<MembersAndInvitations>;
  callerRole: Role;
  invite: (data: NewInvitation) => Promise<boolean>;
}) {
  const { values: email, setValues: setEmail, clearSaved } = useNewResourceForm("");
  const [role, setRole] = useState<Role>("reader");
  const [hours, setHours] = useState(168);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await invite({ email: email.trim(), role, expiresInHours: hours })) clearSaved(email);
  };
  return (
    <form className="row labelled" aria-label="Invite a person" onSubmit={(event) => void submit(event)}>
      <label>
        <span>E-mail address</span>
        <input
          type="email"
          required
          aria-label="E-mail address"
          placeholder="ann@example.com"
          autoComplete="off"
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
      </label>
      <label>
        <span>Role</span>
        <select value={role} onChange={(event) => setRole(event.target.value as Role)}>
          {getGrantableRoles(callerRole).map((role) => (
            <option key={role} value={role}>
              {capitalize(role)}: {ROLE_DESCRIPTIONS[role]}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>Link valid for</span>
        <select value={hours} onChange={(event) => setHours(Number(event.target.value))}>
          {INVITATION_LIFETIMES.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" className="primary" disabled={people.isBusy || email.trim() === ""}>
        Invite
      </button>
    </form>
  );
}

interface NewInvitation {
  email: string;
  role: Role;
  expiresInHours: number;
}

interface MemberRowProps {
  member: Member;
  callerRole: Role;
  /** True while a change is sent and the list is read again. A second change during this time would use outdated data of the member. */
  isBusy: boolean;
  setRole: (role: Role) => void;
  removeMember: () => void;
  createResetLink: (() => void) | null;
}

function MemberRow({
  member: { user, role, lastSeenAt },
  callerRole,
  isBusy,
  setRole,
  removeMember,
  createResetLink,
}: MemberRowProps) {
  const name = getFullName(user);
  const canChangeRole = getGrantableRoles(callerRole).includes(role);
  return (
    <li>
      <b>{name}</b>
      <span className="hint grow">{user.email}</span>
      <span className="hint" title={lastSeenAt ? formatExactTime(lastSeenAt) : undefined}>
        {lastSeenAt ? `last seen ${formatAge(lastSeenAt)}` : "never signed in"}
      </span>
      {/* A line break must not separate these elements. */}
      <span className="row">
        {mayManage(callerRole) ? (
          <RoleChoice label={`Role of ${name}`} {...{ callerRole, isBusy }} value={role} onChange={setRole} />
        ) : (
          <span className="chip">{role}</span>
        )}
        {mayManage(callerRole) && canChangeRole && (
          <>
            {createResetLink && (
              <button
                type="button"
                className="quiet"
                aria-label={`Reset link for ${name}`}
                disabled={isBusy}
                onClick={createResetLink}
              >
                Reset link
              </button>
            )}
            <button
              type="button"
              className="quiet danger-text"
              aria-label={`Remove ${name}`}
              disabled={isBusy}
              onClick={removeMember}
            >
              Remove
            </button>
          </>
        )}
      </span>
    </li>
  );
}

function InvitationList({
  invitations,
  isBusy,
  revoke,
}: {
  invitations: Invitation[];
  isBusy: boolean;
  revoke: (invitation: Invitation) => void;
}) {
  if (invitations.length === 0) return null;
  return (
    <>
      <h3>Pending invitations</h3>
      <ul className="records" aria-label="Pending invitations">
        {invitations.map((invitation) => (
          <li key={invitation.id}>
            <b className="grow">{invitation.email}</b>
            <span className="chip">{invitation.role}</span>
            {invitation.appId !== null && <span className="hint">app {invitation.appId}</span>}
            <span className="hint">expires {formatExactTime(invitation.expiresAt)}</span>
            <button
              type="button"
              className="quiet danger-text"
              aria-label={`Revoke the invitation of ${invitation.email}`}
              disabled={isBusy}
              onClick={() => revoke(invitation)}
            >
              Revoke
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Hook with the members and invitations, and with functions that change roles and remove members. */
function usePeople({ api, appId, organizationId, callerRole }: PeoplePanelProps) {
  const isManager = mayManage(callerRole);
  const list = useResource({
    queryKey: ["people", organizationId, appId, isManager],
    async queryFn(): Promise<MembersAndInvitations> {
      const memberRequest =
        appId === null
          ? api.request(ListOrganizationPeople, { organizationId })
          : api.request(ListAppPeople, { appId });
      const invitationRequest = isManager ? api.request(ListInvitations, { organizationId, ofApp: appId }) : null;
      const [{ members }, invitationList] = await Promise.all([memberRequest, invitationRequest]);
      return { members, invitations: invitationList?.invitations ?? null };
    },
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  const setRole = ({ user: { id: userId }, updatedAt: ifUpdatedAt }: Member, role: Role) =>
    list.applyChange(() =>
      appId === null
        ? api.request(SetOrganizationMember, { organizationId, userId, role, ifUpdatedAt })
        : api.request(SetAppMember, { appId, userId, role, ifUpdatedAt }),
    );
  const removeMember = ({ user: { id: userId }, updatedAt: ifUpdatedAt }: Member) =>
    list.applyChange(() =>
      appId === null
        ? api.request(RemoveOrganizationMember, { organizationId, userId, ifUpdatedAt })
        : api.request(RemoveAppMember, { appId, userId, ifUpdatedAt }),
    );
  return { list, setRole, removeMember };
}

function PeoplePanel(props: PeoplePanelProps) {
  const { api, confirm, organizationId, appId, callerRole } = props;
  const { list, setRole, removeMember } = usePeople(props);
  const [newLink, setNewLink] = useState<OneTimeLink | null>(null);
  const invite = async (data: NewInvitation) => {
    const response = await list.applyChange(() =>
      api.request(CreateInvitation, { organizationId, data: { ...data, appId } }),
    );
    if (response) setNewLink({ label: `Link for ${response.created.invitation.email}`, secret: response.created.link });
    return response !== null;
  };
  const confirmAndRemove = async (member: Member) => {
    const { user } = member;
    const text =
      appId === null
        ? "The person loses all roles in this organization and on its apps immediately. Without another role, the person is also signed out."
        : "The person loses the role on this app immediately. Without another role, the person is also signed out.";
    if (
      await confirm({
        title: `Remove ${getFullName(user)}?`,
        explanation: text,
        confirmLabel: "Remove",
        isDangerous: true,
      })
    )
      await removeMember(member);
  };
  const revoke = async ({ id, email }: Invitation) => {
    const text = "The link stops working. You can invite the person again.";
    const isConfirmed = await confirm({
      title: `Revoke the invitation of ${email}?`,
      explanation: text,
      confirmLabel: "Revoke",
      isDangerous: true,
    });
    if (isConfirmed) await list.applyChange(() => api.request(RevokeInvitation, { organizationId, id }));
  };
  const createResetLink = async ({ user }: Member) => {
    const response = await list.applyChange(() =>
      api.request(CreateSignInResetLink, { organizationId, userId: user.id }),
    );
    if (response) setNewLink({ label: `Reset link for ${getFullName(user)}`, secret: response.created.link });
  };
  const { members, invitations } = list.value ?? { members: [], invitations: null };
  return (
    <>
      {mayManage(callerRole) ? (
        <InviteForm {...{ people: list, callerRole, invite }} />
      ) : (
        <p className="hint">Owners and admins invite people and change roles.</p>
      )}
      <p className="fault" role="alert">
        {list.fault}
      </p>
      {newLink && <NewSecretNotice {...newLink} onClose={() => setNewLink(null)} />}
      <ul className="records" aria-label="People">
        {members.map((member) => (
          <MemberRow
            key={member.user.id}
            {...{ member, callerRole }}
            isBusy={list.isBusy}
            setRole={(role) => void setRole(member, role)}
            removeMember={() => void confirmAndRemove(member)}
            createResetLink={appId === null ? () => void createResetLink(member) : null}
          />
        ))}
      </ul>
      {list.value && members.length === 0 && <p className="hint">No one has a role here yet.</p>}
      {invitations && (
        <InvitationList {...{ invitations }} isBusy={list.isBusy} revoke={(invitation) => void revoke(invitation)} />
      )}
    </>
  );
}

/** Page of the people who have a role on this app. */
export function AppPeople({ api, app, appId, confirm, role }: PageProps) {
  return (
    <>
      <p className="hint">
        People with a role on this app only. People of the organization have their role on all of its apps.
      </p>
      <PeoplePanel {...{ api, confirm, appId }} organizationId={app.organizationId ?? 0} callerRole={role} />
    </>
  );
}

/** Page of the people of one organization. Its URL is `#/1/people/5` for the organization with the ID 5. */
export function OrganizationPeople({ api, confirm, route, organizations }: PageProps) {
  const organization = organizations.find(({ id }) => id === parseId(route.item));
  return (
    <div className="app-page">
      <section className="app-part" aria-labelledby="people">
        <h2 id="people">{organization ? `People of ${organization.name}` : "People"}</h2>
        {organization && mayManage(organization.role) ? (
          <PeoplePanel
            key={organization.id}
            {...{ api, confirm }}
            appId={null}
            organizationId={organization.id}
            callerRole={organization.role}
          />
        ) : (
          <p className="hint">Owners and admins of an organization see its people.</p>
        )}
      </section>
    </div>
  );
}
