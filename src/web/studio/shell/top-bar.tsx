/**
 * Bar above each page with the path of the page, the state of the app and its current runs. In a narrow window, it also has the button that
 * opens the sidebar.
 */
import ChevronRight from "icon:chevron-right";
import CircleHelp from "icon:circle-question-mark";
import { Fragment, lazy } from "react";
import type { ActionsState } from "../actions/use-actions.js";
import { findHelpPath } from "../docs/help-pages.js";
import { ListDataSources } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import { useMediaQuery } from "../shared/use-media-query.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { importOrThrowLoadError } from "./load-error.js";
import { DrawerButton, LoadOnFirstUse } from "./menu-buttons.js";
import { RunningChip } from "./running-chip.js";
import { SidebarContent, type SidebarProps } from "./sidebar.js";
import { createHref, parseId, type StudioRoute } from "./studio-route.js";
import { APP_SUBPAGE_LABELS, isAppSubpage, VIEW_DETAILS } from "./views.js";

const Drawer = lazy(async () => ({ default: (await importOrThrowLoadError(import("./menus.js"))).NavigationDrawer }));

/** Returns the name of the open action or run, or of a form for a new item. Returns null for other pages, and until actions are loaded. */
function getItemName({ view, item }: Pick<StudioRoute, "view" | "item">, actions: ActionsState): string | null {
  if (view === "actions" && item === "new") return "New action";
  if (view === "data" && item === "new") return "New data source";
  if (view === "actions") return actions.actionList?.actions.find(({ id }) => id === parseId(item))?.name ?? null;
  if (view === "runs") return parseId(item) === null ? null : `Run ${item}`;
  return null;
}

/** Hook that returns the name of the open item. It reads the list of data sources only while a data source is open. */
export function useItemName(
  appId: number | undefined,
  route: Pick<StudioRoute, "view" | "item">,
  actions: ActionsState,
): string | null {
  const sourceId = route.view === "data" ? parseId(route.item) : null;
  const isSourceOpen = appId !== undefined && sourceId !== null;
  // Uses the list in the query cache, which the page of the data source keeps up to date.
  const dataSources = useResource({
    ...createQueryOptions(ListDataSources, { appId: appId ?? 0 }),
    enabled: isSourceOpen,
    refetchOnMount: false,
  });
  if (isSourceOpen) return dataSources.value?.dataSources.find(({ id }) => id === sourceId)?.name ?? null;
  return getItemName(route, actions);
}

interface TopBarProps extends SidebarProps {
  api: ApiClient;
  actions: ActionsState;
  route: StudioRoute;
  openDocs: (address: string) => void;
}

function Breadcrumbs({ app, route, actions }: Pick<TopBarProps, "app" | "route" | "actions">) {
  const { view, item, query } = route;
  const name = useItemName(app.id, route, actions);
  const page = view === "app" ? APP_SUBPAGE_LABELS[isAppSubpage(item) ? item : "general"] : VIEW_DETAILS[view].label;
  const above = [
    { label: app.name, href: createHref({ appId: app.id, view: "home" }) },
    ...(name === null
      ? []
      : [{ label: page, href: createHref({ appId: app.id, view, query: view === "runs" ? query : {} }) }]),
  ];
  return (
    <nav className="breadcrumbs" aria-label="Breadcrumbs">
      {above.map(({ label, href }) => (
        <Fragment key={href}>
          <a href={href}>{label}</a>
          <ChevronRight size={14} aria-hidden />
        </Fragment>
      ))}
      <h1>{name ?? page}</h1>
    </nav>
  );
}

export function TopBar({ api, actions, openDocs, ...props }: TopBarProps) {
  const { app, route } = props;
  const isNarrow = useMediaQuery("(max-width: 799px)");
  return (
    <header className="top-bar">
      {isNarrow && (
        <LoadOnFirstUse popupKind="dialog" renderButton={DrawerButton}>
          <Drawer openPageKey={`${app.id}/${route.view}/${route.item}`}>
            {(close) => (
              <SidebarContent
                {...props}
                openPalette={() => {
                  close();
                  // Opens the palette after the drawer has closed and has returned the focus to its button. Otherwise
                  // the drawer would take the focus from the palette.
                  setTimeout(props.openPalette);
                }}
              />
            )}
          </Drawer>
        </LoadOnFirstUse>
      )}
      <Breadcrumbs {...{ app, route, actions }} />
      <RunningChip key={app.id} api={api} appId={app.id} logSubscription={actions.logSubscription} />
      <span className={app.isPublished ? "chip live app-state" : "chip app-state"}>
        {app.isPublished ? "published" : "not published"}
      </span>
      <button
        type="button"
        className="quiet icon"
        aria-label="Docs of this page"
        title="Docs of this page"
        onClick={() => openDocs(findHelpPath(route.view, route.item))}
      >
        <CircleHelp size={16} aria-hidden />
      </button>
    </header>
  );
}
