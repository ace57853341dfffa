/** Page of one app. The URL selects one of its parts: `#/1/app/tokens` shows the tokens of the app with the ID 1. */
import { type ComponentType, type FormEvent, useState } from "react";
import { APP_ACCESS_SENTENCE } from "../actions/access-text.js";
import { OriginsForm } from "../actions/origins-form.js";
import { PublishApp, UnpublishApp, UpdateApp } from "../documents.js";
import { AppPeople } from "../people/people-page.js";
import { ConnectionsPage } from "../settings/connections-page.js";
import { handleRejectedChange } from "../shared/api.js";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import type { PageProps } from "../shell/page-props.js";
import { APP_SUBPAGE_LABELS, type AppSubpage, isAppSubpage } from "../shell/views.js";
import { AppVersionsPage } from "./app-versions-page.js";
import { AuditPage } from "./audit-page.js";
import { GitPage } from "./git-page.js";
import { StagesPage } from "./stages-page.js";
import { TokensPage } from "./tokens-page.js";
import { TransferPage } from "./transfer-page.js";

function AppFields({ api, app, appId, confirm, reloadApps }: PageProps) {
  const field = useFieldDraft(app.name);
  const { draft: name, setDraft: setName } = field;
  const [fault, setFault] = useState<string | null>(null);
  const runAndReload = async (change: Promise<unknown>): Promise<boolean> => {
    try {
      await change;
      setFault(null);
      await reloadApps();
      return true;
    } catch (error) {
      setFault(await handleRejectedChange(error, reloadApps));
      return false;
    }
  };
  const ids = { appId, ifUpdatedAt: app.updatedAt };
  const renameApp = async (event: FormEvent) => {
    event.preventDefault();
    if (await runAndReload(api.request(UpdateApp, { ...ids, data: { name } }))) field.markSaved(name);
  };
  const unpublishApp = async () => {
    const text =
      "Live pages, schedules, events and HTTP requests no longer run its actions until you publish it again.";
    if (
      await confirm({
        title: `Unpublish ${app.name}?`,
        explanation: text,
        confirmLabel: "Unpublish",
        isDangerous: true,
      })
    )
      await runAndReload(api.request(UnpublishApp, ids));
  };
  return (
    <>
      <section aria-label="Name and state">
        <form className="row labelled" onSubmit={(event) => void renameApp(event)}>
          <label>
            <span>Name of the app</span>
            <input aria-label="Name of the app" value={name} onChange={(event) => setName(event.target.value)} />
          </label>
          <button type="submit" disabled={name.trim() === "" || !field.isDirty || field.isChangedElsewhere}>
            Rename
          </button>
        </form>
        <ChangedElsewhereNotice label="The name" field={field} />
        <p className="fault" role="alert">
          {fault}
        </p>
        <p className="row">
          <span className={app.isPublished ? "chip live" : "chip"}>
            {app.isPublished ? "published" : "not published"}
          </span>
          {app.isPublished ? (
            <button type="button" className="quiet danger-text" onClick={() => void unpublishApp()}>
              Unpublish the app
            </button>
          ) : (
            <button type="button" className="primary" onClick={() => void runAndReload(api.request(PublishApp, ids))}>
              Publish the app
            </button>
          )}
        </p>
        <label className="check">
          <input
            type="checkbox"
            checked={app.requiresTests}
            onChange={({ target }) =>
              void runAndReload(api.request(UpdateApp, { ...ids, data: { requiresTests: target.checked } }))
            }
          />
          <span>
            Publish actions only after their tests (<code>svc publish --tested</code>)
          </span>
        </label>
        {!app.isPublished && <p className="hint">{APP_ACCESS_SENTENCE}</p>}
      </section>
      <OriginsForm api={api} appId={appId} />
    </>
  );
}

const APP_SUBPAGES: Record<AppSubpage, ComponentType<PageProps>> = {
  general: AppFields,
  tokens: TokensPage,
  people: AppPeople,
  connections: ConnectionsPage,
  audit: AuditPage,
  versions: AppVersionsPage,
  stages: StagesPage,
  git: GitPage,
  transfer: TransferPage,
};

export function AppPage(props: PageProps) {
  const { item } = props.route;
  const subpage = isAppSubpage(item) ? item : "general";
  const Subpage = APP_SUBPAGES[subpage];
  return (
    <div className="app-page">
      <section className="app-part" aria-labelledby="app-part">
        <h2 id="app-part" className="unseen">
          {APP_SUBPAGE_LABELS[subpage]}
        </h2>
        <Subpage key={subpage} {...props} />
      </section>
    </div>
  );
}
