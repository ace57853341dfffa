/** Shows the total size of the private and protected settings, and on request the actions that read a setting. */
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { ReadSettingsUsage } from "../documents.js";
import { formatBytes } from "../shared/format.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { createHref } from "../shell/studio-route.js";

/**
 * Shows the total size of the app's private and protected settings, and its limit.
 * @param updatedAt time of the last change of any setting; "" until the settings are read
 */
export function SettingsGauge({ appId, updatedAt }: { appId: number; updatedAt: string }) {
  const { value } = useResource({
    ...createQueryOptions(ReadSettingsUsage, { appId }, updatedAt),
    enabled: updatedAt !== "",
    placeholderData: keepPreviousData,
  });
  if (!value) return null;
  const { underscoreBytes, underscoreMaxBytes } = value.use;
  const isOverLimit = underscoreBytes > underscoreMaxBytes;
  return (
    <div className="gauge">
      <label htmlFor="settings-gauge">
        Private and protected settings take {formatBytes(underscoreBytes)} of {formatBytes(underscoreMaxBytes)}
      </label>
      <meter
        id="settings-gauge"
        min={0}
        max={underscoreMaxBytes}
        high={underscoreMaxBytes * 0.8}
        optimum={0}
        value={underscoreBytes}
      />
      {isOverLimit && <p className="fault">No server action can run until these settings are smaller.</p>}
    </div>
  );
}

export function SettingReaders({ appId, name }: { appId: number; name: string }) {
  const [isOpen, setOpen] = useState(false);
  const { value, fault, reload } = useResource({
    ...createQueryOptions(ReadSettingsUsage, { appId, key: name }),
    enabled: isOpen,
    refetchOnWindowFocus: false,
  });
  // Shows the actions only after the person requests them, although the cache may already contain them from an earlier visit.
  const readers = isOpen ? value?.use.readers : undefined;
  if (!readers) {
    return (
      <>
        <button
          type="button"
          className="link"
          aria-label={`Who reads it? ${name}`}
          onClick={() => (isOpen ? void reload() : setOpen(true))}
        >
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
        <a key={id} href={createHref({ appId, view: "actions", item: String(id) })}>
          {action}
        </a>
      ))}
    </span>
  );
}
