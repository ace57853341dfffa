/** The bar on top: the app, the views, the way out. */
import type { Role } from "../../../rules/roles.js";
import { serviceAddress } from "../../service-address.js";
import type { Tail } from "../actions/use-actions.js";
import type { Api } from "../shared/api.js";
import type { App } from "../shared/model.js";
import { useInSight } from "../shared/use-in-sight.js";
import { hrefOf, type Navigation } from "./place.js";
import { mayEdit } from "./role.js";
import { RunningChip } from "./running-chip.js";
import { VIEW_NAMES, VIEWS, type View } from "./views.js";

const ALL_APPS = "all";

/** True if the page is for people with this role. */
export const isFor = (view: View, role: Role): boolean => mayEdit(role) || (VIEWS[view].also ?? []).includes(role);

interface TopBarProps {
  role: Role;
  api: Api;
  apps: App[];
  app: App;
  view: View;
  go: Navigation["go"];
  tail: Tail;
  signOut: () => void;
  openPalette: () => void;
}

export function TopBar({ api, role, apps, app, view, go, tail, signOut, openPalette }: TopBarProps) {
  const names = useInSight(view);
  return (
    <header className="top-bar">
      <h1>
        <span className="mark" aria-hidden="true" /> <span className="wide-only">App Actions</span> <em>Studio</em>
      </h1>
      <label className="app-chooser">
        <span className="unseen">App</span>
        <select
          value={app.id}
          onChange={({ target: { value } }) => {
            if (value === ALL_APPS) go({ view: "apps", appId: null });
            else go({ appId: Number(value), ...(view === "apps" && { view: "actions" }) });
          }}
        >
          {apps.map(({ id, name }) => (
            <option key={id} value={id}>
              {name} · {id}
            </option>
          ))}
          <option value={ALL_APPS}>All apps…</option>
        </select>
      </label>
      <span className={app.isPublished ? "chip live app-state" : "chip app-state"}>
        {app.isPublished ? "published" : "not published"}
      </span>
      <RunningChip key={app.id} api={api} appId={app.id} tail={tail} />
      <nav ref={names} aria-label="Views">
        {VIEW_NAMES.filter((name) => !VIEWS[name].hidden && isFor(name, role)).map((name) => (
          <a
            key={name}
            className="tab"
            aria-current={view === name ? "page" : undefined}
            href={hrefOf({ appId: app.id, view: name })}
          >
            {VIEWS[name].label}
          </a>
        ))}
      </nav>
      <button type="button" className="quiet" title="Ctrl+K" onClick={openPalette}>
        Commands
      </button>
      <a className="quiet docs-link wide-only" href={serviceAddress("/docs/").href} target="_blank" rel="noreferrer">
        Docs
      </a>
      <a className="quiet docs-link" href={hrefOf({ appId: app.id, view: "account" })}>
        Account
      </a>
      <button type="button" className="quiet" onClick={signOut}>
        Sign out
      </button>
    </header>
  );
}
