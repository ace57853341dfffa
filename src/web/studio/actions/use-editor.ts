/** Hook for one action in the editor: loads, changes and saves the action, and provides the error of the last save. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { CreateAction, GetAction, UpdateAction } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { Action } from "../shared/model.js";
import { parseId } from "../shell/studio-route.js";
import { type ActionDraft, actionToDraft, draftToActionInput, haveSameActionInput } from "./draft.js";
import { type FieldError, toFieldError } from "./field-error.js";
import { createDraftFromTemplate } from "./templates.js";
import type { ActionChangeSubscription } from "./use-actions.js";
import { type OtherPeopleChanges, useOtherPeopleChanges } from "./use-other-people-changes.js";

export interface ActionEditor {
  /** Draft with the person's changes; null until the action is loaded. */
  draft: ActionDraft | null;
  /** Action as the service has stored it; null for a new action. */
  savedAction: Action | null;
  isDirty: boolean;
  isBusy: boolean;
  fault: FieldError | null;
  changeDraft(change: Partial<ActionDraft>): void;
  /**
   * Saves the draft if it has unsaved changes.
   * @returns the saved action, or null if the save failed. Also null if no save is possible now: before the draft is loaded, during another
   *   save, and during a conflict with another person's change
   */
  saveDraft(): Promise<Action | null>;
  /**
   * Reads the action from the service again. For a new action, reads the action to copy, and replaces the draft by the copy.
   * @param shownDraft draft on the page when the read starts. If the person types during the read, the typed text stays as
   *   an unsaved change
   */
  reloadAction(shownDraft: ActionDraft | null): Promise<void>;
  otherPeopleChanges: OtherPeopleChanges;
  /** Replaces the draft by the version that another person has saved. */
  replaceByOtherVersion(): void;
  /** Keeps the draft, so that the next save overwrites the version that another person has saved. */
  keepOwnVersion(): void;
  /** Makes the next save create a new action from the draft. Call this after another person has deleted the action. */
  detachFromAction(): void;
}

interface EditorOptions {
  api: ApiClient;
  appId: number;
  id: number | "new";
  /** Source of a new action's first draft: the name of a template, or the ID of an action to copy (`copyOf`). */
  draftSource: { template?: string; copyOf?: string };
  changes: ActionChangeSubscription;
  onSaved: (action: Action, isNew: boolean) => void;
}

const NAME_MAX_CHARACTERS = 255;

const isEdited = (draft: ActionDraft | null, savedDraft: ActionDraft | null): boolean =>
  draft !== null && savedDraft !== null && !haveSameActionInput(draft, savedDraft);

const createCopyName = (name: string) => `${name.slice(0, NAME_MAX_CHARACTERS - 5)}-copy`;

export function useActionEditor({ api, appId, id, draftSource, changes, onSaved }: EditorOptions): ActionEditor {
  const { template } = draftSource;
  const copiedActionId = parseId(draftSource.copyOf);
  const [savedAction, setSavedAction] = useState<Action | null>(null);
  const [draft, setDraftState] = useState<ActionDraft | null>(() =>
    id === "new" && copiedActionId === null ? createDraftFromTemplate(template) : null,
  );
  // First draft of a new action. If the current draft differs from it, the new action has unsaved changes.
  const [firstDraft, setFirstDraft] = useState(draft);
  // Newest draft. React's state may not yet contain the text of the last key press when the person saves.
  const latestDraft = useRef(draft);
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<FieldError | null>(null);

  const setDraft = useCallback((next: ActionDraft) => {
    latestDraft.current = next;
    setDraftState(next);
  }, []);

  const applySavedAction = useCallback(
    (action: Action) => {
      setSavedAction(action);
      setDraft(actionToDraft(action));
      setFault(null);
    },
    [setDraft],
  );

  const reloadAction = useCallback(
    async (shownDraft: ActionDraft | null) => {
      const requestedId = id === "new" ? copiedActionId : id;
      if (requestedId === null) return;
      try {
        const { action } = await api.request(GetAction, { appId, id: requestedId });
        if (id !== "new") return latestDraft.current === shownDraft ? applySavedAction(action) : setSavedAction(action);
        const copy = { ...actionToDraft(action), name: createCopyName(action.name) };
        setFirstDraft(copy);
        setDraft(copy);
      } catch (error) {
        setFault(toFieldError(asApiError(error)));
      }
    },
    [api, appId, id, copiedActionId, setDraft, applySavedAction],
  );

  const [isDetached, setDetached] = useState(false);
  useEffect(() => {
    if (id !== savedAction?.id && !isDetached && latestDraft.current === null) void reloadAction(null);
  }, [id, savedAction?.id, isDetached, reloadAction]);

  const savedDraft = useMemo(() => (savedAction ? actionToDraft(savedAction) : firstDraft), [savedAction, firstDraft]);
  const isDirty = useMemo(() => isEdited(draft, savedDraft), [draft, savedDraft]);

  const differsFrom = useCallback((action: Action) => isEdited(latestDraft.current, actionToDraft(action)), []);
  // Data for `useOtherPeopleChanges`. `isDirty` uses the newest draft, because React's state can be older.
  const knownState = useRef({ savedAction, isDirty: (): boolean => false, differsFrom });
  knownState.current = { savedAction, isDirty: () => isEdited(latestDraft.current, savedDraft), differsFrom };
  const pendingSave = useRef<Promise<unknown>>(Promise.resolve());
  const otherPeopleChanges = useOtherPeopleChanges({
    api,
    appId,
    changes,
    knownState,
    pendingSave,
    replaceAction: applySavedAction,
  });
  const { conflict, handleRejectedSave, clearNotices } = otherPeopleChanges;

  const sendDraft = useCallback(
    async (current: ActionDraft) => {
      const data = draftToActionInput(current);
      const response = savedAction
        ? await api.request(UpdateAction, { appId, id: savedAction.id, data, ifUpdatedAt: savedAction.updatedAt })
        : await api.request(CreateAction, { appId, data });
      // If the person has typed while the save was sent, the newer draft stays as an unsaved change.
      if (latestDraft.current === current) applySavedAction(response.saved);
      else setSavedAction(response.saved);
      const isDraftDirty = () => differsFrom(response.saved);
      knownState.current = { savedAction: response.saved, isDirty: isDraftDirty, differsFrom };
      return response.saved;
    },
    [api, appId, savedAction, applySavedAction, differsFrom],
  );

  const saveDraft = useCallback(async () => {
    const { current } = latestDraft;
    if (!current || isBusy || conflict) return null;
    if (savedAction && savedDraft && haveSameActionInput(current, savedDraft)) return savedAction;
    setBusy(true);
    const saveRequest = sendDraft(current);
    // `useOtherPeopleChanges` only waits until the save has ended. The `try` block below handles a failed save.
    pendingSave.current = saveRequest.catch(() => undefined);
    try {
      const action = await saveRequest;
      clearNotices();
      onSaved(action, savedAction === null);
      return action;
    } catch (error) {
      const apiError = asApiError(error);
      if (apiError.status === "ACTION_CHANGED" || (savedAction && apiError.status === "ACTION_NOT_FOUND"))
        await handleRejectedSave().catch(() => setFault(toFieldError(apiError)));
      else setFault(toFieldError(apiError));
      return null;
    } finally {
      setBusy(false);
    }
  }, [savedDraft, isBusy, savedAction, conflict, sendDraft, onSaved, handleRejectedSave, clearNotices]);

  const replaceByOtherVersion = useCallback(() => {
    if (conflict?.action) applySavedAction(conflict.action);
    clearNotices();
  }, [conflict, applySavedAction, clearNotices]);
  const keepOwnVersion = useCallback(() => {
    if (conflict?.action) setSavedAction(conflict.action);
    clearNotices();
  }, [conflict, clearNotices]);
  const detachFromAction = useCallback(() => {
    setDetached(true);
    setSavedAction(null);
    clearNotices();
  }, [clearNotices]);

  const changeDraft = useCallback(
    (change: Partial<ActionDraft>) => {
      if (latestDraft.current) setDraft({ ...latestDraft.current, ...change });
      setFault((old) => (old?.field && old.field in change ? null : old));
    },
    [setDraft],
  );

  return {
    draft,
    savedAction,
    isDirty,
    isBusy,
    fault,
    changeDraft,
    saveDraft,
    reloadAction,
    otherPeopleChanges,
    replaceByOtherVersion,
    keepOwnVersion,
    detachFromAction,
  };
}
