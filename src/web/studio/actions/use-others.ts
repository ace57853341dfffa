/** What others do to the action that is open here: heard as it happens, and taken at once where nothing of ours would be lost. */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { GetAction } from "../documents.js";
import type { Api } from "../shared/api.js";
import type { Action, ActionChange } from "../shared/model.js";
import type { Changes } from "./use-actions.js";

/** Another's change that this page's draft has not seen. */
export interface Theirs {
  /** null: it was deleted. */
  action: Action | null;
  /** Who, as far as it is known. */
  who: string;
}

export interface Others {
  /** null while nothing of theirs stands against what is here. */
  theirs: Theirs | null;
  /** What was taken over by itself, in a sentence; null where there is nothing to say. */
  news: string | null;
  /** A save was refused because another person saved in between. */
  refused(): Promise<void>;
  settle(): void;
}

interface Options {
  api: Api;
  appId: number;
  changes: Changes;
  /** The action as this page knows it, and whether something is unsaved; read when a change is heard. */
  known: RefObject<{ saved: Action | null; dirty: boolean }>;
  /** Ends when the save that is under way has its answer: our own change is heard too. */
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
      // Asked for again, for time has passed.
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
        // The next change, or the next save, looks again.
        look(change).catch(() => undefined);
      }),
    [changes, known, look],
  );

  const refused = useCallback(async () => {
    // Who it was has been heard as a rule; the reading alone says what stands.
    const heard = latest.current;
    await look(heard && heard.updatedAt !== known.current.saved?.updatedAt ? heard : null);
  }, [known, look]);
  const settle = useCallback(() => {
    setTheirs(null);
    setNews(null);
  }, []);
  return { theirs, news, refused, settle };
}
