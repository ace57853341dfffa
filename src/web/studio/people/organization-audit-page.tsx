/** Page of an organization's audit log, newest entry first: sign-ins, roles, invitations, accounts. Only owners and admins see the entries. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { ListOrganizationPeople, ReadOrganizationAuditLog } from "../documents.js";
import { AuditDetails } from "../shared/audit-details.js";
import { describeAuditType } from "../shared/audit-text.js";
import { formatExactTime, formatTime } from "../shared/format.js";
import { readFirstPageAgain } from "../shared/query-client.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { mayManage } from "../shell/rights.js";
import { parseId } from "../shell/studio-route.js";
import { getFullName } from "./people.js";

const PAGE_SIZE = 100;

interface OrganizationAuditLogProps extends Pick<PageProps, "api"> {
  organizationId: number;
}

/** Hook for the pages of the audit log. It reads them by a cursor, so that new entries do not shift the loaded ones. */
function useAuditLog({ api, organizationId }: OrganizationAuditLogProps) {
  const client = useQueryClient();
  const queryKey = [ReadOrganizationAuditLog, organizationId];
  const log = useInfiniteQuery({
    queryKey,
    // With `true`, the query cache would read all loaded pages again each time the window gets the focus.
    refetchOnWindowFocus: false,
    queryFn: async ({ pageParam: cursor }) =>
      (await api.request(ReadOrganizationAuditLog, { organizationId, limit: PAGE_SIZE, cursor })).log,
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  return { ...log, readAgain: () => readFirstPageAgain(client, queryKey) };
}

/** Hook that returns a function which finds a member's name by the user ID. For an unknown ID, the name is "person" with the ID. */
function useMemberNames(organizationId: number): (id: number) => string {
  const { value } = useResource(createQueryOptions(ListOrganizationPeople, { organizationId }));
  const names = useMemo(() => new Map(value?.members.map(({ user }) => [user.id, getFullName(user)])), [value]);
  return (id) => names.get(id) ?? `person ${id}`;
}

function OrganizationAuditLog(props: OrganizationAuditLogProps) {
  const { data, error, fetchNextPage, hasNextPage, readAgain } = useAuditLog(props);
  const getMemberName = useMemberNames(props.organizationId);
  const entries = data?.pages.flatMap(({ items }) => items);
  return (
    <>
      <p className="page-action">
        <button type="button" onClick={() => void readAgain()}>
          Refresh
        </button>
      </p>
      <p className="fault" role="alert">
        {error?.message}
      </p>
      <ul className="records audit" aria-label="Audit log">
        {entries?.map(({ id, type, userId, subjectId, address, data, createdAt }) => (
          <li key={id}>
            <time dateTime={createdAt} title={formatExactTime(createdAt)}>
              {formatTime(createdAt)}
            </time>
            <span title={type}>{describeAuditType(type)}</span>
            {typeof userId === "number" && <b>{getMemberName(userId)}</b>}
            {typeof subjectId === "number" && subjectId !== userId && <span>about {getMemberName(subjectId)}</span>}
            <span className="grow details">
              <AuditDetails data={data} getPersonName={getMemberName} />
            </span>
            <span className="hint">{address ?? ""}</span>
          </li>
        ))}
      </ul>
      {entries?.length === 0 && <p className="hint">Nothing has happened yet.</p>}
      {hasNextPage && (
        <button type="button" className="link" onClick={() => void fetchNextPage()}>
          Older entries
        </button>
      )}
    </>
  );
}

/** Page of the audit log of one organization. Its URL is `#/1/access/5` for the organization with the ID 5. */
export function OrganizationAuditPage({ api, route, organizations }: PageProps) {
  const organization = organizations.find(({ id }) => id === parseId(route.item));
  return (
    <div className="app-page">
      <section className="app-part" aria-labelledby="access">
        <h2 id="access">{organization ? `Audit log of ${organization.name}` : "Audit log"}</h2>
        {organization && mayManage(organization.role) ? (
          <OrganizationAuditLog key={organization.id} api={api} organizationId={organization.id} />
        ) : (
          <p className="hint">Owners and admins of an organization see its audit log.</p>
        )}
      </section>
    </div>
  );
}
