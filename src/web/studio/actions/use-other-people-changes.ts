/**
 * Hook that receives other people's changes of the open action. If the page has no unsaved changes, it applies them immediately. Otherwise,
 * and if another person has deleted the action, the person must choose how to continue.
 */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { GetAction } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { Action, ActionChange } from "../shared/model.js";
import type { ActionChangeSubscription } from "./use-actions.js";

/** Change of another person that the page cannot apply: a save while this page has unsaved changes, or a deletion. */
export interface ConflictingChange {
  /** Action as the other person has saved it; null if the other person has deleted it. */
  action: Action | null;
  /** Name of the other person, or "Another person". */
  personName: string;
}

export interface OtherPeopleChanges {
  /** Conflicting change of another person; null if there is none. */
  conflict: ConflictingChange | null;
  /** Sentence about another person's change that this page has applied; null if there is none. */
  changeNotice: string | null;
  /** Call this after a rejected save, if another person has saved or deleted the action. Reads the other person's version. */
  handleRejectedSave(): Promise<void>;
  clearNotices(): void;
}

interface OtherPeopleChangesOptions {
  api: ApiClient;
  appId: number;
  changes: ActionChangeSubscription;
  /**
   * `savedAction` is the action as this page last received it. `isDirty` returns true if the draft has unsaved changes. `differsFrom`
   * returns true if the draft differs from another version of the action.
   */
  knownState: RefObject<{
    savedAction: Action | null;
    isDirty: () => boolean;
    differsFrom: (action: Action) => boolean;
  }>;
  /** Resolves when the current save has ended. The hook handles a change only after that, because the save itself also causes a change. */
  pendingSave: RefObject<Promise<unknown>>;
  replaceAction(action: Action): void;
}

const getPersonName = ({ user }: Pick<ActionChange, "user">) =>
  user ? `${user.firstName} ${user.lastName}` : "Another person";

/** Reads the saved action. Returns null if the app has no such action. @throws ApiError for other errors */
async function readAction(api: ApiClient, appId: number, id: number): Promise<Action | null> {
  try {
    return (await api.request(GetAction, { appId, id })).action;
  } catch (error) {
    if (asApiError(error).status === "ACTION_NOT_FOUND") return null;
    throw error;
  }
}

function describeChange(change: ActionChange): string {
  const changeText = change.fields.length > 0 ? `changed ${change.fields.join(", ")}` : "changed this action";
  return `${getPersonName(change)} ${changeText} just now. You see the changed action.`;
}

export function useOtherPeopleChanges({
  api,
  appId,
  changes,
  knownState,
  pendingSave,
  replaceAction,
}: OtherPeopleChangesOptions): OtherPeopleChanges {
  const [conflict, setConflict] = useState<ConflictingChange | null>(null);
  const [changeNotice, setChangeNotice] = useState<string | null>(null);
  /** Last change of the open action. It can be a change that this page itself saved. */
  const latestChange = useRef<ActionChange | null>(null);

  const checkChange = useCallback(
    async (change: ActionChange | null) => {
      await pendingSave.current;
      const { savedAction } = knownState.current;
      if (!savedAction || (change && change.id !== savedAction.id && !change.reset)) return;
      if (change?.removed) return setConflict({ action: null, personName: getPersonName(change) });
      if (change?.updatedAt === savedAction.updatedAt) return;
      const action = await readAction(api, appId, savedAction.id);
      // Reads `knownState` again, because the person may have typed or saved while the request was sent.
      const current = knownState.current;
      if (current.savedAction?.id !== savedAction.id) return;
      // A notification after a lost connection (`reset`) names neither a person nor the changed fields.
      const describedChange = change?.reset ? null : change;
      const personName = describedChange ? getPersonName(describedChange) : "Another person";
      // The action was deleted, for example while the connection was lost. A deletion always is a conflict.
      if (!action) return setConflict({ action, personName });
      if (current.savedAction.updatedAt >= action.updatedAt) return;
      // The draft can equal the saved action: after this page has saved it, but has not received the response. Then there is
      // no conflict.
      if (current.isDirty() && current.differsFrom(action)) return setConflict({ action, personName });
      replaceAction(action);
      setChangeNotice(describedChange && describeChange(describedChange));
    },
    [api, appId, knownState, pendingSave, replaceAction],
  );

  useEffect(
    () =>
      changes.onChange((change) => {
        if (change.id === knownState.current.savedAction?.id) latestChange.current = change;
        // Ignores a failed read. The hook reads the action again at the next change, and when the service rejects a save.
        checkChange(change).catch(() => undefined);
      }),
    [changes, knownState, checkChange],
  );

  const handleRejectedSave = useCallback(async () => {
    // Takes the other person's name from the last change. If this page itself made that change, the name is unknown.
    const lastChange = latestChange.current;
    await checkChange(
      lastChange && lastChange.updatedAt !== knownState.current.savedAction?.updatedAt ? lastChange : null,
    );
  }, [knownState, checkChange]);
  const clearNotices = useCallback(() => {
    setConflict(null);
    setChangeNotice(null);
  }, []);
  return { conflict, changeNotice, handleRejectedSave, clearNotices };
}
