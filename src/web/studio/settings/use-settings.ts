/** The app's settings as an editor may have them: values of two tiers, of the third only that they are set. Draws nothing. */
import { useCallback, useEffect, useRef, useState } from "react";
import { DeleteSettings, MarkSettings, PublicSettingsStatus, ReadSettings, SetSettings } from "../documents.js";
import { type Api, ApiError, asApiError, isChanged } from "../shared/api.js";
import type { SettingDetails } from "../shared/model.js";
import { useRefresh } from "../shared/use-refresh.js";
import { tierOf } from "./setting-value.js";

const KEYS_AT_ONCE = 100;
/** Interval at which the page checks whether another person changed the settings. */
const CHECK_MS = 3_000;

export interface Settings {
  /** Public and private values by key; null while they are loaded for the first time. */
  values: Record<string, unknown> | null;
  /** Time of each key's last change, and the person who made it. */
  details: Record<string, SettingDetails>;
  fault: string | null;
  /** @returns why it was refused, null when it was not */
  set(key: string, value: unknown): Promise<string | null>;
  mark(key: string, secret: boolean): Promise<string | null>;
  remove(key: string): Promise<string | null>;
}

interface Answer extends Pick<Settings, "values" | "details"> {
  /** The state of the settings as a whole; "" while they are loaded for the first time. */
  updatedAt: string;
}

/** A value that differs if the setting was changed in between. */
const stateOf = ({ values, details }: Answer, key: string): string =>
  JSON.stringify([details[key]?.updatedAt, details[key]?.secret, values?.[key]]);

const CHANGED = "Not saved: someone else changed this setting.";

export function useSettings(api: Api, appId: number): Settings {
  const [answer, setAnswer] = useState<Answer>({ values: null, details: {}, updatedAt: "" });
  const [fault, setFault] = useState<string | null>(null);

  const latest = useRef(0);
  const load = useCallback(async () => {
    latest.current += 1;
    const turn = latest.current;
    const { settings, settingsStatus, settingsUpdatedAt: updatedAt } = await api.ask(ReadSettings, { appId });
    const values = settings as Record<string, unknown>;
    // More than the service tells of at once are shown without.
    const keys = Object.keys(values)
      .filter((key) => tierOf(key) === "public")
      .slice(0, KEYS_AT_ONCE);
    const known = keys.length > 0 ? (await api.ask(PublicSettingsStatus, { appId, keys })).settingsStatus : [];
    const details = [...settingsStatus, ...known].map(({ key, ...one }) => [key, one] as const);
    const loaded = { values, details: Object.fromEntries(details), updatedAt };
    // A check that began before a change must not bring back the values from before it.
    if (turn === latest.current) {
      setAnswer(loaded);
      setFault(null);
    }
    return loaded;
  }, [api, appId]);

  const showFault = useCallback((error: unknown) => setFault(asApiError(error).message), []);
  useEffect(() => void load().catch(showFault), [load, showFault]);
  const shownAt = answer.updatedAt;
  const hasFault = fault !== null;
  const refresh = useCallback(async () => {
    try {
      const isCurrent = shownAt !== "" && !hasFault && (await api.isCurrent(`/v1/apps/${appId}/settings`, shownAt));
      if (!isCurrent) await load();
    } catch (error) {
      showFault(error);
    }
  }, [api, appId, shownAt, hasFault, load, showFault]);
  useRefresh(api, refresh, CHECK_MS);

  const write = useCallback(
    async (key: string, change: (ifUpdatedAt: string) => Promise<unknown>) => {
      try {
        // A person can type a new setting before the first read has ended.
        const shown = answer.values ? answer : await load();
        await change(shown.updatedAt).catch(async (error) => {
          if (!isChanged(error)) throw error;
          const now = await load();
          if (stateOf(now, key) !== stateOf(shown, key)) throw new ApiError("RESOURCE_CHANGED", CHANGED);
          // Another key was changed.
          await change(now.updatedAt);
        });
        await load();
        return null;
      } catch (error) {
        return asApiError(error).message;
      }
    },
    [load, answer],
  );
  return {
    ...answer,
    fault,
    set: (key, value) =>
      write(key, (ifUpdatedAt) => api.ask(SetSettings, { appId, settings: { [key]: value }, ifUpdatedAt })),
    mark: (key, secret) =>
      write(key, (ifUpdatedAt) => api.ask(MarkSettings, { appId, keys: [key], secret, ifUpdatedAt })),
    remove: (key) => write(key, (ifUpdatedAt) => api.ask(DeleteSettings, { appId, keys: [key], ifUpdatedAt })),
  };
}
