/** Page of the app's actions: the list, and the workspace of the open action. */
import { type ReactNode, useCallback, useState } from "react";
import type { PageProps } from "../shell/page-props.js";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { createHref, type Navigation, parseId, type StudioRoute } from "../shell/studio-route.js";
import { ActionList } from "./action-list.js";
import { OperatorActionView } from "./operator-action-view.js";
import { ACTION_TEMPLATES } from "./templates.js";
import { ActionWorkspace } from "./workspace.js";

const SHORTCUTS = [
  ["Alt N", "new"],
  ["/", "search"],
  ["Ctrl S", "save"],
  ["Ctrl Enter", "run"],
  ["Ctrl K", "all commands"],
] as const;

function WelcomeText({ appId, hasNoActions }: { appId: number; hasNoActions: boolean }) {
  if (!mayEdit(useRole())) {
    return (
      <div className="welcome">
        <h2>{hasNoActions ? "No actions yet" : "Choose an action"}</h2>
      </div>
    );
  }
  return (
    <div className="welcome">
      <h2>{hasNoActions ? "No actions yet" : "Choose an action"}</h2>
      <p>{hasNoActions ? "Start from a template:" : "Choose one on the left, or start from a template:"}</p>
      <ul className="templates">
        {Object.entries(ACTION_TEMPLATES).map(([template, { label, description }]) => (
          <li key={template}>
            <a className="button" href={createHref({ appId, view: "actions", item: "new", query: { template } })}>
              <b>{label}</b>
              <span className="hint">{description}</span>
            </a>
          </li>
        ))}
      </ul>
      <p className="welcome-keys">
        {SHORTCUTS.map(([keys, effect]) => (
          <span key={keys}>
            <kbd>{keys}</kbd> {effect}
          </span>
        ))}
      </p>
    </div>
  );
}

/**
 * Returns a React key for the workspace of the open action. If the key changes, React discards the workspace's state. So a new action
 * has the same key before and after its first save.
 */
function useWorkspaceKey(route: StudioRoute, go: Navigation["go"]) {
  const { item, query } = route;
  const [createdAction, setCreatedAction] = useState<{ item: string; key: string } | null>(null);
  const [createdCount, setCreatedCount] = useState(0);
  const newWorkspaceKey = `new ${createdCount} ${query["template"] ?? ""} ${query["copyOf"] ?? ""}`;
  const onCreated = useCallback(
    (id: number) => {
      setCreatedAction({ item: String(id), key: newWorkspaceKey });
      setCreatedCount(createdCount + 1);
      go({ item: String(id) }, { skipsQuestion: true, startRoute: route });
    },
    [route, go, createdCount, newWorkspaceKey],
  );
  return { key: item === "new" ? newWorkspaceKey : createdAction?.item === item ? createdAction.key : item, onCreated };
}

interface ChosenActionProps extends Pick<PageProps, "app" | "route" | "actions" | "go"> {
  children?: ReactNode;
}

/** Shows the list of actions, and beside it the chosen action (`children`), for people who may not edit actions. */
function ChosenAction({ app, route, actions, go, children }: ChosenActionProps) {
  return (
    <div className={children ? "actions-view" : "actions-view choosing"}>
      <ActionList key={app.id} actions={actions} selectedId={children ? parseId(route.item) : null} go={go} />
      {children ?? (
        <div className="welcome">
          <h2>{actions.actionList?.actions.length === 0 ? "No actions yet" : "Choose an action"}</h2>
        </div>
      )}
    </div>
  );
}

function ActionsForOperators(props: PageProps) {
  const { route, actions } = props;
  const action = actions.actionList?.actions.find(({ id }) => id === parseId(route.item));
  return (
    <ChosenAction {...props}>
      {action && <OperatorActionView key={action.id} {...props} action={action} />}
    </ChosenAction>
  );
}

export function ActionsPage(props: PageProps) {
  const { app, route, go, actions, role } = props;
  const actionId = route.item === "new" ? "new" : parseId(route.item);
  const { key, onCreated } = useWorkspaceKey(route, go);
  const isEmpty = actions.actionList?.actions.length === 0;
  if (role === "operator") return <ActionsForOperators {...props} />;
  if (role === "reader" && actionId === "new") return <ChosenAction {...props} />;
  return (
    <div className={`actions-view${actionId === null ? " choosing" : ""}${isEmpty ? " without-actions" : ""}`}>
      <ActionList key={app.id} actions={actions} selectedId={actionId} go={go} />
      {actionId === null ? (
        <WelcomeText appId={app.id} hasNoActions={isEmpty} />
      ) : (
        <ActionWorkspace key={key} {...props} id={actionId} onCreated={onCreated} />
      )}
    </div>
  );
}
