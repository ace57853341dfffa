/** One action being edited: loaded, changed, saved, with the refusal of the last save. Draws nothing. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Api, asApiError } from "./api.js";
import { CreateAction, GetAction, UpdateAction } from "./documents.js";
import { type Draft, dataOf, draftOf, newDraft, same } from "./draft.js";
import { type FieldFault, fieldFault } from "./field-fault.js";
import type { Action } from "./model.js";

export interface Editor {
  /** null while the action is loaded. */
  draft: Draft | null;
  /** The master as the service has it; null for a new one. */
  saved: Action | null;
  dirty: boolean;
  busy: boolean;
  fault: FieldFault | null;
  change(change: Partial<Draft>): void;
  /** @returns the action as it is now, null when it was refused */
  save(): Promise<Action | null>;
  reload(): Promise<void>;
}

interface Options {
  api: Api;
  appId: number;
  id: number | "new";
  onSaved: (action: Action) => void;
}

export function useEditor({ api, appId, id, onSaved }: Options): Editor {
  const [saved, setSaved] = useState<Action | null>(null);
  const [draft, setDrawn] = useState<Draft | null>(id === "new" ? newDraft : null);
  // What is drawn may lag behind what was typed; a save that follows at once takes what was typed.
  const latest = useRef(draft);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<FieldFault | null>(null);

  const setDraft = useCallback((next: Draft) => {
    latest.current = next;
    setDrawn(next);
  }, []);

  const take = useCallback(
    (action: Action) => {
      setSaved(action);
      setDraft(draftOf(action));
      setFault(null);
    },
    [setDraft],
  );

  const reload = useCallback(async () => {
    if (id === "new") return;
    try {
      take((await api.ask(GetAction, { appId, id })).action);
    } catch (error) {
      setFault(fieldFault(asApiError(error)));
    }
  }, [api, appId, id, take]);

  useEffect(() => {
    if (id !== saved?.id) void reload();
  }, [id, saved?.id, reload]);

  const [blank] = useState(newDraft);
  const before = useMemo(() => (saved ? draftOf(saved) : blank), [saved, blank]);
  const dirty = useMemo(() => draft !== null && !same(draft, before), [draft, before]);

  const save = useCallback(async () => {
    const { current } = latest;
    if (!current || busy) return null;
    if (saved && same(current, before)) return saved;
    setBusy(true);
    try {
      const data = dataOf(current);
      const answer = saved
        ? await api.ask(UpdateAction, { appId, id: saved.id, data })
        : await api.ask(CreateAction, { appId, data });
      // What was typed while it was being saved stays, unsaved.
      if (latest.current === current) take(answer.saved);
      else setSaved(answer.saved);
      onSaved(answer.saved);
      return answer.saved;
    } catch (error) {
      setFault(fieldFault(asApiError(error)));
      return null;
    } finally {
      setBusy(false);
    }
  }, [api, appId, before, busy, saved, onSaved, take]);

  const change = useCallback(
    (changed: Partial<Draft>) => {
      if (latest.current) setDraft({ ...latest.current, ...changed });
      setFault((old) => (old?.field && old.field in changed ? null : old));
    },
    [setDraft],
  );

  return { draft, saved, dirty, busy, fault, change, save, reload };
}
