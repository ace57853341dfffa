/** Hook that loads and changes the presets of an action. A preset is a payload with a name that the service stores. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ListPayloadPresets } from "../documents.js";
import { asApiError } from "../shared/api.js";
import type { PayloadPreset } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";

/** @param actionId ID of the draft of the action */
export function usePayloadPresets(appId: number, actionId: number) {
  const client = useQueryClient();
  const query = createQueryOptions(ListPayloadPresets, { appId, actionId });
  const { value, fault: readFault } = useResource(query);
  const [fault, setFault] = useState<string | null>(null);
  /** Shows and returns the presets that the response to a change contains. Returns null if the service rejected the change. */
  const replacePresets = async (response: Promise<{ presets: PayloadPreset[] }>): Promise<PayloadPreset[] | null> => {
    try {
      const changedPresets = await response;
      // Cancels a read that started before the change, because its older response would overwrite the changed presets.
      await client.cancelQueries({ queryKey: query.queryKey });
      client.setQueryData(query.queryKey, changedPresets);
      setFault(null);
      return changedPresets.presets;
    } catch (error) {
      setFault(asApiError(error).message);
      return null;
    }
  };
  return { presets: value?.presets ?? null, fault: fault ?? readFault, setFault, replacePresets };
}
