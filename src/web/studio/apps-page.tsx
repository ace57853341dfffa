/** All apps that one may edit, with their state; and for administrators, making one. */
import { NewApp } from "./new-app.js";
import type { PageProps } from "./page-props.js";
import { hrefOf } from "./place.js";

export function AppsPage({ api, apps, appId, go, reloadApps, isAdmin }: PageProps) {
  return (
    <div className="app-page">
      <section className="app-part" aria-labelledby="apps">
        <h2 id="apps">Apps</h2>
        {isAdmin ? (
          <NewApp {...{ api, go, reloadApps }} />
        ) : (
          <p className="hint">An administrator makes apps and says who edits them.</p>
        )}
        <ul className="records">
          {apps.map(({ id, name, isPublished }) => (
            <li key={id}>
              <span className="chip">{id}</span>
              <a className="grow" href={hrefOf({ appId: id, view: "actions" })}>
                {name}
              </a>
              {id === appId && <span className="hint">open now</span>}
              <span className={isPublished ? "chip live" : "chip"}>{isPublished ? "published" : "not published"}</span>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
