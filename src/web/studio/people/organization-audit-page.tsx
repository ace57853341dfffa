/** Audit log of access to an organization, newest first: sign-ins, roles, invitations, accounts. For its owners and admins. */
import { useCallback, useEffect, useState } from "react";
import { ListOrganizationPeople, ReadOrganizationAudit } from "../documents.js";
import { asApiError } from "../shared/api.js";
import { exact, inWords, moment } from "../shared/format.js";
import type { AccessEntry } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { idOf } from "../shell/place.js";
import { mayManage } from "../shell/rights.js";
import { fullName } from "./people.js";

const PAGE = 100;
/** Keeps the column of addresses at the right. */
const NO_DETAILS = "\u00a0";

interface LogProps extends Pick<PageProps, "api"> {
  organizationId: number;
}

/** Entries of the log. Older pages follow a cursor, so that new entries move nothing. */
function useLog({ api, organizationId }: LogProps) {
  const [entries, setEntries] = useState<AccessEntry[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const load = useCallback(
    async (cursor: string | null) => {
      try {
        const { log } = await api.ask(ReadOrganizationAudit, { organizationId, limit: PAGE, cursor });
        setEntries((old) => (cursor === null ? log.items : [...(old ?? []), ...log.items]));
        setNext(log.nextCursor ?? null);
        setFault(null);
      } catch (error) {
        setFault(asApiError(error).message);
      }
    },
    [api, organizationId],
  );
  useEffect(() => void load(null), [load]);
  return { entries, next, fault, load };
}

/** Names of the organization's members by their ID. */
function useMembers({ api, organizationId }: LogProps): (id: number) => string {
  const [names, setNames] = useState<ReadonlyMap<number, string>>(new Map());
  useEffect(() => {
    let isOver = false;
    api.ask(ListOrganizationPeople, { organizationId }).then(
      ({ members }) => isOver || setNames(new Map(members.map(({ user }) => [user.id, fullName(user)]))),
      // Without names the log shows IDs.
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [api, organizationId]);
  return (id) => names.get(id) ?? `person ${id}`;
}

function AccessLog(props: LogProps) {
  const { entries, next, fault, load } = useLog(props);
  const nameOf = useMembers(props);
  return (
    <>
      <p className="row">
        <button type="button" onClick={() => void load(null)}>
          Read again
        </button>
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul className="records" aria-label="Audit log">
        {entries?.map(({ id, type, userId, subjectId, address, data, createdAt }) => (
          <li key={id}>
            <time dateTime={createdAt} title={exact(createdAt)}>
              {moment(createdAt)}
            </time>
            <code>{type}</code>
            {typeof userId === "number" && <b>{nameOf(userId)}</b>}
            {typeof subjectId === "number" && subjectId !== userId && <span>about {nameOf(subjectId)}</span>}
            <span className="hint grow">{inWords(data) || NO_DETAILS}</span>
            <span className="hint">{address ?? ""}</span>
          </li>
        ))}
      </ul>
      {entries?.length === 0 && <p className="hint">Nothing has happened yet.</p>}
      {next !== null && (
        <button type="button" className="link" onClick={() => void load(next)}>
          Older entries
        </button>
      )}
    </>
  );
}

/** Audit log of one organization, by the address `#/1/access/5`. */
export function OrganizationAuditPage({ api, place, organizations }: PageProps) {
  const organization = organizations.find(({ id }) => id === idOf(place.item));
  return (
    <div className="app-page">
      <section className="app-part" aria-labelledby="access">
        <h2 id="access">{organization ? `Audit log of ${organization.name}` : "Audit log"}</h2>
        {organization && mayManage(organization.role) ? (
          <AccessLog key={organization.id} api={api} organizationId={organization.id} />
        ) : (
          <p className="hint">Owners and admins of an organization see its audit log.</p>
        )}
      </section>
    </div>
  );
}
