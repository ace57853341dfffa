/** Panel with the version history of an action. Compares each version with the draft, and restores a version. */
import { useCallback, useEffect, useState } from "react";
import { CompareVersion, ListVersions, RestoreVersion } from "../documents.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { Ask } from "../shared/confirm.js";
import { ago, exact } from "../shared/format.js";
import type { Action, Diff, Version } from "../shared/model.js";
import { Changes } from "../shell/role.js";
import { DiffView } from "./diff-view.js";

const OCCASIONS: Record<string, string> = { create: "created", update: "saved", "pre-restore": "before a restore" };

interface VersionPanelProps {
  api: Api;
  appId: number;
  ask: Ask;
  saved: Action;
  dirty: boolean;
  onRestored: () => Promise<void>;
}

function useHistory({ api, appId, saved: { id, updatedAt } }: VersionPanelProps) {
  const [versions, setVersions] = useState<Version[] | null>(null);
  const [more, setMore] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const load = useCallback(
    async (offset: number) => {
      try {
        const { history } = await api.ask(ListVersions, { appId, id, offset });
        setVersions((old) => (offset === 0 ? history.versions : [...(old ?? []), ...history.versions]));
        setMore(history.pagination.hasMore);
      } catch (error) {
        setFault(asApiError(error));
      }
    },
    [api, appId, id],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: each save creates a version
  useEffect(() => void load(0), [load, updatedAt]);
  return { versions, more, fault, setFault, load };
}

function useVersionDiff({ api, appId, saved: { id, updatedAt } }: VersionPanelProps, versionId: number | null) {
  const [diff, setDiff] = useState<Diff | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version is compared with the draft, which each save changes
  useEffect(() => {
    let over = false;
    setDiff(null);
    if (versionId === null) return;
    api.ask(CompareVersion, { appId, id, versionId }).then(
      (answer) => over || setDiff(answer.diff),
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [api, appId, id, versionId, updatedAt]);
  return diff;
}

export function VersionPanel(props: VersionPanelProps) {
  const { api, appId, ask, saved, dirty, onRestored } = props;
  const [selected, setSelected] = useState<number | null>(null);
  const { versions, more, fault, setFault, load } = useHistory(props);
  const diff = useVersionDiff(props, selected);
  const version = versions?.find(({ id }) => id === selected);

  const restore = async ({ id, createdAt }: Version) => {
    const text = `The draft becomes what it was on ${exact(createdAt)}. Its present state is kept as a version first${
      dirty ? "; what you have not saved is lost" : ""
    }. The live copy stays as it is.`;
    if (!(await ask({ title: "Restore this version?", text, yes: "Restore" }))) return;
    try {
      await api.ask(RestoreVersion, { appId, id: saved.id, versionId: id, ifUpdatedAt: saved.updatedAt });
      setFault(null);
      setSelected(null);
      await onRestored();
    } catch (error) {
      setFault(asApiError(error));
    }
  };

  return (
    <div className="version-panel">
      <div className="versions">
        <ul>
          {versions?.map((one) => (
            <li key={one.id}>
              <button
                type="button"
                aria-current={one.id === selected ? "true" : undefined}
                onClick={() => setSelected(one.id)}
              >
                <b title={exact(one.createdAt)}>{ago(one.createdAt)}</b>
                <span className="chip">{OCCASIONS[one.action] ?? one.action}</span>
                {one.publishedAt && (
                  <span className="chip" title={exact(one.publishedAt)}>
                    live {ago(one.publishedAt)}
                  </span>
                )}
                {one.commit && (
                  <span className="chip" title={`Commit ${one.commit}`}>
                    {one.commit.slice(0, 7)}
                  </span>
                )}
                <span className="hint">{one.user ? `${one.user.firstName} ${one.user.lastName}` : ""}</span>
              </button>
            </li>
          ))}
        </ul>
        {more && (
          <button type="button" className="link" onClick={() => void load(versions?.length ?? 0)}>
            Older versions
          </button>
        )}
      </div>
      <div className="version">
        <p className="fault" role="alert">
          {fault && (
            <>
              {fault.message} <code>{fault.status}</code>
            </>
          )}
        </p>
        {version ? (
          <>
            <div className="row">
              <span className="grow">
                From <b>{exact(version.createdAt)}</b> to the draft as it is saved now
              </span>
              <Changes>
                <button type="button" className="primary" onClick={() => void restore(version)}>
                  Restore
                </button>
              </Changes>
            </div>
            {diff && <DiffView diff={diff} />}
          </>
        ) : (
          <p className="hint empty">Choose a version to see what has changed since.</p>
        )}
      </div>
    </div>
  );
}
