/**
 * Sidebar with the list of apps, the button of the command palette, grouped links to all pages, and the account menu. In a narrow window
 * the sidebar is a drawer.
 */
import BookOpen from "icon:book-open";
import PanelLeft from "icon:panel-left";
import Search from "icon:search";
import { lazy, useEffect, useRef } from "react";
import type { Role } from "../../../rules/roles.js";
import { resolveServiceUrl } from "../../service-address.js";
import type { App } from "../shared/model.js";
import { importOrThrowLoadError } from "./load-error.js";
import { AccountButton, AppButton, LoadOnFirstUse } from "./menu-buttons.js";
import { PAGE_ICONS } from "./page-icons.js";
import { mayEdit } from "./rights.js";
import { createHref, type Navigation, type StudioRoute } from "./studio-route.js";
import {
  APP_SUBPAGE_LABELS,
  isAppSubpage,
  SIDEBAR_GROUPS,
  type SidebarLink,
  VIEW_DETAILS,
  type View,
} from "./views.js";

const ICON_PIXELS = 16;

const AppMenu = lazy(async () => ({ default: (await importOrThrowLoadError(import("./menus.js"))).AppMenu }));
const AccountMenu = lazy(async () => ({ default: (await importOrThrowLoadError(import("./menus.js"))).AccountMenu }));

/** True if people with this role can use the page. */
export const canRoleUseView = (view: View, role: Role): boolean =>
  mayEdit(role) || (VIEW_DETAILS[view].alsoForRoles ?? []).includes(role);

function parseSidebarLink(link: SidebarLink): { view: View; item: string | null } {
  const [view, item = null] = link.split("/") as [View, string?];
  return { view, item };
}

const getLinkLabel = ({ view, item }: { view: View; item: string | null }) =>
  isAppSubpage(item) && view === "app" ? APP_SUBPAGE_LABELS[item] : VIEW_DETAILS[view].label;

export interface SidebarProps {
  role: Role;
  apps: App[];
  app: App;
  email: string;
  /** Page that is open, and the item that it shows. */
  route: Pick<StudioRoute, "view" | "item">;
  go: Navigation["go"];
  signOut: () => void;
  openPalette: () => void;
  /** Switches between the full sidebar and a sidebar with only icons. Undefined in the drawer, which is always full. */
  toggleCollapsed?: (() => void) | undefined;
  isCollapsed?: boolean;
}

function SidebarLinks({ app, role, route, isCollapsed }: Pick<SidebarProps, "app" | "role" | "route" | "isCollapsed">) {
  const item = route.view === "app" ? (isAppSubpage(route.item) ? route.item : "general") : null;
  const nav = useRef<HTMLElement>(null);
  const openPageKey = `${route.view} ${item}`;
  // Scrolls to the link of the open page, which may be hidden in a low window.
  useEffect(() => {
    if (openPageKey) nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [openPageKey]);
  return (
    <nav ref={nav} aria-label="Views">
      {SIDEBAR_GROUPS.map(({ label, links }) => {
        const shownLinks = links
          .map((link) => ({ link, ...parseSidebarLink(link) }))
          .filter(({ view }) => canRoleUseView(view, role));
        if (shownLinks.length === 0) return null;
        return (
          <section key={label ?? "first"} className="nav-group" aria-label={label ?? "Start"}>
            {label && (
              <p className="nav-head" aria-hidden="true">
                {label}
              </p>
            )}
            {shownLinks.map((sidebarLink) => {
              const Icon = PAGE_ICONS[sidebarLink.link];
              const isOpen =
                sidebarLink.view === route.view && (sidebarLink.view !== "app" || sidebarLink.item === item);
              return (
                <a
                  key={sidebarLink.link}
                  className="nav-link"
                  title={isCollapsed ? getLinkLabel(sidebarLink) : undefined}
                  aria-current={isOpen ? "page" : undefined}
                  href={createHref({ appId: app.id, view: sidebarLink.view, item: sidebarLink.item })}
                >
                  <Icon size={ICON_PIXELS} aria-hidden />
                  <span className="nav-label">{getLinkLabel(sidebarLink)}</span>
                </a>
              );
            })}
          </section>
        );
      })}
    </nav>
  );
}

/** Content of the sidebar: shown as a column in a wide window, and in the drawer of a narrow window. */
export function SidebarContent(props: SidebarProps) {
  const { apps, app, email, go, signOut, openPalette, toggleCollapsed, isCollapsed } = props;
  return (
    <>
      <LoadOnFirstUse popupKind="dialog" renderButton={(props) => <AppButton name={app.name} {...props} />}>
        <AppMenu {...{ apps, app, go }} />
      </LoadOnFirstUse>
      <button
        type="button"
        className="commands-button"
        title="Ctrl+K"
        aria-label={isCollapsed ? "Search and commands" : undefined}
        onClick={openPalette}
      >
        <Search size={ICON_PIXELS} aria-hidden />
        <span className="nav-label grow">Search</span>
        <kbd className="nav-label">Ctrl K</kbd>
      </button>
      <SidebarLinks {...props} />
      <div className="sidebar-foot">
        <a className="nav-link" href={resolveServiceUrl("/docs/").href} target="_blank" rel="noreferrer" title="Docs">
          <BookOpen size={ICON_PIXELS} aria-hidden />
          <span className="nav-label">Docs</span>
        </a>
        <LoadOnFirstUse popupKind="menu" renderButton={(props) => <AccountButton email={email} {...props} />}>
          <AccountMenu {...{ app, email, signOut }} />
        </LoadOnFirstUse>
        {toggleCollapsed && (
          <button
            type="button"
            className="nav-link"
            aria-label={isCollapsed ? "Show the names of pages" : "Collapse the sidebar"}
            aria-expanded={!isCollapsed}
            onClick={toggleCollapsed}
          >
            <PanelLeft size={ICON_PIXELS} aria-hidden />
            <span className="nav-label">Collapse</span>
          </button>
        )}
      </div>
    </>
  );
}
