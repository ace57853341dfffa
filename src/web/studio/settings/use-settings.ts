/** Hook for the app's settings: public and private values, and for protected settings only that they exist. */
import { useQueryClient } from "@tanstack/react-query";
import { DeleteSettings, MarkSettings, PublicSettingsStatus, ReadSettings, SetSettings } from "../documents.js";
import { type Api, ApiError, asApiError, isChanged } from "../shared/api.js";
import type { SettingDetails } from "../shared/model.js";
import { useResource } from "../shared/use-resource.js";
import { tierOf } from "./setting-value.js";

const KEYS_AT_ONCE = 100;
/** Interval at which the page checks whether another person changed the settings. */
const CHECK_MS = 3_000;

export interface Settings {
  /** Public and private values by key; null while they are loaded for the first time. */
  values: Record<string, unknown> | null;
  /** Time of each key's last change, and the person who made it. */
  details: Record<string, SettingDetails>;
  /** State of the settings as a whole; "" until they have been read. */
  updatedAt: string;
  fault: string | null;
  /** Stores a setting. @returns the error message, or null if it was stored */
  set(key: string, value: unknown): Promise<string | null>;
  mark(key: string, secret: boolean): Promise<string | null>;
  remove(key: string): Promise<string | null>;
}

type Answer = Pick<Settings, "values" | "details" | "updatedAt">;

/** Returns a text that differs if the setting's value or its change time differs. */
const stateOf = ({ values, details }: Answer, key: string): string =>
  JSON.stringify([details[key]?.updatedAt, details[key]?.secret, values?.[key]]);

const CHANGED_MESSAGE = "Not saved: someone else changed this setting.";

async function readSettings(api: Api, appId: number): Promise<Answer> {
  const { settings, settingsStatus, settingsUpdatedAt: updatedAt } = await api.request(ReadSettings, { appId });
  const values = settings as Record<string, unknown>;
  // Further keys are shown without details.
  const keys = Object.keys(values)
    .filter((key) => tierOf(key) === "public")
    .slice(0, KEYS_AT_ONCE);
  const known = keys.length > 0 ? (await api.request(PublicSettingsStatus, { appId, keys })).settingsStatus : [];
  const details = [...settingsStatus, ...known].map(({ key, ...setting }) => [key, setting] as const);
  return { values, details: Object.fromEntries(details), updatedAt };
}

export function useSettings(api: Api, appId: number): Settings {
  const client = useQueryClient();
  const queryKey = ["settings", appId];
  const { value, fault } = useResource({
    queryKey,
    async queryFn() {
      const shownAnswer = client.getQueryData<Answer>(queryKey);
      const isCurrent = shownAnswer && (await api.isCurrent(`/v1/apps/${appId}/settings`, shownAnswer.updatedAt));
      return isCurrent ? shownAnswer : readSettings(api, appId);
    },
    refetchInterval: CHECK_MS,
  });
  const load = async () => {
    // Ignores a check that started before a change, because it contains the earlier values.
    await client.cancelQueries({ queryKey });
    const read = await readSettings(api, appId);
    client.setQueryData(queryKey, read);
    return read;
  };
  const write = async (key: string, change: (ifUpdatedAt: string) => Promise<unknown>) => {
    try {
      // A person can store a new setting before the first read has ended.
      const shownValue = value ?? (await load());
      await change(shownValue.updatedAt).catch(async (error) => {
        if (!isChanged(error)) throw error;
        const now = await load();
        if (stateOf(now, key) !== stateOf(shownValue, key)) throw new ApiError("RESOURCE_CHANGED", CHANGED_MESSAGE);
        // Only another setting was changed, so the change is sent again with the current state.
        await change(now.updatedAt);
      });
      await load();
      return null;
    } catch (error) {
      return asApiError(error).message;
    }
  };
  return {
    ...(value ?? { values: null, details: {}, updatedAt: "" }),
    fault,
    set: (key, setting) =>
      write(key, (ifUpdatedAt) => api.request(SetSettings, { appId, settings: { [key]: setting }, ifUpdatedAt })),
    mark: (key, secret) =>
      write(key, (ifUpdatedAt) => api.request(MarkSettings, { appId, keys: [key], secret, ifUpdatedAt })),
    remove: (key) => write(key, (ifUpdatedAt) => api.request(DeleteSettings, { appId, keys: [key], ifUpdatedAt })),
  };
}
