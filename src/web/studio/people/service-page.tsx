/** Page for administrators of the service. Lists organizations with their members, and the administrators. */
import { useState } from "react";
import {
  AddAdministrator,
  ListAdministrators,
  type ListAdministratorsQuery,
  ListOrganizationPeople,
  RemoveAdministrator,
} from "../documents.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { Administrator, Member } from "../shared/model.js";
import { createQueryOptions, type Resource, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { createHref } from "../shell/studio-route.js";
import { getFullName } from "./people.js";

interface AdministratorProps extends Pick<PageProps, "api" | "confirm"> {
  administrators: Resource<ListAdministratorsQuery>;
}

function AdministratorList({ api, confirm, administrators }: AdministratorProps) {
  const { value, fault, isBusy, applyChange } = administrators;
  const removeAdministrator = async (person: Administrator) => {
    const text = "The person keeps all roles in organizations and on apps. Without a role, the person is signed out.";
    const title = `Remove ${getFullName(person)} as an administrator of the service?`;
    if (!(await confirm({ title, explanation: text, confirmLabel: "Remove", isDangerous: true }))) return;
    await applyChange(() => api.request(RemoveAdministrator, { userId: person.id, ifUpdatedAt: person.updatedAt }));
  };
  return (
    <section aria-labelledby="administrators">
      <h2 id="administrators">Administrators of the service</h2>
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul className="records" aria-label="Administrators">
        {value?.administrators.map((person) => (
          <li key={person.id}>
            <b>{getFullName(person)}</b>
            <span className="hint grow">{person.email}</span>
            {person.updatedAt && <span className="hint">since {formatExactTime(person.updatedAt)}</span>}
            <button
              type="button"
              className="quiet danger-text"
              disabled={isBusy}
              aria-label={`Remove the administrator ${getFullName(person)}`}
              onClick={() => void removeAdministrator(person)}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      {value?.administrators.length === 0 && (
        <p className="hint">No person administers the service yet, only tokens do.</p>
      )}
    </section>
  );
}

function MemberRow({
  member,
  isAdministrator,
  makeAdministrator,
}: {
  member: Member;
  isAdministrator: boolean;
  makeAdministrator: () => void;
}) {
  const { user, role, lastSeenAt } = member;
  const name = getFullName(user);
  return (
    <li>
      <b>{name}</b>
      <span className="hint grow">{user.email}</span>
      <span className="hint" title={lastSeenAt ? formatExactTime(lastSeenAt) : undefined}>
        {lastSeenAt ? `last seen ${formatAge(lastSeenAt)}` : "never signed in"}
      </span>
      <span className="chip">{role}</span>
      {isAdministrator ? (
        <span className="chip">administrator</span>
      ) : (
        <button type="button" className="quiet" aria-label={`Make administrator: ${name}`} onClick={makeAdministrator}>
          Make administrator
        </button>
      )}
    </li>
  );
}

interface OrganizationMembersProps extends AdministratorProps {
  organizationId: number;
}

function OrganizationMembers({ api, confirm, administrators, organizationId }: OrganizationMembersProps) {
  const { value, fault } = useResource(createQueryOptions(ListOrganizationPeople, { organizationId }));
  const raise = async ({ user }: Member) => {
    const title = `Make ${getFullName(user)} an administrator of the service?`;
    const text =
      "Administrators have the rights of an owner in every organization and app, and can add other administrators.";
    if (!(await confirm({ title, explanation: text, confirmLabel: "Make administrator", isDangerous: true }))) return;
    await administrators.applyChange(() => api.request(AddAdministrator, { userId: user.id }));
  };
  return (
    <>
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul className="records" aria-label="People">
        {value?.members.map((member) => (
          <MemberRow
            key={member.user.id}
            member={member}
            isAdministrator={administrators.value?.administrators.some(({ id }) => id === member.user.id) ?? false}
            makeAdministrator={() => void raise(member)}
          />
        ))}
      </ul>
      {value?.members.length === 0 && <p className="hint">No person has a role in this organization yet.</p>}
    </>
  );
}

function OrganizationSections({ appId, organizations }: Pick<PageProps, "appId" | "organizations">) {
  return (
    <section aria-labelledby="organizations">
      <h2 id="organizations">Organizations</h2>
      <ul className="records" aria-label="Organizations">
        {organizations.map(({ id, name }) => (
          <li key={id}>
            <span className="chip">{id}</span>
            <b className="grow">{name}</b>
            <a href={createHref({ appId, view: "people", item: String(id) })} aria-label={`People of ${name}`}>
              People
            </a>
            <a href={createHref({ appId, view: "access", item: String(id) })} aria-label={`Audit log of ${name}`}>
              Audit log
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function ServiceSections({ api, confirm, appId, organizations }: PageProps) {
  const [chosenOrganizationId, setChosenOrganizationId] = useState(organizations[0]?.id ?? null);
  const administrators = useResource(createQueryOptions(ListAdministrators, {}));
  return (
    <>
      <AdministratorList {...{ api, confirm, administrators }} />
      <OrganizationSections {...{ appId, organizations }} />
      <section aria-labelledby="people-of">
        <h2 id="people-of">People</h2>
        <label className="row">
          Organization
          <select
            value={chosenOrganizationId ?? ""}
            onChange={(event) => setChosenOrganizationId(Number(event.target.value))}
          >
            {organizations.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {chosenOrganizationId !== null && (
          <OrganizationMembers
            key={chosenOrganizationId}
            {...{ api, confirm, administrators }}
            organizationId={chosenOrganizationId}
          />
        )}
      </section>
    </>
  );
}

export function ServicePage(props: PageProps) {
  return (
    <div className="app-page">
      <div className="app-part">
        {props.isAdmin ? (
          <ServiceSections {...props} />
        ) : (
          <p className="hint">This page is for administrators of the service.</p>
        )}
      </div>
    </div>
  );
}
