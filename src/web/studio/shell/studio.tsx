/** Studio for a signed-in person: shows the open page of the open app. Each page is loaded when it is first opened. */
import { Outlet, useNavigate } from "@tanstack/react-router";
import { createContext, type ReactNode, use, useCallback, useEffect } from "react";
import { SessionDialog } from "../accounts/session-dialog.js";
import { type Actions, useActions } from "../actions/use-actions.js";
import { NewApp, type NewAppProps } from "../app/new-app.js";
import { useDocs } from "../docs/use-docs.js";
import { Apps } from "../documents.js";
import { useConfirm } from "../shared/confirm.js";
import type { App } from "../shared/model.js";
import { useMedia } from "../shared/use-narrow.js";
import { queryOf, useResource } from "../shared/use-resource.js";
import { ConnectionBanner } from "./connection-banner.js";
import { PAGES, PageContext } from "./lazy-pages.js";
import { PageBoundary } from "./page-boundary.js";
import { usePalette } from "./palette.js";
import { mayEdit, roleOn } from "./rights.js";
import { RoleProvider } from "./role.js";
import type { Session } from "./session.js";
import { isFor, SidebarContent } from "./sidebar.js";
import { itemName, TopBar } from "./top-bar.js";
import { useCollapsed } from "./use-collapsed.js";
import { useFrameCommands } from "./use-frame-commands.js";
import { type OpenPlace, useOpenPlace } from "./use-open-place.js";
import { useRoles } from "./use-roles.js";
import { useUnsavedChanges } from "./use-unsaved.js";
import { APP_PARTS, appPartOf, PATHS, VIEW_DETAILS } from "./views.js";

interface NoAppProps extends NewAppProps {
  requestedAppId: number | undefined;
  first: App | undefined;
  isAdmin: boolean;
  signOut: () => void;
}

function NoApp({ requestedAppId, first, isAdmin, signOut, ...making }: NoAppProps) {
  const navigate = useNavigate();
  return (
    <main className="welcome">
      <h1>{requestedAppId === undefined ? "No app" : `No app ${requestedAppId}`}</h1>
      <p>
        {first
          ? `There is no app ${requestedAppId}, or you have no role on it.`
          : "You have no role on any app. Ask an owner or an administrator of your organization for an invitation."}
      </p>
      {first && (
        <button
          type="button"
          className="primary"
          onClick={() => void navigate({ to: PATHS.actions, params: { appId: first.id, item: undefined } })}
        >
          Go to {first.name}
        </button>
      )}
      {!first && isAdmin && <NewApp {...making} />}
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </main>
  );
}

function useApps(initialApps: App[]) {
  // Read again only when this person changes an app, or after a lost connection. The known apps stay until the service answers.
  const { value, reload } = useResource({
    ...queryOf(Apps, {}),
    initialData: { apps: initialApps },
    refetchOnMount: false,
    refetchOnWindowFocus: false,
  });
  return { apps: value?.apps ?? initialApps, reloadApps: reload };
}

/** Returns the title of the window: the open item or the page, and the app. */
function useTitle(app: App | undefined, place: OpenPlace, actions: Actions): void {
  const { view, item } = place;
  const open = view === "app" && item !== undefined ? APP_PARTS[appPartOf(item)] : itemName(place, actions);
  const title = [open ?? VIEW_DETAILS[view].label, app?.name, "Studio"].filter(Boolean).join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}

interface SignedIn {
  session: Session;
  signOut: () => void;
}

export const SessionContext = createContext<SignedIn | null>(null);

/** Component of the root route. */
export function StudioFrame(): ReactNode {
  const { session, signOut } = use(SessionContext)!;
  const { api, apps: initialApps, roles: known, isAdmin, email } = session;
  const { apps, reloadApps } = useApps(initialApps);
  const { roles, reloadRoles } = useRoles(api, known);
  const { confirm, dialog } = useConfirm();
  const { setDirty, mayLeave } = useUnsavedChanges(confirm);
  const place = useOpenPlace();
  const app = place.appId === undefined ? apps[0] : apps.find(({ id }) => id === place.appId);
  const actions = useActions(api, app?.id ?? null);
  const { openDocs, docsPanel } = useDocs(app?.id ?? 0);
  const isEditor = app !== undefined && mayEdit(roleOn({ roles, isAdmin }, app.id));
  const { openPalette, palette } = usePalette({ appId: app?.id ?? 0, isEditor, openDocs });
  const { isCollapsed, toggle } = useCollapsed();
  const isNarrow = useMedia("(max-width: 799px)");
  useTitle(app, place, actions);
  const confirmSignOut = useCallback(async () => {
    if (await mayLeave()) signOut();
  }, [mayLeave, signOut]);
  const onSignOut = useCallback(() => void confirmSignOut(), [confirmSignOut]);
  useFrameCommands({ view: place.view, isAdmin, apps, actions, signOut: onSignOut });

  if (!app) {
    return <NoApp requestedAppId={place.appId} first={apps[0]} {...{ api, isAdmin, reloadApps, signOut }} />;
  }
  const role = roleOn({ roles, isAdmin }, app.id);
  // A page that is not for this role opens Home instead.
  const view = isFor(place.view, role) ? place.view : "home";
  const rights = { role, reloadRoles, organizations: roles.organizations };
  const props = { appId: app.id, api, apps, app, setDirty, confirm, actions, reloadApps, isAdmin, email, ...rights };
  const sidebar = { role, apps, app, email, place: { ...place, view }, openPalette, signOut: onSignOut };
  return (
    <RoleProvider value={role}>
      <div className={isCollapsed ? "studio collapsed" : "studio"}>
        <button type="button" className="skip" onClick={() => document.getElementById("content")?.focus()}>
          Skip to the content
        </button>
        {!isNarrow && (
          <aside className="sidebar" aria-label="Navigation">
            <SidebarContent {...sidebar} {...{ toggle, isCollapsed }} />
          </aside>
        )}
        <div className="studio-main">
          <TopBar {...{ api, actions, openDocs }} {...sidebar} />
          <ConnectionBanner api={api} />
          <main id="content" className="content" tabIndex={-1}>
            <PageBoundary key={`${app.id}/${view}`}>
              <PageContext value={props}>{view === place.view ? <Outlet /> : <PAGES.home />}</PageContext>
            </PageBoundary>
          </main>
        </div>
        {dialog}
        {palette}
        {docsPanel}
        <SessionDialog email={email} />
      </div>
    </RoleProvider>
  );
}
