/** One action's place of work: code, fields, and below them what can be done with it. */
import { useCallback, useEffect, useState } from "react";
import { Dock } from "./dock.js";
import { RemoveAction } from "./documents.js";
import { Fields } from "./fields.js";
import { CodeEditor } from "./lazy-editor.js";
import type { Action } from "./model.js";
import { OthersBanner } from "./others-banner.js";
import { type Editor, useEditor } from "./use-editor.js";
import type { WorkspaceProps } from "./workspace-props.js";

/** Ctrl+S, for whatever has the focus: Monaco and the browser have meanings of their own for it. */
function useSaveKey(save: () => void): void {
  useEffect(() => {
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

function Heading({ editor, back }: { editor: Editor; back: () => void }) {
  const { draft, saved, dirty, busy, fault, save } = editor;
  const { theirs } = editor.others;
  return (
    <div className="workspace-head">
      <button type="button" className="quiet narrow-only" aria-label="Back to the list of actions" onClick={back}>
        ‹
      </button>
      <h2>{draft?.name || (saved ? saved.name : "New action")}</h2>
      <span className="hint" role="status">
        {busy ? "saving…" : theirs ? "not as it is stored" : dirty || !saved ? "not saved" : "saved"}
      </span>
      {fault && fault.field === null && (
        <span className="fault" role="alert">
          {fault.message} <code>{fault.status}</code>
        </span>
      )}
      <span className="grow" />
      <button
        type="button"
        className="primary"
        title="Ctrl+S"
        disabled={busy || theirs !== null || (saved !== null && !dirty)}
        onClick={() => void save()}
      >
        {saved ? "Save" : "Create"}
      </button>
    </div>
  );
}

export function Workspace(props: WorkspaceProps) {
  const { api, appId, id, actions, ask, go, setDirty, onCreated } = props;
  const { reload: reloadList } = actions;
  const onSaved = useCallback(
    (action: Action, isNew: boolean) => {
      if (isNew) onCreated(action.id);
      void reloadList();
    },
    [onCreated, reloadList],
  );
  const editor = useEditor({ api, appId, id, changes: actions.changes, onSaved });
  const { draft, saved, dirty, fault, change, save } = editor;
  const [removeFault, setRemoveFault] = useState<string | null>(null);
  useEffect(() => setDirty(dirty), [dirty, setDirty]);
  useSaveKey(useCallback(() => void save(), [save]));

  const remove = async () => {
    if (!saved) return;
    const text = "Its production copy and its version history go with it. The execution log stays.";
    if (!(await ask({ title: `Delete ${saved.name}?`, text, yes: "Delete", danger: true }))) return;
    try {
      await api.ask(RemoveAction, { appId, id: saved.id, ifUpdatedAt: saved.updatedAt });
      go({ item: null }, { force: true });
      await reloadList();
    } catch (error) {
      setRemoveFault((error as Error).message);
    }
  };

  if (!draft) {
    return <div className="welcome">{fault ? <p className="fault">{fault.message}</p> : <p>Loading…</p>}</div>;
  }
  const codeFault = fault?.field === "code" ? fault : null;
  return (
    <div className="workspace">
      <div className="workspace-top">
        <Heading editor={editor} back={() => go({ item: null })} />
        <OthersBanner editor={editor} />
      </div>
      <div className="upper">
        <section className="code" aria-label="Code">
          <CodeEditor code={draft.code} onChange={(code) => change({ code })} fault={codeFault} />
          {codeFault && (
            <p className="fault code-fault" role="alert" data-field="code">
              {codeFault.message} <code>{codeFault.status}</code>
            </p>
          )}
        </section>
        <section className="fields" aria-label="Fields">
          <Fields {...{ api, appId, draft, assets: saved?.assets ?? [], fault, change }} />
          {saved && (
            <button type="button" className="quiet danger-text" onClick={() => void remove()}>
              Delete this action
            </button>
          )}
          <p className="fault" role="alert">
            {removeFault}
          </p>
        </section>
      </div>
      <Dock {...props} editor={editor} draft={draft} />
    </div>
  );
}
