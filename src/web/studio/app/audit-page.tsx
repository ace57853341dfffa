/** Page of the app's audit log, newest entry first: each change with person and time. The log contains no values of settings or entries. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { ReadAuditLog } from "../documents.js";
import { usePersonNames } from "../people/people.js";
import { AuditDetails } from "../shared/audit-details.js";
import { describeAuditType } from "../shared/audit-text.js";
import { formatCount, formatExactTime, formatTime } from "../shared/format.js";
import { readFirstPageAgain } from "../shared/query-client.js";
import type { PageProps } from "../shell/page-props.js";

const PAGE_SIZE = 100;

/**
 * Hook that loads the audit log page by page. New entries shift older ones, so two pages may contain the same entry, which is shown once.
 */
function useAuditLog({ api, appId }: Pick<PageProps, "api" | "appId">) {
  const client = useQueryClient();
  const queryKey = [ReadAuditLog, appId];
  const { data, error, fetchNextPage, hasNextPage } = useInfiniteQuery({
    queryKey,
    // With `true`, the query cache would read all loaded pages again each time the window gets the focus.
    refetchOnWindowFocus: false,
    queryFn: async ({ pageParam: offset }) =>
      (await api.request(ReadAuditLog, { appId, limit: PAGE_SIZE, offset })).audit,
    initialPageParam: 0,
    getNextPageParam({ pagination: { total } }, pages) {
      const offset = pages.reduce((sum, { entries }) => sum + entries.length, 0);
      return offset < total ? offset : null;
    },
  });
  const entries = data && [
    ...new Map(data.pages.flatMap((page) => page.entries).map((entry) => [entry.id, entry])).values(),
  ];
  const total = data?.pages.at(-1)?.pagination.total ?? 0;
  const refreshAuditLog = () => readFirstPageAgain(client, queryKey);
  return { entries, total, error, fetchNextPage, hasNextPage, refreshAuditLog };
}

export function AuditPage({ api, appId, actions }: PageProps) {
  const { entries, total, error, fetchNextPage, hasNextPage, refreshAuditLog } = useAuditLog({ api, appId });
  const getPersonName = usePersonNames(appId);
  return (
    <>
      <p className="page-action">
        <button type="button" onClick={() => void refreshAuditLog()}>
          Refresh
        </button>
      </p>
      <p className="hint">{formatCount(total, "change is", "changes are")} stored.</p>
      <p className="fault" role="alert">
        {error?.message}
      </p>
      <ul className="records audit">
        {entries?.map(({ id, type, userId, credentialId, actionId, data, createdAt }) => (
          <li key={id}>
            <time dateTime={createdAt} title={formatExactTime(createdAt)}>
              {formatTime(createdAt)}
            </time>
            <span title={type}>{describeAuditType(type)}</span>
            <b>{getPersonName(userId) ?? (credentialId === null ? "the service" : `token ${credentialId}`)}</b>
            <span className="grow details">
              {actionId !== null && <b>{actions.findLoggedAction(actionId)?.name ?? `action ${actionId}`} </b>}
              <AuditDetails data={data} getPersonName={getPersonName} />
            </span>
          </li>
        ))}
      </ul>
      {hasNextPage && (
        <button type="button" className="link" onClick={() => void fetchNextPage()}>
          Older changes
        </button>
      )}
    </>
  );
}
