/** Panel that publishes an action: it shows what would change, and has the buttons "Publish" and "Unpublish". */
import { useCallback, useState } from "react";
import { CompareDraftWithLive, PublishAction, PublishApp, UnpublishAction } from "../documents.js";
import { type Api, type ApiError, asApiError } from "../shared/api.js";
import type { Confirm } from "../shared/confirm.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { Action, App, Diff, PublishedCopy } from "../shared/model.js";
import { queryOf, useResource } from "../shared/use-resource.js";
import { APP_ACCESS_SENTENCE, publishedSentence } from "./access-text.js";
import { DiffView } from "./diff-view.js";
import type { Actions } from "./use-actions.js";

interface PublishPanelProps {
  api: Api;
  app: App;
  appId: number;
  confirm: Confirm;
  saved: Action;
  dirty: boolean;
  copy: PublishedCopy | undefined;
  actions: Actions;
  onAppPublished: () => Promise<void>;
}

/**
 * Reads the changes that publishing would make. Returns null while they are not loaded, and if there is no live version to compare with.
 */
function usePublicationDiff({ appId, saved: { id, updatedAt }, copy }: PublishPanelProps): Diff | null {
  // Saving and publishing change the difference, so a new time of change causes a new request.
  const query = queryOf(CompareDraftWithLive, { appId, id }, `${updatedAt} ${copy?.updatedAt}`);
  return useResource({ ...query, enabled: copy !== undefined }).value?.diff ?? null;
}

function PublicationStatus({
  app,
  saved,
  copy,
  diff,
}: Pick<PublishPanelProps, "app" | "saved" | "copy"> & { diff: Diff | null }) {
  const isEqual = diff?.code === null && diff.fields.length === 0;
  return (
    <div className="standing">
      {copy ? (
        <p>
          <span className="chip live">live</span> Published{" "}
          <span title={formatExactTime(copy.updatedAt)}>{formatAge(copy.updatedAt)}</span>
          {isEqual && ", the same as the draft"}. The live copy is <b>{copy.active ? "active" : "inactive"}</b>.
        </p>
      ) : (
        <p>
          <span className="chip">draft</span> Not published: live apps, schedules and log events run the live copy, and
          there is none.
        </p>
      )}
      {copy?.active && !saved.active && (
        <p className="notice">The draft is switched off, and the live copy still runs.</p>
      )}
      <p className="access-told">{publishedSentence(saved)}</p>
      <p className="hint">
        Switching the draft off leaves the live copy as it is until the next publish. To stop the live copy now, publish
        the inactive draft or unpublish.
      </p>
      {!app.isPublished && (
        <p className="notice">The app itself is not published, so none of its actions can be. {APP_ACCESS_SENTENCE}</p>
      )}
    </div>
  );
}

export function PublishPanel(props: PublishPanelProps) {
  const { api, app, appId, confirm, saved, dirty, copy, actions, onAppPublished } = props;
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<ApiError | null>(null);
  const diff = usePublicationDiff(props);

  const runAndReload = useCallback(async (done: Promise<unknown>, then: () => unknown) => {
    setBusy(true);
    try {
      await done;
      setFault(null);
      await then();
    } catch (error) {
      setFault(asApiError(error));
    }
    setBusy(false);
  }, []);
  const ids = { appId, id: saved.id, ifUpdatedAt: saved.updatedAt };
  const unpublish = async () => {
    const text = "The live copy is removed: nothing runs it any more. The draft and its history stay.";
    const isConfirmed = await confirm({ title: `Unpublish ${saved.name}?`, text, yes: "Unpublish", danger: true });
    if (isConfirmed) await runAndReload(api.request(UnpublishAction, ids), actions.reload);
  };

  return (
    <div className="publish-panel">
      <PublicationStatus {...{ app, saved, copy, diff }} />
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
          disabled={busy || dirty || !app.isPublished}
          onClick={() => void runAndReload(api.request(PublishAction, ids), actions.reload)}
        >
          {copy ? "Publish again" : "Publish"}
        </button>
        {copy && (
          <button type="button" disabled={busy} onClick={() => void unpublish()}>
            Unpublish
          </button>
        )}
        {dirty && <span className="hint">Save first: what is published is the saved draft.</span>}
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
