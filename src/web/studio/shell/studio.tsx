/**
 * Frame of Studio for a signed-in person: shows the open page of the open app. The code of each page is loaded when the page is first
 * opened.
 */
import { type ComponentType, lazy, Suspense, useCallback, useEffect } from "react";
import { SessionDialog } from "../accounts/session-dialog.js";
import { type ActionsState, useActions } from "../actions/use-actions.js";
import { NewAppForm, type NewAppFormProps } from "../app/new-app.js";
import { useDocs } from "../docs/use-docs.js";
import { Apps } from "../documents.js";
import { useConfirm } from "../shared/confirm.js";
import type { App } from "../shared/model.js";
import { useMediaQuery } from "../shared/use-media-query.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { ConnectionBanner } from "./connection-banner.js";
import { importOrThrowLoadError } from "./load-error.js";
import { PageBoundary } from "./page-boundary.js";
import type { PageProps } from "./page-props.js";
import { usePalette } from "./palette.js";
import { getRoleOnApp, mayEdit } from "./rights.js";
import { RoleProvider } from "./role.js";
import { getLoadedStudioPage, loadStudioPage } from "./routes.js";
import type { StudioSession } from "./session.js";
import { canRoleUseView, SidebarContent } from "./sidebar.js";
import type { StudioRoute } from "./studio-route.js";
import { TopBar, useItemName } from "./top-bar.js";
import { useCollapsedSidebar } from "./use-collapsed.js";
import { useGlobalCommandRegistration } from "./use-global-command-registration.js";
import { usePersonRoles } from "./use-roles.js";
import { useStudioRoute } from "./use-studio-route.js";
import { APP_SUBPAGE_LABELS, isAppSubpage, VIEW_DETAILS, type View } from "./views.js";

interface NoAppProps extends NewAppFormProps {
  requestedAppId: number | null;
  firstApp: App | undefined;
  isAdmin: boolean;
  signOut: () => void;
  signOutFault: string | null;
}

function describeMissingApp(requestedAppId: number | null, hasOthers: boolean, isAdmin: boolean): string {
  if (hasOthers) return `There is no app ${requestedAppId}, or you have no role on it.`;
  return isAdmin
    ? "There are no apps yet. Create the first one here."
    : "You have no role on any app. Ask an owner or an administrator of your organization for an invitation.";
}

function SignOutFault({ signOutFault }: Pick<StudioProps, "signOutFault">) {
  return (
    <p className="notice fault" role="alert">
      {signOutFault !== null && `You are still signed in: ${signOutFault}`}
    </p>
  );
}

function NoAppPage({ requestedAppId, firstApp, isAdmin, signOut, signOutFault, ...appPageProps }: NoAppProps) {
  const { go } = appPageProps;
  return (
    <main className="welcome">
      <h1>{requestedAppId === null ? "No app" : `No app ${requestedAppId}`}</h1>
      <p>{describeMissingApp(requestedAppId, firstApp !== undefined, isAdmin)}</p>
      {firstApp && (
        <button type="button" className="primary" onClick={() => go({ appId: firstApp.id, view: "actions" })}>
          Go to {firstApp.name}
        </button>
      )}
      {!firstApp && isAdmin && <NewAppForm {...appPageProps} />}
      <button type="button" onClick={signOut}>
        Sign out
      </button>
      <SignOutFault signOutFault={signOutFault} />
    </main>
  );
}

const LEAVE_QUESTION = {
  title: "Leave without saving?",
  explanation: "What you changed here would be lost.",
  confirmLabel: "Discard changes",
  isDangerous: true,
};

const pageComponents = new Map<View, ComponentType<PageProps>>();

/**
 * Returns the component of a page. It returns the same component in each render, so that React keeps the page's state, but a new one after
 * the page's code could not be loaded, so that the next visit loads it again.
 */
function getPageComponent(view: View): ComponentType<PageProps> {
  const loadedPage = pageComponents.get(view);
  if (loadedPage) return loadedPage;
  const loadPage = async () => {
    try {
      return { default: await importOrThrowLoadError(loadStudioPage(view)) };
    } catch (error) {
      pageComponents.delete(view);
      throw error;
    }
  };
  const page = getLoadedStudioPage(view) ?? lazy(loadPage);
  pageComponents.set(view, page);
  return page;
}

function useApps(initialApps: App[]) {
  // Reads the apps again when this person changes an app, and after a reconnect. Until the first response arrives,
  // Studio shows the apps that the session contained.
  const { value, reload } = useResource({
    ...createQueryOptions(Apps, {}),
    initialData: { apps: initialApps },
    refetchOnMount: false,
    refetchOnWindowFocus: false,
  });
  return { apps: value?.apps ?? initialApps, reloadApps: reload };
}

/** Sets the title of the browser window: the name of the open item or page, and of the app. */
function useWindowTitle(app: App | undefined, route: StudioRoute, actions: ActionsState): void {
  const { view, item } = route;
  const name = useItemName(app?.id, route, actions);
  const openItemName = view === "app" && isAppSubpage(item) ? APP_SUBPAGE_LABELS[item] : name;
  const title = [openItemName ?? VIEW_DETAILS[view].label, app?.name, "Studio"].filter(Boolean).join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}

interface StudioProps {
  session: StudioSession;
  signOut: () => void;
  /** Error message if the last attempt to sign out failed. */
  signOutFault: string | null;
}

export function Studio({
  session: { api, apps: initialApps, roles: initialRoles, isAdmin, email },
  signOut,
  signOutFault,
}: StudioProps) {
  const { apps, reloadApps } = useApps(initialApps);
  const { roles, reloadRoles } = usePersonRoles(api, initialRoles);
  const { confirm, dialog } = useConfirm();
  const confirmDiscard = useCallback(() => confirm(LEAVE_QUESTION), [confirm]);
  const { route, go, setDirty, confirmLeaving } = useStudioRoute(confirmDiscard, apps[0]?.id ?? null);
  const app = route.appId === null ? apps[0] : apps.find(({ id }) => id === route.appId);
  const actions = useActions(api, app?.id ?? null);
  const { openDocs, docsPanel } = useDocs(app?.id ?? 0);
  const isEditor = app !== undefined && mayEdit(getRoleOnApp({ roles, isAdmin }, app.id));
  const { openPalette, palette } = usePalette({ appId: app?.id ?? 0, isEditor, go, openDocs });
  const { isCollapsed, toggle } = useCollapsedSidebar();
  const isNarrow = useMediaQuery("(max-width: 799px)");
  useWindowTitle(app, route, actions);
  const confirmSignOut = useCallback(async () => {
    if (await confirmLeaving()) signOut();
  }, [confirmLeaving, signOut]);
  const onSignOut = useCallback(() => void confirmSignOut(), [confirmSignOut]);
  useGlobalCommandRegistration({ isAdmin, apps, go, actions, signOut: onSignOut });
  // Only editors can create items. For other people, the URL of a new item shows the list.
  const leadsToList = app !== undefined && !isEditor && route.item === "new";
  useEffect(() => {
    if (leadsToList) go({ item: null, query: {} }, { skipsQuestion: true, replacesHistoryEntry: true });
  }, [leadsToList, go]);

  if (!app) {
    return (
      <NoAppPage
        requestedAppId={route.appId}
        firstApp={apps[0]}
        {...{ api, route, go, isAdmin, reloadApps, signOut, signOutFault }}
      />
    );
  }
  const role = getRoleOnApp({ roles, isAdmin }, app.id);
  // Shows Home if the person's role may not use the page that the URL names.
  const view = canRoleUseView(route.view, role) ? route.view : "home";
  const Page = getPageComponent(view);
  const roleProps = { role, reloadRoles, organizations: roles.organizations };
  const sidebarProps = { role, apps, app, email, route: { ...route, view }, go, openPalette, signOut: onSignOut };
  return (
    <RoleProvider value={role}>
      <div className={isCollapsed ? "studio collapsed" : "studio"}>
        <button type="button" className="skip" onClick={() => document.getElementById("content")?.focus()}>
          Skip to the content
        </button>
        {!isNarrow && (
          <aside className="sidebar" aria-label="Navigation">
            <SidebarContent {...sidebarProps} {...{ toggleCollapsed: toggle, isCollapsed }} />
          </aside>
        )}
        <div className="studio-main">
          <TopBar {...{ api, actions, openDocs }} {...sidebarProps} />
          <ConnectionBanner api={api} />
          <SignOutFault signOutFault={signOutFault} />
          <main id="content" className="content" tabIndex={-1}>
            <PageBoundary key={`${app.id}/${view}`} resetKey={route.item}>
              <Suspense fallback={<p className="welcome">Loading…</p>}>
                <Page
                  appId={app.id}
                  {...{ api, apps, app, route, go, setDirty, confirm, actions, reloadApps, isAdmin, email }}
                  {...roleProps}
                />
              </Suspense>
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
