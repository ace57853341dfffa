/** Panel that publishes an action: it shows what would change, and has the buttons "Publish" and "Unpublish". */
import { useCallback, useState } from "react";
import { CompareDraftWithLive, PublishAction, PublishApp, UnpublishAction } from "../documents.js";
import { type ApiClient, type ApiError, asApiError } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { Action, ActionDiff, App, LiveVersion } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { APP_ACCESS_SENTENCE, describePublishedAccess } from "./access-text.js";
import { DiffView } from "./diff-view.js";
import type { ActionsState } from "./use-actions.js";

interface PublishPanelProps {
  api: ApiClient;
  app: App;
  appId: number;
  confirm: ConfirmFunction;
  savedAction: Action;
  isDirty: boolean;
  liveVersion: LiveVersion | undefined;
  actions: ActionsState;
  onAppPublished: () => Promise<void>;
}

/**
 * Reads the changes that publishing the draft would make to the live version. The value is null until they are loaded,
 * and if there is no live version.
 */
function usePublicationDiff({
  appId,
  savedAction: { id, updatedAt },
  liveVersion,
}: PublishPanelProps): ActionDiff | null {
  // Each save and each publication changes one of these two times, so the difference is then read again.
  const query = createQueryOptions(CompareDraftWithLive, { appId, id }, `${updatedAt} ${liveVersion?.updatedAt}`);
  return useResource({ ...query, enabled: liveVersion !== undefined }).value?.diff ?? null;
}

function PublicationStatus({
  app,
  savedAction,
  liveVersion,
  diff,
}: Pick<PublishPanelProps, "app" | "savedAction" | "liveVersion"> & { diff: ActionDiff | null }) {
  const isEqual = diff?.code === null && diff.fields.length === 0;
  return (
    <div className="standing">
      {liveVersion ? (
        <p>
          <span className="chip live">live</span> Published{" "}
          <span title={formatExactTime(liveVersion.updatedAt)}>{formatAge(liveVersion.updatedAt)}</span>
          {isEqual && ", the same as the draft"}. The live version is{" "}
          <b>{liveVersion.active ? "active" : "inactive"}</b>.
        </p>
      ) : (
        <p>
          <span className="chip">draft</span> Not published: live apps, schedules, events and HTTP requests run the live
          version, and there is none.
        </p>
      )}
      {liveVersion?.active && !savedAction.active && (
        <p className="notice">The draft is switched off, and the live version still runs.</p>
      )}
      <p className="access-told">{describePublishedAccess(savedAction)}</p>
      <p className="hint">
        Switching the draft off leaves the live version as it is until the next publish. To stop the live version now,
        publish the inactive draft or unpublish.
      </p>
      {!app.isPublished && (
        <p className="notice">
          The app itself is not published, so its actions cannot be published. {APP_ACCESS_SENTENCE}
        </p>
      )}
    </div>
  );
}

export function PublishPanel(props: PublishPanelProps) {
  const { api, app, appId, confirm, savedAction, isDirty, liveVersion, actions, onAppPublished } = props;
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const diff = usePublicationDiff(props);

  const runAndReload = useCallback(async (request: Promise<unknown>, reload: () => unknown) => {
    setBusy(true);
    try {
      await request;
      setFault(null);
      await reload();
    } catch (error) {
      setFault(asApiError(error));
    }
    setBusy(false);
  }, []);
  const ids = { appId, id: savedAction.id, ifUpdatedAt: savedAction.updatedAt };
  const unpublishAction = async () => {
    const text = "This removes the live version, and it no longer runs. The draft and its history stay.";
    const isConfirmed = await confirm({
      title: `Unpublish ${savedAction.name}?`,
      explanation: text,
      confirmLabel: "Unpublish",
      isDangerous: true,
    });
    if (isConfirmed) await runAndReload(api.request(UnpublishAction, ids), actions.reloadActions);
  };

  return (
    <div className="publish-panel">
      <PublicationStatus {...{ app, savedAction, liveVersion, diff }} />
      <div className="row">
        {!app.isPublished && (
          <button
            type="button"
            disabled={busy}
            onClick={() =>
              void runAndReload(api.request(PublishApp, { appId, ifUpdatedAt: app.updatedAt }), onAppPublished)
            }
          >
            Publish the app
          </button>
        )}
        <button
          type="button"
          className="primary"
          disabled={busy || isDirty || !app.isPublished}
          onClick={() => void runAndReload(api.request(PublishAction, ids), actions.reloadActions)}
        >
          {liveVersion ? "Publish again" : "Publish"}
        </button>
        {liveVersion && (
          <button type="button" disabled={busy} onClick={() => void unpublishAction()}>
            Unpublish
          </button>
        )}
        {isDirty && <span className="hint">Save first: what is published is the saved draft.</span>}
        <span className="fault" role="alert">
          {fault && (
            <>
              {fault.message} <code>{fault.status}</code>
            </>
          )}
        </span>
      </div>
      {diff && (
        <>
          <h3>What publishing would change</h3>
          <DiffView diff={diff} />
        </>
      )}
    </div>
  );
}
