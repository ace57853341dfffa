/** Hook that loads and changes the presets of an action: payloads that the service stores by name. */
import { useCallback, useEffect, useState } from "react";
import { ListPresets } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";
import type { Preset } from "../shared/model.js";

/** @param actionId ID of the action's draft */
export function usePresets(api: Api, appId: number, actionId: number) {
  const [presets, setPresets] = useState<Preset[] | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const replaceBy = useCallback(async (answer: Promise<{ presets: Preset[] }>): Promise<boolean> => {
    try {
      setPresets((await answer).presets);
      setFault(null);
      return true;
    } catch (error) {
      setFault(asApiError(error).message);
      return false;
    }
  }, []);
  useEffect(() => void replaceBy(api.ask(ListPresets, { appId, actionId })), [api, appId, actionId, replaceBy]);
  return { presets, fault, setFault, replaceBy };
}
