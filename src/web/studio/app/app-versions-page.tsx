/** Page of the app's versions: snapshots of the app's name, settings and other fields. A person can create, compare and restore them. */
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { Apps, CreateAppVersion, ListAppVersions, ReadAppVersion, RestoreAppVersion } from "../documents.js";
import { getFullName } from "../people/people.js";
import { formatAge, formatExactTime, formatJson } from "../shared/format.js";
import type { AppVersion } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";

const VERSION_REASON_LABELS: Record<string, string> = {
  create: "taken",
  publish: "published",
  "pre-restore": "before a restore",
};

function VersionContents({ appId, versionId }: { appId: number; versionId: number }) {
  const { value, fault } = useResource(createQueryOptions(ReadAppVersion, { appId, versionId }));
  if (!value) return <p className={fault ? "fault" : "hint"}>{fault ?? "Loading…"}</p>;
  return (
    <div className="entry-details">
      <div>
        <h3>Fields</h3>
        <pre>{formatJson(value.version.data)}</pre>
      </div>
      <div>
        <h3>Settings, without protected ones</h3>
        <pre>{formatJson(value.version.settings)}</pre>
      </div>
    </div>
  );
}

export function AppVersionsPage({ api, app, appId, confirm, reloadApps }: PageProps) {
  const [loadedCount, setLoadedCount] = useState(0);
  const [openVersionId, setOpenVersionId] = useState<number | null>(null);
  const { value, fault, isBusy, applyChange } = useResource({
    queryKey: ["app versions", appId, loadedCount],
    async queryFn() {
      const appVersions: AppVersion[] = [];
      for (;;) {
        const { versions, pagination } = (await api.request(ListAppVersions, { appId, offset: appVersions.length }))
          .history;
        appVersions.push(...versions);
        if (!pagination.hasMore || appVersions.length > loadedCount)
          return { versions: appVersions, hasMore: pagination.hasMore };
      }
    },
    placeholderData: keepPreviousData,
  });

  const restoreVersion = async ({ id, createdAt }: AppVersion) => {
    const text = `The app's fields and its public and private settings become what they were on ${formatExactTime(createdAt)}. Protected settings and actions stay; the current state is stored as a version first.`;
    // The request to restore must contain the app's current `updatedAt`, which this page does not have yet.
    const { apps } = await api.request(Apps, {});
    const ifUpdatedAt = apps.find((app) => app.id === appId)!.updatedAt;
    if (!(await confirm({ title: "Restore this version of the app?", explanation: text, confirmLabel: "Restore" })))
      return;
    await applyChange(() => api.request(RestoreAppVersion, { appId, versionId: id, ifUpdatedAt }));
    await reloadApps();
  };
  return (
    <>
      <p className="page-action">
        <button
          type="button"
          className="primary"
          disabled={isBusy}
          onClick={() => void applyChange(() => api.request(CreateAppVersion, { appId }))}
        >
          Take a version now
        </button>
      </p>
      <p className="hint">Each publication of the app also takes a version.</p>
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul className="records">
        {value?.versions.map((version) => (
          <li key={version.id}>
            <button
              type="button"
              className="link grow"
              aria-expanded={openVersionId === version.id}
              onClick={() => setOpenVersionId(openVersionId === version.id ? null : version.id)}
            >
              {formatExactTime(version.createdAt)}
            </button>
            <span className="chip">{VERSION_REASON_LABELS[version.action] ?? version.action}</span>
            {version.name !== null && version.name !== app.name && <span className="version-name">{version.name}</span>}
            <span className="hint">
              {[version.user && getFullName(version.user), formatAge(version.createdAt)].filter(Boolean).join(", ")}
            </span>
            <button type="button" disabled={isBusy} onClick={() => void restoreVersion(version)}>
              Restore
            </button>
            {openVersionId === version.id && <VersionContents appId={appId} versionId={version.id} />}
          </li>
        ))}
      </ul>
      {value?.versions.length === 0 && <p className="hint">No version yet.</p>}
      {value?.hasMore && (
        <button type="button" className="link" onClick={() => setLoadedCount(value.versions.length)}>
          Older versions
        </button>
      )}
    </>
  );
}
