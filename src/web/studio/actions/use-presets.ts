/** Hook that loads and changes the presets of an action: payloads that the service stores by name. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ListPresets } from "../documents.js";
import { asApiError } from "../shared/api.js";
import type { Preset } from "../shared/model.js";
import { queryOf, useResource } from "../shared/use-resource.js";

/** @param actionId ID of the action's draft */
export function usePresets(appId: number, actionId: number) {
  const client = useQueryClient();
  const query = queryOf(ListPresets, { appId, actionId });
  const { value, fault: readFault } = useResource(query);
  const [fault, setFault] = useState<string | null>(null);
  const replaceBy = async (answer: Promise<{ presets: Preset[] }>): Promise<boolean> => {
    try {
      client.setQueryData(query.queryKey, await answer);
      setFault(null);
      return true;
    } catch (error) {
      setFault(asApiError(error).message);
      return false;
    }
  };
  return { presets: value?.presets ?? null, fault: fault ?? readFault, setFault, replaceBy };
}
