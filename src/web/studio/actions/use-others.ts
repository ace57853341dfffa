/**
 * Hook that receives other people's changes of the open action. Without unsaved changes, the page applies them immediately; otherwise the
 * person must choose a version.
 */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { GetAction } from "../documents.js";
import type { Api } from "../shared/api.js";
import type { Action, ActionChange } from "../shared/model.js";
import type { ActionChanges } from "./use-actions.js";

/** Saved change of another person that conflicts with unsaved changes in this page. */
export interface OtherChange {
  /** Action as the other person has saved it; null if the other person has deleted it. */
  action: Action | null;
  /** Name of the other person, or "Another person". */
  who: string;
}

export interface OtherChanges {
  /** Conflicting change of another person; null if there is none. */
  theirs: OtherChange | null;
  /** Sentence that describes a change by another person which the page has applied; null if there is none. */
  news: string | null;
  /** Called after the service rejected a save because another person had saved the action before. */
  refused(): Promise<void>;
  settle(): void;
}

interface Options {
  api: Api;
  appId: number;
  changes: ActionChanges;
  /**
   * The saved action as this page knows it. `isDirty` returns true if the draft has unsaved changes. Both are read when a change arrives.
   */
  known: RefObject<{ saved: Action | null; isDirty: () => boolean }>;
  /**
   * Promise of the current save. The hook waits for it before it handles a change, because the page also receives the changes that it makes
   * itself.
   */
  saving: RefObject<Promise<unknown>>;
  adoptAction(action: Action): void;
}

const personName = ({ user }: Pick<ActionChange, "user">) =>
  user ? `${user.firstName} ${user.lastName}` : "Another person";

function changeSentence(change: ActionChange): string {
  const changeText = change.fields.length > 0 ? `changed ${change.fields.join(", ")}` : "changed this action";
  return `${personName(change)} ${changeText} just now; you see it as it is.`;
}

export function useOthers({ api, appId, changes, known, saving, adoptAction }: Options): OtherChanges {
  const [theirs, setTheirs] = useState<OtherChange | null>(null);
  const [news, setNews] = useState<string | null>(null);
  const latestChange = useRef<ActionChange | null>(null);

  const checkChange = useCallback(
    async (change: ActionChange | null) => {
      await saving.current;
      const { saved } = known.current;
      if (!saved || (change && change.id !== saved.id && !change.reset)) return;
      if (change?.removed) return setTheirs({ action: null, who: personName(change) });
      if (change?.updatedAt === saved.updatedAt) return;
      const { action } = await api.request(GetAction, { appId, id: saved.id });
      // Reads `known` again, because the person may have typed or saved while the request was sent.
      const current = known.current;
      if (current.saved?.id !== action.id || current.saved.updatedAt >= action.updatedAt) return;
      const describedChange = change?.reset ? null : change;
      if (current.isDirty())
        return setTheirs({ action, who: describedChange ? personName(describedChange) : "Another person" });
      adoptAction(action);
      setNews(describedChange && changeSentence(describedChange));
    },
    [api, appId, known, saving, adoptAction],
  );

  useEffect(
    () =>
      changes.onChange((change) => {
        if (change.id === known.current.saved?.id) latestChange.current = change;
        // A failed read needs no message: the hook reads again at the next change, and when the service rejects a save.
        checkChange(change).catch(() => undefined);
      }),
    [changes, known, checkChange],
  );

  const refused = useCallback(async () => {
    // The last received change usually contains the other person's name. It is not used if it is the change that this page has saved
    // itself.
    const lastChange = latestChange.current;
    await checkChange(lastChange && lastChange.updatedAt !== known.current.saved?.updatedAt ? lastChange : null);
  }, [known, checkChange]);
  const settle = useCallback(() => {
    setTheirs(null);
    setNews(null);
  }, []);
  return { theirs, news, refused, settle };
}
