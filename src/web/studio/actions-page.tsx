/** The app's actions: the list, and the one that is open in its workspace. */
import { useCallback, useState } from "react";
import { ActionList } from "./action-list.js";
import { idOf, type Navigation } from "./place.js";
import type { PageProps } from "./routes.js";
import { Workspace } from "./workspace.js";

function Welcome({ none }: { none: boolean }) {
  return (
    <div className="welcome">
      <h2>{none ? "No action yet" : "Choose an action"}</h2>
      <p>
        {none ? "Create the first one: " : "Pick one on the left, or "}
        <kbd>Alt</kbd> <kbd>N</kbd> {none ? "or the button on the left." : "for a new one."}
      </p>
      <p>
        <kbd>/</kbd> search <kbd>Ctrl</kbd> <kbd>S</kbd> save <kbd>Ctrl</kbd> <kbd>Enter</kbd> run
      </p>
    </div>
  );
}

/** Tells workspaces apart. One that has just created its action keeps its key, and with it its run and its panels. */
function useWorkspaceKey(appId: number | undefined, actionId: number | "new" | null, go: Navigation["go"]) {
  const [made, setMade] = useState<{ id: number; turn: number } | null>(null);
  const [turn, setTurn] = useState(0);
  const onCreated = useCallback(
    (id: number) => {
      setMade({ id, turn });
      setTurn(turn + 1);
      go({ item: String(id) }, { force: true });
    },
    [go, turn],
  );
  const own = actionId === "new" ? `new-${turn}` : made?.id === actionId ? `new-${made?.turn}` : actionId;
  return { key: `${appId}/${own}`, onCreated };
}

export function ActionsPage(props: PageProps) {
  const { app, place, go, actions } = props;
  const actionId = place.item === "new" ? "new" : idOf(place.item);
  const { key, onCreated } = useWorkspaceKey(app.id, actionId, go);
  return (
    <div className={actionId === null ? "actions-view choosing" : "actions-view"}>
      <ActionList key={app.id} actions={actions} selected={actionId} go={go} />
      {actionId === null ? (
        <Welcome none={actions.list?.actions.length === 0} />
      ) : (
        <Workspace key={key} {...props} id={actionId} onCreated={onCreated} />
      )}
    </div>
  );
}
