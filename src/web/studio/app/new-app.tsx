/** Form with which administrators create an app. */
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { CreateApp } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import type { PageProps } from "../shell/page-props.js";
import { PATHS } from "../shell/views.js";

export interface NewAppProps {
  api: Api;
  reloadApps: PageProps["reloadApps"];
}

export function NewApp({ api, reloadApps }: NewAppProps) {
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      const { created } = await api.request(CreateApp, { data: { name } });
      await reloadApps();
      void navigate({ to: PATHS.actions, params: { appId: created.id, item: undefined } });
    } catch (error) {
      setFault(asApiError(error).message);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <p className="row labelled">
        <label>
          <span>Name of the new app</span>
          <input
            aria-label="Name of the new app"
            autoComplete="off"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <button type="submit" className="primary" disabled={name.trim() === ""}>
          Make an app
        </button>
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
    </form>
  );
}
