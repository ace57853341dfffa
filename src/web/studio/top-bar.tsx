/** The bar on top: the app, the views, the way out. */
import type { App } from "./model.js";
import type { Navigation } from "./place.js";
import { ROUTES, type View } from "./routes.js";

const TABS = (Object.keys(ROUTES) as View[]).map((view) => ({ view, label: ROUTES[view].label }));

interface TopBarProps {
  apps: App[];
  app: App;
  view: View;
  go: Navigation["go"];
  signOut: () => void;
}

export function TopBar({ apps, app, view, go, signOut }: TopBarProps) {
  return (
    <header className="top-bar">
      <h1>
        <span className="mark" aria-hidden="true" /> <span className="wide-only">App Actions</span> <em>Studio</em>
      </h1>
      <label className="app-chooser">
        <span className="unseen">App</span>
        <select value={app.id} onChange={(event) => go({ appId: Number(event.target.value) })}>
          {apps.map(({ id, name }) => (
            <option key={id} value={id}>
              {name} · {id}
            </option>
          ))}
        </select>
      </label>
      <span className={app.isPublished ? "chip live" : "chip"}>{app.isPublished ? "published" : "not published"}</span>
      <nav aria-label="Views">
        {TABS.map(({ view: name, label }) => (
          <button
            key={name}
            type="button"
            className="tab"
            aria-current={view === name ? "page" : undefined}
            onClick={() => go({ appId: app.id, view: name, item: null })}
          >
            {label}
          </button>
        ))}
      </nav>
      <button type="button" className="quiet" onClick={signOut}>
        Sign out
      </button>
    </header>
  );
}
