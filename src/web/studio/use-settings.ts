/** The app's settings as an editor may have them: values of two tiers, of the third only that they are set. Draws nothing. */
import { useCallback, useEffect, useState } from "react";
import { type Api, asApiError } from "./api.js";
import { DELETE_SETTINGS, SET_SETTINGS, SETTINGS } from "./model.js";

export interface SettingDetails {
  updatedAt: string;
  updatedBy: number | null;
}

interface Answer {
  settings: Record<string, unknown>;
  settingsStatus: { details: Record<string, SettingDetails> };
}

export interface Settings {
  /** Public and private values by key; null while they are loaded for the first time. */
  values: Record<string, unknown> | null;
  /** When each private and protected key was set. */
  details: Record<string, SettingDetails>;
  fault: string | null;
  /** @returns why it was refused, null when it was not */
  set(key: string, value: unknown): Promise<string | null>;
  remove(key: string): Promise<string | null>;
}

export function useSettings(api: Api, appId: number): Settings {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [fault, setFault] = useState<string | null>(null);

  const load = useCallback(async () => {
    setAnswer(await api.ask<Answer>(SETTINGS, { appId }));
    setFault(null);
  }, [api, appId]);

  useEffect(() => {
    load().catch((error) => setFault(asApiError(error).message));
  }, [load]);

  const write = useCallback(
    async (document: string, variables: object) => {
      try {
        await api.ask(document, { appId, ...variables });
        await load();
        return null;
      } catch (error) {
        return asApiError(error).message;
      }
    },
    [api, appId, load],
  );
  return {
    values: answer?.settings ?? null,
    details: answer?.settingsStatus.details ?? {},
    fault,
    set: (key, value) => write(SET_SETTINGS, { settings: { [key]: value } }),
    remove: (key) => write(DELETE_SETTINGS, { keys: [key] }),
  };
}
