/**
 * Page of the apps on which the person has a role, and of the person's organizations. Owners and admins of an organization, and
 * administrators of the service, can create apps here.
 */
import { type FormEvent, useState } from "react";
import { CreateOrganization } from "../documents.js";
import { asApiError } from "../shared/api.js";
import { useNewResourceForm } from "../shared/use-new-values.js";
import type { PageProps } from "../shell/page-props.js";
import { mayManage } from "../shell/rights.js";
import { createHref } from "../shell/studio-route.js";
import { NewAppForm } from "./new-app.js";

/** Organizations to which the person belongs. Owners and admins get links to the organization's people and audit log. */
function OrganizationList(props: PageProps & { isCreatingApp: boolean }) {
  const { api, appId, organizations, isAdmin, reloadRoles, isCreatingApp } = props;
  const { values: name, setValues: setName, clearSaved } = useNewResourceForm("");
  const [fault, setFault] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await api.request(CreateOrganization, { name });
      clearSaved(name);
      setFault(null);
      await reloadRoles();
    } catch (error) {
      setFault(asApiError(error).message);
    }
  };
  if (organizations.length === 0 && !isAdmin) return null;
  return (
    <section aria-labelledby="organizations">
      <h2 id="organizations">Organizations</h2>
      {isAdmin && (
        <p>
          <a href={createHref({ appId, view: "service" })}>Administrators of the service, and people</a>
        </p>
      )}
      {isAdmin && (
        <form className="row labelled" onSubmit={(event) => void submit(event)}>
          <label>
            <span>Name of the new organization</span>
            <input
              aria-label="Name of the new organization"
              autoComplete="off"
              readOnly={isCreatingApp}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          </label>
          <button type="submit" disabled={name.trim() === ""}>
            Create organization
          </button>
        </form>
      )}
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul className="records">
        {organizations.map(({ id, name: label, role }) => (
          <li key={id}>
            <span className="chip">{id}</span>
            <b className="grow">{label}</b>
            <span className="chip">{role}</span>
            {mayManage(role) && (
              <>
                <a href={createHref({ appId, view: "people", item: String(id) })} aria-label={`People of ${label}`}>
                  People
                </a>
                <a href={createHref({ appId, view: "access", item: String(id) })} aria-label={`Audit log of ${label}`}>
                  Audit log
                </a>
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

export function AppsPage(props: PageProps) {
  /** True while the service creates an app, after which Studio leaves this page for the page of the new app. */
  const [isCreatingApp, setCreatingApp] = useState(false);
  const { api, apps, appId, route, go, reloadApps, isAdmin, organizations } = props;
  return (
    <div className="app-page">
      <div className="app-part">
        <section aria-labelledby="apps">
          <h2 id="apps">Apps</h2>
          {isAdmin || organizations.some(({ role }) => mayManage(role)) ? (
            <NewAppForm {...{ api, route, go, reloadApps }} onBusyChange={setCreatingApp} />
          ) : (
            <p className="hint">Owners and admins of an organization can create apps and invite people.</p>
          )}
          <ul className="records">
            {apps.map(({ id, name, isPublished }) => (
              <li key={id}>
                <span className="chip">{id}</span>
                <a className="grow" href={createHref({ appId: id, view: "actions" })}>
                  {name}
                </a>
                {id === appId && <span className="hint">open now</span>}
                <span className={isPublished ? "chip live" : "chip"}>
                  {isPublished ? "published" : "not published"}
                </span>
              </li>
            ))}
          </ul>
        </section>
        <OrganizationList {...props} isCreatingApp={isCreatingApp} />
      </div>
    </div>
  );
}
