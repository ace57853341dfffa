/**
 * Hook that receives other people's changes of the open action. Applies a change immediately if the page has no unsaved changes; otherwise
 * the person must choose.
 */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { GetAction } from "../documents.js";
import type { Api } from "../shared/api.js";
import type { Action, ActionChange } from "../shared/model.js";
import type { Changes } from "./use-actions.js";

/** Change by another person that conflicts with the draft in this page. */
export interface Theirs {
  /** The changed action; null if it was deleted. */
  action: Action | null;
  /** Name of the other person, or "Another person". */
  who: string;
}

export interface Others {
  /** The conflicting change; null if there is none. */
  theirs: Theirs | null;
  /** Sentence about a change that was applied automatically; null if there is none. */
  news: string | null;
  /** Called after a save was rejected because another person had saved in between. */
  refused(): Promise<void>;
  settle(): void;
}

interface Options {
  api: Api;
  appId: number;
  changes: Changes;
  /** The saved action in this page, and whether the draft has unsaved changes. Read when a change arrives. */
  known: RefObject<{ saved: Action | null; dirty: boolean }>;
  /** Promise of the current save. Changes are handled after it, because the page also receives its own changes. */
  saving: RefObject<Promise<unknown>>;
  take(action: Action): void;
}

const nameOf = ({ user }: Pick<ActionChange, "user">) =>
  user ? `${user.firstName} ${user.lastName}` : "Another person";

function sentence(change: ActionChange): string {
  const what = change.fields.length > 0 ? `changed ${change.fields.join(", ")}` : "changed this action";
  return `${nameOf(change)} ${what} just now; you see it as it is.`;
}

export function useOthers({ api, appId, changes, known, saving, take }: Options): Others {
  const [theirs, setTheirs] = useState<Theirs | null>(null);
  const [news, setNews] = useState<string | null>(null);
  const latest = useRef<ActionChange | null>(null);

  const look = useCallback(
    async (change: ActionChange | null) => {
      await saving.current;
      const { saved } = known.current;
      if (!saved || (change && change.id !== saved.id && !change.reset)) return;
      if (change?.removed) return setTheirs({ action: null, who: nameOf(change) });
      if (change?.updatedAt === saved.updatedAt) return;
      const { action } = await api.ask(GetAction, { appId, id: saved.id });
      // Read again, because the page may have changed during the request.
      const now = known.current;
      if (now.saved?.id !== action.id || now.saved.updatedAt >= action.updatedAt) return;
      const about = change?.reset ? null : change;
      if (now.dirty) return setTheirs({ action, who: about ? nameOf(about) : "Another person" });
      take(action);
      setNews(about && sentence(about));
    },
    [api, appId, known, saving, take],
  );

  useEffect(
    () =>
      changes.onChange((change) => {
        if (change.id === known.current.saved?.id) latest.current = change;
        // A failed read is repeated at the next change or the next save.
        look(change).catch(() => undefined);
      }),
    [changes, known, look],
  );

  const refused = useCallback(async () => {
    // Usually the subscription has already named the other person; the service's state decides.
    const heard = latest.current;
    await look(heard && heard.updatedAt !== known.current.saved?.updatedAt ? heard : null);
  }, [known, look]);
  const settle = useCallback(() => {
    setTheirs(null);
    setNews(null);
  }, []);
  return { theirs, news, refused, settle };
}
