/**
 * Hook for the app's settings. It reads public and private settings with their values. Of protected settings, it reads
 * the keys and the last changes, but no values.
 */
import { useQueryClient } from "@tanstack/react-query";
import {
  DeleteSettings,
  ReadPublicSettingsStatus,
  ReadSettings,
  SetSettings,
  SetSettingsSecretMark,
} from "../documents.js";
import { type ApiClient, ApiError, asApiError, isChangedByOthersError } from "../shared/api.js";
import type { SettingDetails } from "../shared/model.js";
import { useResource } from "../shared/use-resource.js";
import { getSettingTier } from "./setting-value.js";

const MAX_KEYS_WITH_DETAILS = 100;
/** Interval at which the page checks if another person has changed a setting. */
const CHECK_INTERVAL_MS = 3_000;

export interface SettingsState {
  /** Values of public and private settings by key; null until they are loaded for the first time. */
  valuesByKey: Record<string, unknown> | null;
  /**
   * Last change (time and person) and secret mark by the key of the setting. Contains all private and protected settings, but only the
   * first MAX_KEYS_WITH_DETAILS public settings.
   */
  detailsByKey: Record<string, SettingDetails>;
  /** Time of the last change of any setting; "" until the first read has ended. */
  updatedAt: string;
  fault: string | null;
  /** Stores the value of a setting. Returns the error message, or null if the service has stored the value. */
  setValue(key: string, value: unknown): Promise<string | null>;
  markAsSecret(key: string, secret: boolean): Promise<string | null>;
  removeSetting(key: string): Promise<string | null>;
}

type SettingsResponse = Pick<SettingsState, "valuesByKey" | "detailsByKey" | "updatedAt">;

/** Returns the setting's value, secret mark and time of change as one text, to compare two states of the setting. */
const getSettingState = ({ valuesByKey, detailsByKey }: SettingsResponse, key: string): string =>
  JSON.stringify([detailsByKey[key]?.updatedAt, detailsByKey[key]?.secret, valuesByKey?.[key]]);

const CHANGED_MESSAGE = "Not saved: someone else changed this setting.";

async function readSettings(api: ApiClient, appId: number): Promise<SettingsResponse> {
  const { settings, settingsStatus, settingsUpdatedAt: updatedAt } = await api.request(ReadSettings, { appId });
  const values = settings as Record<string, unknown>;
  // Of the public settings, reads the last change only for the first MAX_KEYS_WITH_DETAILS, to limit the size of the request.
  const keys = Object.keys(values)
    .filter((key) => getSettingTier(key) === "public")
    .slice(0, MAX_KEYS_WITH_DETAILS);
  const publicStatus =
    keys.length > 0 ? (await api.request(ReadPublicSettingsStatus, { appId, keys })).settingsStatus : [];
  const details = [...settingsStatus, ...publicStatus].map(({ key, ...setting }) => [key, setting] as const);
  return { valuesByKey: values, detailsByKey: Object.fromEntries(details), updatedAt };
}

export function useSettings(api: ApiClient, appId: number): SettingsState {
  const client = useQueryClient();
  const queryKey = ["settings", appId];
  const { value, fault } = useResource({
    queryKey,
    async queryFn() {
      const cachedSettings = client.getQueryData<SettingsResponse>(queryKey);
      const isCurrent = cachedSettings && (await api.isCurrent(`/v1/apps/${appId}/settings`, cachedSettings.updatedAt));
      return isCurrent ? cachedSettings : readSettings(api, appId);
    },
    refetchInterval: CHECK_INTERVAL_MS,
  });
  const loadSettings = async () => {
    // Cancels a read that started before the change, because its response contains the earlier values.
    await client.cancelQueries({ queryKey });
    const settings = await readSettings(api, appId);
    client.setQueryData(queryKey, settings);
    return settings;
  };
  const changeSettings = async (key: string, change: (ifUpdatedAt: string) => Promise<unknown>) => {
    try {
      // Reads the settings now if the person stores a setting before the first read has ended.
      const knownSettings = value ?? (await loadSettings());
      await change(knownSettings.updatedAt).catch(async (error) => {
        if (!isChangedByOthersError(error)) throw error;
        const newSettings = await loadSettings();
        if (getSettingState(newSettings, key) !== getSettingState(knownSettings, key))
          throw new ApiError("RESOURCE_CHANGED", CHANGED_MESSAGE);
        // Another person has changed only other settings, so sends this change again with the current `updatedAt`.
        await change(newSettings.updatedAt);
      });
      await loadSettings();
      return null;
    } catch (error) {
      return asApiError(error).message;
    }
  };
  return {
    ...(value ?? { valuesByKey: null, detailsByKey: {}, updatedAt: "" }),
    fault,
    setValue: (key, setting) =>
      changeSettings(key, (ifUpdatedAt) =>
        api.request(SetSettings, { appId, settings: { [key]: setting }, ifUpdatedAt }),
      ),
    markAsSecret: (key, secret) =>
      changeSettings(key, (ifUpdatedAt) =>
        api.request(SetSettingsSecretMark, { appId, keys: [key], secret, ifUpdatedAt }),
      ),
    removeSetting: (key) =>
      changeSettings(key, (ifUpdatedAt) => api.request(DeleteSettings, { appId, keys: [key], ifUpdatedAt })),
  };
}
