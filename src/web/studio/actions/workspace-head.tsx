/** Header of an action's workspace: name and state on the left, the buttons Run, Publish and Save on the right. */
import ChevronDown from "icon:chevron-down";
import ChevronLeft from "icon:chevron-left";
import ChevronRight from "icon:chevron-right";
import CloudUpload from "icon:cloud-upload";
import PanelRight from "icon:panel-right";
import Play from "icon:play";
import type { LiveVersion } from "../shared/model.js";
import { mayEdit } from "../shell/rights.js";
import { ForEditors, useRole } from "../shell/role.js";
import { openDockPanel } from "./dock.js";
import type { ActionEditor } from "./use-editor.js";

const ICON_PIXELS = 15;

interface WorkspaceHeadProps {
  editor: ActionEditor;
  liveVersion: LiveVersion | undefined;
  goBack: () => void;
  areFieldsShown: boolean;
  toggleFields: () => void;
}

function describeSavedState(
  { isBusy, otherPeopleChanges, isDirty, savedAction }: ActionEditor,
  isEditor: boolean,
): string {
  if (!isEditor) return "read only";
  if (isBusy) return "saving…";
  if (otherPeopleChanges.conflict) return "changed elsewhere";
  return isDirty || !savedAction ? "not saved" : "saved";
}

function LiveVersionState({
  editor: { savedAction },
  liveVersion,
}: Pick<WorkspaceHeadProps, "editor" | "liveVersion">) {
  if (!savedAction) return null;
  if (!liveVersion) return <span className="chip">not published</span>;
  const isDraftNewer = Date.parse(savedAction.updatedAt) > Date.parse(liveVersion.updatedAt);
  return isDraftNewer ? (
    <span className="chip behind" title="The draft was saved after the last publication.">
      draft newer than live
    </span>
  ) : (
    <span className="chip live">live</span>
  );
}

export const FIELDS_ELEMENT_ID = "action-fields";

/**
 * Button that shows and hides the form fields in narrow windows. In wide windows, the header has another button for
 * this.
 */
export function FieldsButton({
  areFieldsShown,
  toggleFields,
}: Pick<WorkspaceHeadProps, "areFieldsShown" | "toggleFields">) {
  const ToggleIcon = areFieldsShown ? ChevronDown : ChevronRight;
  return (
    <button
      type="button"
      className="quiet with-icon fields-button"
      aria-expanded={areFieldsShown}
      aria-controls={FIELDS_ELEMENT_ID}
      onClick={toggleFields}
    >
      <ToggleIcon size={ICON_PIXELS} aria-hidden /> Fields of the action
    </button>
  );
}

export function WorkspaceHead({ editor, liveVersion, goBack, areFieldsShown, toggleFields }: WorkspaceHeadProps) {
  const { draft, savedAction, isDirty, isBusy, fault, saveDraft } = editor;
  const isEditor = mayEdit(useRole());
  const isBlocked = isBusy || editor.otherPeopleChanges.conflict !== null;
  return (
    <div className="workspace-head">
      <button type="button" className="quiet narrow-only" aria-label="Back to the list of actions" onClick={goBack}>
        <ChevronLeft size={ICON_PIXELS} aria-hidden />
      </button>
      <h2>{draft?.name || (savedAction ? savedAction.name : "New action")}</h2>
      <span className="hint" role="status">
        {describeSavedState(editor, isEditor)}
      </span>
      <LiveVersionState {...{ editor, liveVersion }} />
      {fault && fault.field === null && (
        <span className="fault" role="alert">
          {fault.message} <code>{fault.status}</code>
        </span>
      )}
      <span className="head-buttons">
        <button
          type="button"
          className="quiet icon-button"
          aria-label="Fields of the action"
          aria-pressed={areFieldsShown}
          title={areFieldsShown ? "Hide the fields" : "Show the fields"}
          onClick={toggleFields}
        >
          <PanelRight size={ICON_PIXELS} aria-hidden />
        </button>
        <ForEditors>
          <button
            type="button"
            className="head-run with-icon"
            aria-label="Run the draft"
            disabled={isBlocked}
            onClick={() => openDockPanel("Run", true)}
          >
            <Play size={ICON_PIXELS} aria-hidden /> Run
          </button>
          <button
            type="button"
            className="head-publish with-icon"
            aria-label="Publish: show the changes"
            disabled={!savedAction}
            onClick={() => openDockPanel("Publish")}
          >
            <CloudUpload size={ICON_PIXELS} aria-hidden /> Publish
          </button>
          <button
            type="button"
            className="primary"
            title="Ctrl+S"
            disabled={isBlocked || (savedAction !== null && !isDirty)}
            onClick={() => void saveDraft()}
          >
            {savedAction ? "Save" : "Create"}
          </button>
        </ForEditors>
      </span>
    </div>
  );
}
