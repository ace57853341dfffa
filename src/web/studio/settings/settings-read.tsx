/** Page of the public settings for people who may only read: keys and values without buttons. */
import { ReadPublicSettings } from "../documents.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";

const REFRESH_INTERVAL_MS = 10_000;

export function PublicSettingsView({ appId }: PageProps) {
  const { value, fault } = useResource({
    ...createQueryOptions(ReadPublicSettings, { appId }),
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  const settings = (value?.settings ?? {}) as Record<string, unknown>;
  const keys = Object.keys(settings).sort();
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
              <code className="grow">{JSON.stringify(settings[key])}</code>
            </li>
          ))}
        </ul>
        {value && keys.length === 0 && <p className="empty hint">None yet.</p>}
      </section>
    </div>
  );
}
