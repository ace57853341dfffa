/** Workspace of one action: its code, its fields, and the dock with panels below them. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from "react";
import { RemoveAction } from "../documents.js";
import type { Action, CodeProblem } from "../shared/model.js";
import { useUnsavedChanges } from "../shared/use-unsaved-changes.js";
import { type PaletteCommand, useCommandRegistration } from "../shell/commands.js";
import { mayEdit } from "../shell/rights.js";
import { ForEditors, ReadOnlyFields, useRole } from "../shell/role.js";
import { CodePane } from "./code-pane.js";
import { ConflictBanner } from "./conflict-banner.js";
import { Dock } from "./dock.js";
import type { SourceFiles } from "./draft.js";
import { ActionFields } from "./fields.js";
import { SourcePane } from "./source-pane.js";
import { useCodePositionFromUrl } from "./use-code-position.js";
import { useEditorTypeDeclarations } from "./use-code-types.js";
import { useActionEditor } from "./use-editor.js";
import { useCodeProblems } from "./use-problems.js";
import { useFieldsVisibility } from "./use-shown-fields.js";
import { FIELDS_ELEMENT_ID, FieldsButton, WorkspaceHead } from "./workspace-head.js";
import type { WorkspaceProps } from "./workspace-props.js";

/**
 * Hook that saves the action at Ctrl+S, wherever the focus is. Monaco and the browser then do not handle this shortcut.
 */
function useSaveShortcut(save: () => void): void {
  // A layout effect runs before the browser draws the page, so the shortcut always uses the state that the button shows.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
      event.preventDefault();
      event.stopPropagation();
      save();
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, [save]);
}

/** Shown if the action does not exist or was deleted. On phones it has a link back to the list of actions. */
function MissingActionNotice({ text, goBack }: { text: string; goBack: () => void }) {
  return (
    <>
      <h2>This action cannot be shown</h2>
      <p className="fault">{text}</p>
      <button type="button" onClick={goBack}>
        All actions
      </button>
    </>
  );
}

const NO_ASSETS: Action["assets"] = [];

export function ActionWorkspace(props: WorkspaceProps) {
  const { api, appId, id, route, actions, confirm, go, setDirty, onCreated } = props;
  const { reloadActions } = actions;
  const onSaved = useCallback(
    (action: Action, isNew: boolean) => {
      if (isNew) onCreated(action.id);
      void reloadActions();
    },
    [onCreated, reloadActions],
  );
  const editor = useActionEditor({ api, appId, id, draftSource: route.query, changes: actions.changes, onSaved });
  const { draft, savedAction, isDirty, fault, changeDraft, saveDraft } = editor;
  const isEditor = mayEdit(useRole());
  // The service checks code only for people who may edit it, so Studio sends no request for other people.
  const problems = useCodeProblems(api, appId, isEditor ? draft : null);
  const liveVersion = savedAction && actions.findLiveVersion(savedAction.id);
  const types = useEditorTypeDeclarations(
    api,
    appId,
    [savedAction?.id, liveVersion?.id].filter((id) => id !== undefined),
    draft,
    savedAction?.assets ?? NO_ASSETS,
  );
  const targetPosition = useCodePositionFromUrl(props.route, go);
  const fieldsVisibility = useFieldsVisibility(id === "new", fault);
  const { areFieldsShown } = fieldsVisibility;
  const [runFailure, setRunFailure] = useState<CodeProblem | null>(null);
  const markedProblems = useMemo(() => (runFailure ? [...problems, runFailure] : problems), [problems, runFailure]);
  const [removeFault, setRemoveFault] = useState<string | null>(null);
  useUnsavedChanges(setDirty, isDirty);
  useEffect(() => {
    if (id === "new") document.querySelector<HTMLElement>('[data-field="name"] input')?.focus({ preventScroll: true });
  }, [id]);
  const saveNow = useCallback(() => void (isEditor && saveDraft()), [isEditor, saveDraft]);
  useSaveShortcut(saveNow);
  const changeSource = useCallback((source: SourceFiles) => changeDraft({ source }), [changeDraft]);
  const changeCode = useCallback((code: string) => changeDraft({ code }), [changeDraft]);
  const listedDependencies = draft?.dependencies;
  const addDependency = useCallback(
    (name: string) => changeDraft({ dependencies: [...new Set([...(listedDependencies ?? []), name])] }),
    [changeDraft, listedDependencies],
  );
  const savedId = savedAction?.id;
  const duplicateAction = useCallback(() => go({ item: "new", query: { copyOf: String(savedId) } }), [go, savedId]);
  const commands = useMemo<PaletteCommand[]>(
    () => [
      { name: "Save this action", shortcut: "Ctrl S", run: saveNow },
      ...(savedId === undefined ? [] : [{ name: "Duplicate this action", run: duplicateAction }]),
    ],
    [saveNow, savedId, duplicateAction],
  );
  useCommandRegistration(commands);

  const goBack = () => go({ item: null });
  const removeAction = async () => {
    if (!savedAction) return;
    const text = "This also deletes its live version and its version history. The execution log stays.";
    if (
      !(await confirm({
        title: `Delete ${savedAction.name}?`,
        explanation: text,
        confirmLabel: "Delete",
        isDangerous: true,
      }))
    )
      return;
    try {
      await api.request(RemoveAction, { appId, id: savedAction.id, ifUpdatedAt: savedAction.updatedAt });
      go({ item: null }, { skipsQuestion: true, startRoute: route });
      await reloadActions();
    } catch (error) {
      setRemoveFault((error as Error).message);
    }
  };

  if (!draft) {
    return (
      <div className="welcome">
        {fault ? <MissingActionNotice text={fault.message} goBack={goBack} /> : <p>Loading…</p>}
      </div>
    );
  }
  const codeFault = fault?.field === "code" ? fault : null;
  return (
    <div className={areFieldsShown ? "workspace" : "workspace whole-width"}>
      <div className="workspace-top">
        <WorkspaceHead {...{ editor, liveVersion: liveVersion ?? undefined, goBack }} {...fieldsVisibility} />
        <ConflictBanner editor={editor} />
      </div>
      <div className="upper">
        {draft.source ? (
          <ReadOnlyFields>
            <SourcePane source={draft.source} onChange={changeSource} fault={codeFault} />
          </ReadOnlyFields>
        ) : (
          <CodePane
            code={draft.code}
            onChange={changeCode}
            fault={codeFault}
            codeProblems={markedProblems}
            {...{ codeTypes: types, targetPosition, addDependency }}
          />
        )}
      </div>
      <FieldsButton {...fieldsVisibility} />
      <section id={FIELDS_ELEMENT_ID} className="fields" aria-label="Fields" hidden={!areFieldsShown}>
        <ReadOnlyFields>
          <ActionFields {...{ api, appId, draft, assets: savedAction?.assets ?? [], fault, changeDraft }} />
        </ReadOnlyFields>
        {savedAction && (
          <ForEditors>
            <p className="row">
              <button type="button" onClick={duplicateAction}>
                Duplicate
              </button>
              <button type="button" className="quiet danger-text" onClick={() => void removeAction()}>
                Delete this action
              </button>
            </p>
          </ForEditors>
        )}
        <p className="fault" role="alert">
          {removeFault}
        </p>
      </section>
      <Dock {...props} editor={editor} draft={draft} onFailure={setRunFailure} />
    </div>
  );
}
