/** How full the settings' room is, and which actions read one of them: asked when a person wants to know. */
import { useCallback, useEffect, useState } from "react";
import { ReadSettingsUse, type ReadSettingsUseQuery } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import { sized } from "../shared/format.js";
import { hrefOf } from "../shell/place.js";

type Use = ReadSettingsUseQuery["use"];

/** @param settings asked again when they have changed */
export function SettingsGauge({ api, appId, settings }: { api: Api; appId: number; settings: unknown }) {
  const [use, setUse] = useState<Use | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other settings take other room
  useEffect(() => {
    let over = false;
    api.ask(ReadSettingsUse, { appId }).then(
      (answer) => over || setUse(answer.use),
      // Without it the page is as good as before.
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [api, appId, settings]);
  if (!use) return null;
  const { underscoreBytes, underscoreMaxBytes } = use;
  const isOver = underscoreBytes > underscoreMaxBytes;
  return (
    <div className="gauge">
      <label htmlFor="settings-gauge">
        Private and protected settings take {sized(underscoreBytes)} of {sized(underscoreMaxBytes)}
      </label>
      <meter
        id="settings-gauge"
        min={0}
        max={underscoreMaxBytes}
        high={underscoreMaxBytes * 0.8}
        optimum={0}
        value={underscoreBytes}
      />
      {isOver && <p className="fault">No server action runs until they take less.</p>}
    </div>
  );
}

export function SettingReaders({ api, appId, name }: { api: Api; appId: number; name: string }) {
  const [readers, setReaders] = useState<Use["readers"] | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const find = useCallback(async () => {
    try {
      setReaders((await api.ask(ReadSettingsUse, { appId, key: name })).use.readers);
      setFault(null);
    } catch (error) {
      setFault(asApiError(error).message);
    }
  }, [api, appId, name]);
  if (!readers) {
    return (
      <>
        <button type="button" className="link" aria-label={`Who reads it? ${name}`} onClick={() => void find()}>
          Who reads it?
        </button>
        {fault && <span className="fault">{fault}</span>}
      </>
    );
  }
  if (readers.length === 0) return <span className="hint">No action's code names it.</span>;
  return (
    <span className="hint readers">
      Read by{" "}
      {readers.map(({ id, name: action }) => (
        <a key={id} href={hrefOf({ appId, view: "actions", item: String(id) })}>
          {action}
        </a>
      ))}
    </span>
  );
}
