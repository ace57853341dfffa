/** Button that pauses or resumes the schedule of one action. It saves the action as inactive or active, and publishes it. */
import { useState } from "react";
import { CompareDraftWithLive, PublishAction, UpdateAction } from "../documents.js";
import { asApiError } from "../shared/api.js";
import type { ActionSummary, LiveVersion } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";

interface PauseActionProps extends Pick<PageProps, "api" | "app" | "appId" | "actions" | "confirm"> {
  action: ActionSummary;
  liveVersion: LiveVersion;
}

const PAUSE_QUESTION = "The action is saved as inactive and published. All of its triggers stop until you resume it.";
const OTHER_CHANGES_TEXT = "The draft has other changes that are not live. Publish or undo them first.";

const ONLY_DRAFT_PAUSED_TEXT = "The draft is inactive, the live version still runs";
const ONLY_DRAFT_RESUMED_TEXT = "The draft is active, the live version is still inactive";

function findPauseObstacle({ isPublished, requiresTests }: PageProps["app"]): string | null {
  if (!isPublished) return "The app is not published.";
  return requiresTests ? "The app publishes only tested actions." : null;
}

export function PauseButton({ api, app, appId, actions, confirm, action, liveVersion }: PauseActionProps) {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const { id, name } = action;
  const shouldResume = !liveVersion.active;
  const saveAndPublish = async () => {
    const { diff } = await api.request(CompareDraftWithLive, { appId, id });
    // Publishing would make all changes of the draft live, so the draft must have no other change than `active`.
    if (diff.code !== null || diff.fields.some((field) => field !== "active")) return setFault(OTHER_CHANGES_TEXT);
    let { updatedAt } = action;
    let savedDraftText: string | null = null;
    try {
      if (action.active !== shouldResume) {
        const change = { appId, id, data: { active: shouldResume }, ifUpdatedAt: updatedAt };
        updatedAt = (await api.request(UpdateAction, change)).saved.updatedAt;
        savedDraftText = shouldResume ? ONLY_DRAFT_RESUMED_TEXT : ONLY_DRAFT_PAUSED_TEXT;
      }
      await api.request(PublishAction, { appId, id, ifUpdatedAt: updatedAt });
      setFault(null);
    } catch (error) {
      const { message } = asApiError(error);
      setFault(savedDraftText === null ? message : `${savedDraftText}: ${message}`);
    } finally {
      await actions.reloadActions();
    }
  };
  const togglePause = async () => {
    if (
      !shouldResume &&
      !(await confirm({ title: `Pause ${name}?`, explanation: PAUSE_QUESTION, confirmLabel: "Pause" }))
    )
      return;
    setBusy(true);
    await saveAndPublish().catch((error: unknown) => setFault(asApiError(error).message));
    setBusy(false);
  };
  const obstacle = findPauseObstacle(app);
  const verb = shouldResume ? "Resume" : "Pause";
  return (
    <>
      <button
        type="button"
        aria-label={`${verb}: ${name}`}
        title={obstacle ?? undefined}
        disabled={busy || obstacle !== null}
        onClick={() => void togglePause()}
      >
        {verb}
      </button>
      {/* The page already has a message if the app is not published. */}
      {obstacle && app.isPublished && <span className="hint">{obstacle}</span>}
      {fault && (
        <span className="fault" role="alert">
          {fault}
        </span>
      )}
    </>
  );
}
