/**
 * Hook that receives other people's changes of the open action. Applies a change immediately if the page has no unsaved changes; otherwise
 * the person must choose.
 */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { GetAction } from "../documents.js";
import type { Api } from "../shared/api.js";
import type { Action, ActionChange } from "../shared/model.js";
import type { ActionChanges } from "./use-actions.js";

/** Change by another person that conflicts with the draft in this page. */
export interface OtherChange {
  /** The changed action; null if it was deleted. */
  action: Action | null;
  /** Name of the other person, or "Another person". */
  who: string;
}

export interface OtherChanges {
  /** The conflicting change; null if there is none. */
  theirs: OtherChange | null;
  /** Sentence about a change that was applied automatically; null if there is none. */
  news: string | null;
  /** Called after a save was rejected because another person had saved in between. */
  refused(): Promise<void>;
  settle(): void;
}

interface Options {
  api: Api;
  appId: number;
  changes: ActionChanges;
  /** The saved action in this page, and whether the draft has unsaved changes. Read when a change arrives. */
  known: RefObject<{ saved: Action | null; isDirty: () => boolean }>;
  /** Promise of the current save. Changes are handled after it, because the page also receives its own changes. */
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
      // `known` is read again, because the person may have typed or saved during the request.
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
        // A failed read is repeated at the next change or the next save.
        checkChange(change).catch(() => undefined);
      }),
    [changes, known, checkChange],
  );

  const refused = useCallback(async () => {
    // The subscription has usually named the other person already. The name is only used if it belongs to the stored version.
    const lastChange = latestChange.current;
    await checkChange(lastChange && lastChange.updatedAt !== known.current.saved?.updatedAt ? lastChange : null);
  }, [known, checkChange]);
  const settle = useCallback(() => {
    setTheirs(null);
    setNews(null);
  }, []);
  return { theirs, news, refused, settle };
}
