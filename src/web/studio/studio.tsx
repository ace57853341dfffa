/** Studio when signed in: which app, which view, and the list of actions that they share. */
import { useCallback, useState } from "react";
import { ActionList } from "./action-list.js";
import type { Api } from "./api.js";
import { useConfirm } from "./confirm.js";
import { DataSourcesView } from "./data-view.js";
import { LogPanel } from "./log-panel.js";
import { MediaView } from "./media-view.js";
import type { App } from "./model.js";
import { NotificationsView } from "./notifications-view.js";
import { OutboxView } from "./outbox-view.js";
import { type Navigation, usePlace } from "./place.js";
import { SettingsView } from "./settings-view.js";
import { TopBar } from "./top-bar.js";
import { useActions } from "./use-actions.js";
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

interface NoAppProps {
  asked: number | null;
  first: App | undefined;
  go: Navigation["go"];
  signOut: () => void;
}

function NoApp({ asked, first, go, signOut }: NoAppProps) {
  return (
    <main className="welcome">
      <h2>{asked === null ? "No app" : `No app ${asked}`}</h2>
      <p>
        {first
          ? `There is no app ${asked}, or you are not an editor of it.`
          : "You are no editor of any app yet. An administrator can make one, or make you an editor of one."}
      </p>
      {first && (
        <button type="button" className="primary" onClick={() => go({ appId: first.id, actionId: null })}>
          Go to {first.name}
        </button>
      )}
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </main>
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
      go({ actionId: id }, { force: true });
    },
    [go, turn],
  );
  const own = actionId === "new" ? `new-${turn}` : made?.id === actionId ? `new-${made?.turn}` : actionId;
  return { key: `${appId}/${own}`, onCreated };
}

const LEAVE = {
  title: "Leave without saving?",
  text: "What you changed here would be lost.",
  yes: "Discard changes",
  danger: true,
};

interface StudioProps {
  api: Api;
  apps: App[];
  signOut: () => void;
}

export function Studio({ api, apps: given, signOut }: StudioProps) {
  const [apps, setApps] = useState(given);
  const { ask, dialog } = useConfirm();
  const mayLeave = useCallback(() => ask(LEAVE), [ask]);
  const { place, go, setDirty, mayGo } = usePlace(mayLeave);
  const app = place.appId === null ? apps[0] : apps.find(({ id }) => id === place.appId);
  const actions = useActions(api, app?.id ?? null);
  const { key, onCreated } = useWorkspaceKey(app?.id, place.actionId, go);
  const onAppPublished = () =>
    setApps((all) => all.map((one) => (one.id === app?.id ? { ...one, isPublished: true } : one)));

  if (!app) return <NoApp asked={place.appId} first={apps[0]} go={go} signOut={signOut} />;
  const { view, actionId } = place;
  const leave = async () => {
    if (await mayGo()) signOut();
  };
  const shared = { api, appId: app.id, ask };
  return (
    <div className="studio">
      <TopBar apps={apps} app={app} view={view} go={go} signOut={() => void leave()} />
      {view === "actions" && (
        <div className={actionId === null ? "actions-view choosing" : "actions-view"}>
          <ActionList key={app.id} actions={actions} selected={actionId} go={go} />
          {actionId === null ? (
            <Welcome none={actions.list?.actions.length === 0} />
          ) : (
            <Workspace
              key={key}
              {...shared}
              {...{ actions, app, go, setDirty, onCreated, onAppPublished }}
              id={actionId}
            />
          )}
        </div>
      )}
      {view === "log" && <LogPanel key={app.id} {...shared} actions={actions} ids={null} />}
      {view === "data" && <DataSourcesView key={app.id} {...shared} go={go} sourceId={place.sourceId} />}
      {view === "media" && (
        <MediaView key={`${app.id}/${place.folderId}`} {...shared} go={go} folderId={place.folderId} />
      )}
      {view === "outbox" && <OutboxView key={app.id} {...shared} />}
      {view === "notifications" && <NotificationsView key={app.id} {...shared} />}
      {view === "settings" && <SettingsView key={app.id} {...shared} setDirty={setDirty} />}
      {dialog}
    </div>
  );
}
