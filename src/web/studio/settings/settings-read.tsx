/** Public settings as a reader sees them: names and values, without controls. */
import { useCallback } from "react";
import { ReadPublicSettings } from "../documents.js";
import { useLoaded } from "../shared/use-loaded.js";
import type { PageProps } from "../shell/page-props.js";

const REFRESH_MS = 10_000;

export function PublicSettings({ api, appId }: PageProps) {
  const read = useCallback(
    async () => (await api.ask(ReadPublicSettings, { appId })).settings as Record<string, unknown>,
    [api, appId],
  );
  const { value, fault } = useLoaded(api, read, REFRESH_MS);
  const keys = Object.keys(value ?? {}).sort();
  return (
    <div className="settings">
      <p className="fault" role="alert">
        {fault}
      </p>
      <section aria-label="Public">
        <h2>
          Public <small>{keys.length}</small>
        </h2>
        <p className="hint">Your role reads public settings only.</p>
        <ul className="records">
          {keys.map((key) => (
            <li key={key}>
              <b>{key}</b>
              <code className="grow">{JSON.stringify(value?.[key])}</code>
            </li>
          ))}
        </ul>
        {value && keys.length === 0 && <p className="empty hint">None yet.</p>}
      </section>
    </div>
  );
}
