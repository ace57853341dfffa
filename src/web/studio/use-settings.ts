/** The app's settings as an editor may have them: values of two tiers, of the third only that they are set. Draws nothing. */
import { useCallback, useEffect, useState } from "react";
import { type Api, asApiError } from "./api.js";
import { DeleteSettings, MarkSettings, PublicSettingsStatus, ReadSettings, SetSettings } from "./documents.js";
import type { SettingDetails } from "./model.js";
import { tierOf } from "./setting-value.js";

const KEYS_AT_ONCE = 100;

export interface Settings {
  /** Public and private values by key; null while they are loaded for the first time. */
  values: Record<string, unknown> | null;
  /** When each key was set, and by whom. */
  details: Record<string, SettingDetails>;
  fault: string | null;
  /** @returns why it was refused, null when it was not */
  set(key: string, value: unknown): Promise<string | null>;
  mark(key: string, secret: boolean): Promise<string | null>;
  remove(key: string): Promise<string | null>;
}

export function useSettings(api: Api, appId: number): Settings {
  const [answer, setAnswer] = useState<Pick<Settings, "values" | "details">>({ values: null, details: {} });
  const [fault, setFault] = useState<string | null>(null);

  const load = useCallback(async () => {
    const { settings, settingsStatus } = await api.ask(ReadSettings, { appId });
    const values = settings as Record<string, unknown>;
    // More than the service tells of at once are shown without.
    const keys = Object.keys(values)
      .filter((key) => tierOf(key) === "public")
      .slice(0, KEYS_AT_ONCE);
    const known = keys.length > 0 ? (await api.ask(PublicSettingsStatus, { appId, keys })).settingsStatus : [];
    const details = [...settingsStatus, ...known].map(({ key, ...one }) => [key, one] as const);
    setAnswer({ values, details: Object.fromEntries(details) });
    setFault(null);
  }, [api, appId]);

  useEffect(() => {
    load().catch((error) => setFault(asApiError(error).message));
  }, [load]);

  const write = useCallback(
    async (written: Promise<unknown>) => {
      try {
        await written;
        await load();
        return null;
      } catch (error) {
        return asApiError(error).message;
      }
    },
    [load],
  );
  return {
    ...answer,
    fault,
    set: (key, value) => write(api.ask(SetSettings, { appId, settings: { [key]: value } })),
    mark: (key, secret) => write(api.ask(MarkSettings, { appId, keys: [key], secret })),
    remove: (key) => write(api.ask(DeleteSettings, { appId, keys: [key] })),
  };
}
