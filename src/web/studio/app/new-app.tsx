/** Form that creates an app. Studio shows it to administrators of the service, and to owners and admins of an organization. */
import { type FormEvent, useState } from "react";
import { CreateApp } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { PageProps } from "../shell/page-props.js";
import type { Navigation } from "../shell/studio-route.js";

export interface NewAppFormProps {
  api: ApiClient;
  route: Navigation["route"];
  go: Navigation["go"];
  reloadApps: PageProps["reloadApps"];
  /** Called with true before the app is created, and with false afterwards, also if the creation failed. */
  onBusyChange?: (isBusy: boolean) => void;
}

export function NewAppForm({ api, route, go, reloadApps, onBusyChange }: NewAppFormProps) {
  const [name, setName] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const changeBusy = (isBusy: boolean) => {
    setBusy(isBusy);
    onBusyChange?.(isBusy);
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    changeBusy(true);
    try {
      const { created } = await api.request(CreateApp, { data: { name } });
      await reloadApps();
      go({ appId: created.id, view: "actions" }, { startRoute: route });
    } catch (error) {
      setFault(asApiError(error).message);
    }
    changeBusy(false);
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <p className="row labelled">
        <label>
          <span>Name of the new app</span>
          <input
            aria-label="Name of the new app"
            autoComplete="off"
            readOnly={isBusy}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <button type="submit" className="primary" disabled={isBusy || name.trim() === ""}>
          Create app
        </button>
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
    </form>
  );
}
