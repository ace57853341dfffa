/** Panel with the version history of an action. A person can compare each version with the draft, and restore it. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { CompareActionVersion, ListActionVersions, RestoreActionVersion } from "../documents.js";
import { type ApiClient, type ApiError, asApiError } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { Action, ActionVersion } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { ForEditors } from "../shell/role.js";
import { DiffView } from "./diff-view.js";

const VERSION_REASON_LABELS: Record<string, string> = {
  create: "created",
  update: "saved",
  "pre-restore": "before a restore",
};

interface VersionPanelProps {
  api: ApiClient;
  appId: number;
  confirm: ConfirmFunction;
  savedAction: Action;
  isDirty: boolean;
  onRestored: () => Promise<void>;
}

/** Hook that reads the version history. Each save adds a version, so a new `updatedAt` causes a new read. */
function useVersionHistory({ api, appId, savedAction: { id, updatedAt } }: VersionPanelProps) {
  return useInfiniteQuery({
    queryKey: [ListActionVersions, appId, id, updatedAt],
    queryFn: async ({ pageParam: offset }) => (await api.request(ListActionVersions, { appId, id, offset })).history,
    initialPageParam: 0,
    getNextPageParam: ({ pagination }, pages) =>
      pagination.hasMore ? pages.reduce((sum, { versions }) => sum + versions.length, 0) : null,
    placeholderData: keepPreviousData,
    refetchOnWindowFocus: false,
  });
}

export function VersionPanel(props: VersionPanelProps) {
  const { api, appId, confirm, savedAction, isDirty, onRestored } = props;
  const [selected, setSelected] = useState<number | null>(null);
  const [restoreFault, setRestoreFault] = useState<ApiError | null>(null);
  const history = useVersionHistory(props);
  const versions = history.data?.pages.flatMap((page) => page.versions);
  const fault = restoreFault ?? (history.error && asApiError(history.error));
  // Difference between the chosen version and the draft. Read again after each save, which changes the draft.
  const diff = useResource({
    ...createQueryOptions(
      CompareActionVersion,
      { appId, id: savedAction.id, versionId: selected ?? 0 },
      savedAction.updatedAt,
    ),
    enabled: selected !== null,
  }).value?.diff;
  const version = versions?.find(({ id }) => id === selected);

  const restoreVersion = async ({ id, createdAt }: ActionVersion) => {
    const text = `The draft becomes what it was on ${formatExactTime(createdAt)}. Its current state is stored as a version first${
      isDirty ? "; what you have not saved is lost" : ""
    }. The live version stays as it is.`;
    if (!(await confirm({ title: "Restore this version?", explanation: text, confirmLabel: "Restore" }))) return;
    try {
      await api.request(RestoreActionVersion, {
        appId,
        id: savedAction.id,
        versionId: id,
        ifUpdatedAt: savedAction.updatedAt,
      });
      setRestoreFault(null);
      setSelected(null);
      await onRestored();
    } catch (error) {
      setRestoreFault(asApiError(error));
    }
  };

  return (
    <div className="version-panel">
      <div className="versions">
        <ul>
          {versions?.map((version) => (
            <li key={version.id}>
              <button
                type="button"
                aria-current={version.id === selected ? "true" : undefined}
                onClick={() => setSelected(version.id)}
              >
                <b title={formatExactTime(version.createdAt)}>{formatAge(version.createdAt)}</b>
                <span className="chip">{VERSION_REASON_LABELS[version.action] ?? version.action}</span>
                {version.publishedAt && (
                  <span className="chip" title={formatExactTime(version.publishedAt)}>
                    live {formatAge(version.publishedAt)}
                  </span>
                )}
                {version.commit && (
                  <span className="chip" title={`Commit ${version.commit}`}>
                    {version.commit.slice(0, 7)}
                  </span>
                )}
                <span className="hint">{version.user ? `${version.user.firstName} ${version.user.lastName}` : ""}</span>
              </button>
            </li>
          ))}
        </ul>
        {history.hasNextPage && (
          <button type="button" className="link" onClick={() => void history.fetchNextPage()}>
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
                From <b>{formatExactTime(version.createdAt)}</b> to the draft as it is saved now
              </span>
              <ForEditors>
                <button type="button" className="primary" onClick={() => void restoreVersion(version)}>
                  Restore
                </button>
              </ForEditors>
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
