/** The trail of writes: who changed what and when, newest first. The service keeps no values in it. */
import { useCallback, useEffect, useState } from "react";
import { ReadAudit } from "../documents.js";
import { useNames } from "../people/people.js";
import { asApiError } from "../shared/api.js";
import { exact, inWords, moment } from "../shared/format.js";
import type { AuditEntry } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";

const PAGE = 100;

/** Pages begin behind what is here: entries that came meanwhile are not read twice. */
function useTrail({ api, appId }: Pick<PageProps, "api" | "appId">) {
  const [entries, setEntries] = useState<AuditEntry[] | null>(null);
  const [total, setTotal] = useState(0);
  const [fault, setFault] = useState<string | null>(null);
  const load = useCallback(
    async (offset: number) => {
      try {
        const { audit } = await api.ask(ReadAudit, { appId, limit: PAGE, offset });
        setEntries((old) => {
          const known = offset === 0 ? [] : (old ?? []);
          const ids = new Set(known.map(({ id }) => id));
          return [...known, ...audit.entries.filter(({ id }) => !ids.has(id))];
        });
        setTotal(audit.pagination.total);
        setFault(null);
      } catch (error) {
        setFault(asApiError(error).message);
      }
    },
    [api, appId],
  );
  useEffect(() => void load(0), [load]);
  return { entries, total, fault, load };
}

export function AuditPage({ api, appId, actions }: PageProps) {
  const { entries, total, fault, load } = useTrail({ api, appId });
  const nameOf = useNames(api, appId);
  return (
    <>
      <p className="row">
        <button type="button" onClick={() => void load(0)}>
          Read again
        </button>
        <span className="hint">{total} changes are kept.</span>
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul className="records">
        {entries?.map(({ id, type, userId, credentialId, actionId, data, createdAt }) => (
          <li key={id}>
            <time dateTime={createdAt} title={exact(createdAt)}>
              {moment(createdAt)}
            </time>
            <code>{type}</code>
            <b>{nameOf(userId) ?? (credentialId === null ? "the service" : `token ${credentialId}`)}</b>
            {actionId !== null && <span>{actions.whose(actionId)?.name ?? `action ${actionId}`}</span>}
            <span className="hint grow">{inWords(data)}</span>
          </li>
        ))}
      </ul>
      {entries && entries.length < total && (
        <button type="button" className="link" onClick={() => void load(entries.length)}>
          Older changes
        </button>
      )}
    </>
  );
}
