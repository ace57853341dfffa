/** Studio when signed in: which app and which page of it, each loaded when it is first opened. */
import { type ComponentType, lazy, Suspense, useCallback, useEffect, useState } from "react";
import { type Api, asApiError } from "./api.js";
import { useConfirm } from "./confirm.js";
import { Apps } from "./documents.js";
import type { App } from "./model.js";
import { PageBoundary } from "./page-boundary.js";
import { type Navigation, usePlace } from "./place.js";
import { type PageProps, ROUTES, type View } from "./routes.js";
import { TopBar } from "./top-bar.js";
import { useActions } from "./use-actions.js";

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
        <button type="button" className="primary" onClick={() => go({ appId: first.id, view: "actions" })}>
          Go to {first.name}
        </button>
      )}
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </main>
  );
}

const LEAVE = {
  title: "Leave without saving?",
  text: "What you changed here would be lost.",
  yes: "Discard changes",
  danger: true,
};

const PAGES = Object.fromEntries(
  Object.entries(ROUTES).map(([view, { load }]) => [view, lazy(async () => ({ default: await load() }))]),
) as Partial<Record<View, ComponentType<PageProps>>> as Record<View, ComponentType<PageProps>>;

function useApps(api: Api, given: App[]) {
  const [apps, setApps] = useState(given);
  const reloadApps = useCallback(async () => {
    await api.ask(Apps, {}).then(
      (answer) => setApps(answer.apps),
      // What was known stays, and the next reading tells of the fault.
      (error) => console.warn(asApiError(error).message),
    );
  }, [api]);
  return { apps, reloadApps };
}

interface StudioProps {
  api: Api;
  apps: App[];
  signOut: () => void;
}

export function Studio({ api, apps: given, signOut }: StudioProps) {
  const { apps, reloadApps } = useApps(api, given);
  const { ask, dialog } = useConfirm();
  const mayLeave = useCallback(() => ask(LEAVE), [ask]);
  const { place, go, setDirty, mayGo } = usePlace(mayLeave);
  const app = place.appId === null ? apps[0] : apps.find(({ id }) => id === place.appId);
  const actions = useActions(api, app?.id ?? null);
  const { view } = place;
  const title = app ? `${ROUTES[view].label} · ${app.name} · Studio` : "Studio";
  useEffect(() => {
    document.title = title;
  }, [title]);

  if (!app) return <NoApp asked={place.appId} first={apps[0]} go={go} signOut={signOut} />;
  const leave = async () => {
    if (await mayGo()) signOut();
  };
  const Page = PAGES[view];
  return (
    <div className="studio">
      <TopBar apps={apps} app={app} view={view} go={go} signOut={() => void leave()} />
      <main id="content" className="content">
        <PageBoundary key={`${app.id}/${view}`}>
          <Suspense fallback={<p className="welcome">Loading…</p>}>
            <Page appId={app.id} {...{ api, app, place, go, setDirty, ask, actions, reloadApps }} />
          </Suspense>
        </PageBoundary>
      </main>
      {dialog}
    </div>
  );
}
