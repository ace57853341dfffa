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
   * @param shown draft on the page when the read starts. If the person types during the read, the typed text stays as an
   * unsaved change
   */
  reloadAction(shown: ActionDraft | null): Promise<void>;
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

const isEdited = (draft: ActionDraft | null, saved: ActionDraft | null): boolean =>
  draft !== null && saved !== null && !haveSameActionInput(draft, saved);

const createCopyName = (name: string) => `${name.slice(0, NAME_MAX_CHARACTERS - 5)}-copy`;

export function useActionEditor({ api, appId, id, draftSource, changes, onSaved }: EditorOptions): ActionEditor {
  const { template } = draftSource;
  const copiedActionId = parseId(draftSource.copyOf);
  const [saved, setSaved] = useState<Action | null>(null);
  const [draft, setDraftState] = useState<ActionDraft | null>(() =>
    id === "new" && copiedActionId === null ? createDraftFromTemplate(template) : null,
  );
  // First draft of a new action. If the current draft differs from it, the new action has unsaved changes.
  const [firstDraft, setFirstDraft] = useState(draft);
  // Newest draft. React's state may not yet contain the text of the last key press when the person saves.
  const latestDraft = useRef(draft);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<FieldError | null>(null);

  const setDraft = useCallback((next: ActionDraft) => {
    latestDraft.current = next;
    setDraftState(next);
  }, []);

  const applySaved = useCallback(
    (action: Action) => {
      setSaved(action);
      setDraft(actionToDraft(action));
      setFault(null);
    },
    [setDraft],
  );

  const reload = useCallback(
    async (shown: ActionDraft | null) => {
      const requestedId = id === "new" ? copiedActionId : id;
      if (requestedId === null) return;
      try {
        const { action } = await api.request(GetAction, { appId, id: requestedId });
        if (id !== "new") return latestDraft.current === shown ? applySaved(action) : setSaved(action);
        const copy = { ...actionToDraft(action), name: createCopyName(action.name) };
        setFirstDraft(copy);
        setDraft(copy);
      } catch (error) {
        setFault(toFieldError(asApiError(error)));
      }
    },
    [api, appId, id, copiedActionId, setDraft, applySaved],
  );

  const [detached, setDetached] = useState(false);
  useEffect(() => {
    if (id !== saved?.id && !detached && latestDraft.current === null) void reload(null);
  }, [id, saved?.id, detached, reload]);

  const savedDraft = useMemo(() => (saved ? actionToDraft(saved) : firstDraft), [saved, firstDraft]);
  const dirty = useMemo(() => isEdited(draft, savedDraft), [draft, savedDraft]);

  const differsFrom = useCallback((action: Action) => isEdited(latestDraft.current, actionToDraft(action)), []);
  // Data for `useOtherPeopleChanges`. `isDirty` uses the newest draft, because React's state can be older.
  const knownState = useRef({ saved, isDirty: (): boolean => false, differsFrom });
  knownState.current = { saved, isDirty: () => isEdited(latestDraft.current, savedDraft), differsFrom };
  const pendingSave = useRef<Promise<unknown>>(Promise.resolve());
  const otherPeopleChanges = useOtherPeopleChanges({
    api,
    appId,
    changes,
    knownState,
    pendingSave,
    replaceAction: applySaved,
  });
  const { conflict, handleRejectedSave, clearNotices } = otherPeopleChanges;

  const sendSave = useCallback(
    async (current: ActionDraft) => {
      const data = draftToActionInput(current);
      const response = saved
        ? await api.request(UpdateAction, { appId, id: saved.id, data, ifUpdatedAt: saved.updatedAt })
        : await api.request(CreateAction, { appId, data });
      // If the person has typed while the save was sent, the newer draft stays as an unsaved change.
      if (latestDraft.current === current) applySaved(response.saved);
      else setSaved(response.saved);
      const isDirty = () => differsFrom(response.saved);
      knownState.current = { saved: response.saved, isDirty, differsFrom };
      return response.saved;
    },
    [api, appId, saved, applySaved, differsFrom],
  );

  const save = useCallback(async () => {
    const { current } = latestDraft;
    if (!current || busy || conflict) return null;
    if (saved && savedDraft && haveSameActionInput(current, savedDraft)) return saved;
    setBusy(true);
    const sending = sendSave(current);
    // `useOtherPeopleChanges` only waits until the save has ended. The `try` block below handles a failed save.
    pendingSave.current = sending.catch(() => undefined);
    try {
      const action = await sending;
      clearNotices();
      onSaved(action, saved === null);
      return action;
    } catch (error) {
      const refusal = asApiError(error);
      if (refusal.status === "ACTION_CHANGED" || (saved && refusal.status === "ACTION_NOT_FOUND"))
        await handleRejectedSave().catch(() => setFault(toFieldError(refusal)));
      else setFault(toFieldError(refusal));
      return null;
    } finally {
      setBusy(false);
    }
  }, [savedDraft, busy, saved, conflict, sendSave, onSaved, handleRejectedSave, clearNotices]);

  const takeOtherVersion = useCallback(() => {
    if (conflict?.action) applySaved(conflict.action);
    clearNotices();
  }, [conflict, applySaved, clearNotices]);
  const keepOwnVersion = useCallback(() => {
    if (conflict?.action) setSaved(conflict.action);
    clearNotices();
  }, [conflict, clearNotices]);
  const keepAsNewAction = useCallback(() => {
    setDetached(true);
    setSaved(null);
    clearNotices();
  }, [clearNotices]);

  const change = useCallback(
    (changed: Partial<ActionDraft>) => {
      if (latestDraft.current) setDraft({ ...latestDraft.current, ...changed });
      setFault((old) => (old?.field && old.field in changed ? null : old));
    },
    [setDraft],
  );

  return {
    draft,
    savedAction: saved,
    isDirty: dirty,
    isBusy: busy,
    fault,
    changeDraft: change,
    saveDraft: save,
    reloadAction: reload,
    otherPeopleChanges,
    replaceByOtherVersion: takeOtherVersion,
    keepOwnVersion,
    detachFromAction: keepAsNewAction,
  };
}
