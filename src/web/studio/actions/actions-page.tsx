/** Page of the app's actions: the list, and the workspace of the open action. */
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { Link } from "../shell/link.js";
import type { PageProps } from "../shell/page-props.js";
import { mayEdit } from "../shell/rights.js";
import { useRole } from "../shell/role.js";
import { PATHS } from "../shell/views.js";
import { ActionList } from "./action-list.js";
import { OperatedAction } from "./operated-action.js";
import { TEMPLATES } from "./templates.js";
import { Workspace } from "./workspace.js";

const route = getRouteApi(PATHS.actions);

function WelcomeText({ appId, none }: { appId: number; none: boolean }) {
  if (!mayEdit(useRole())) {
    return (
      <div className="welcome">
        <h2>{none ? "No actions yet" : "Choose an action"}</h2>
      </div>
    );
  }
  return (
    <div className="welcome">
      <h2>{none ? "No actions yet" : "Choose an action"}</h2>
      <p>{none ? "Start from a template:" : "Choose one on the left, or start from a template:"}</p>
      <ul className="templates">
        {Object.entries(TEMPLATES).map(([template, { label, text }]) => (
          <li key={template}>
            <Link className="button" to={PATHS.actions} params={{ appId, item: "new" }} search={{ template }}>
              <b>{label}</b>
              <span className="hint">{text}</span>
            </Link>
          </li>
        ))}
      </ul>
      <p className="welcome-keys">
        <kbd>Alt N</kbd> new <kbd>/</kbd> search <kbd>Ctrl S</kbd> save <kbd>Ctrl Enter</kbd> run <kbd>Ctrl K</kbd> all
        commands
      </p>
    </div>
  );
}

/**
 * Returns a React key for each workspace. The workspace of a new action keeps its key after the first save, so that its run and its panels
 * stay.
 */
function useWorkspaceKey() {
  const { item } = route.useParams();
  const { template = "", copyOf = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const [made, setMade] = useState<{ item: number; key: string } | null>(null);
  const [turn, setTurn] = useState(0);
  const newWorkspaceKey = `new ${turn} ${template} ${copyOf}`;
  const onCreated = useCallback(
    (id: number) => {
      setMade({ item: id, key: newWorkspaceKey });
      void navigate({ to: ".", params: { item: id }, ignoreBlocker: true });
    },
    [navigate, newWorkspaceKey],
  );
  // Until the URL names the new action, its workspace keeps the key of a new one.
  const hasArrived = made !== null && made.item === item;
  useEffect(() => {
    if (hasArrived) setTurn((old) => old + 1);
  }, [hasArrived]);
  return { key: item === "new" ? newWorkspaceKey : hasArrived ? made.key : item, onCreated };
}

interface ChosenProps extends Pick<PageProps, "app" | "actions"> {
  children?: ReactNode;
}

/** Shows the list beside the chosen action, for people who may not edit. */
function ChosenAction({ app, actions, children }: ChosenProps) {
  const { item = null } = route.useParams();
  return (
    <div className={children ? "actions-view" : "actions-view choosing"}>
      <ActionList key={app.id} actions={actions} selected={children ? item : null} />
      {children ?? (
        <div className="welcome">
          <h2>{actions.list?.actions.length === 0 ? "No actions yet" : "Choose an action"}</h2>
        </div>
      )}
    </div>
  );
}

function OperatedActions(props: PageProps) {
  const { actions } = props;
  const { item } = route.useParams();
  const action = actions.list?.actions.find(({ id }) => id === item);
  return (
    <ChosenAction {...props}>{action && <OperatedAction key={action.id} {...props} action={action} />}</ChosenAction>
  );
}

export function ActionsPage(props: PageProps) {
  const { app, actions, role } = props;
  const { item: actionId = null } = route.useParams();
  const { key, onCreated } = useWorkspaceKey();
  const isEmpty = actions.list?.actions.length === 0;
  if (role === "operator") return <OperatedActions {...props} />;
  if (role === "reader" && actionId === "new") return <ChosenAction {...props} />;
  return (
    <div className={`actions-view${actionId === null ? " choosing" : ""}${isEmpty ? " without-actions" : ""}`}>
      <ActionList key={app.id} actions={actions} selected={actionId} />
      {actionId === null ? (
        <WelcomeText appId={app.id} none={isEmpty} />
      ) : (
        <Workspace key={key} {...props} id={actionId} onCreated={onCreated} />
      )}
    </div>
  );
}
