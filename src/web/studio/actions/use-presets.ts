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
  /** @returns the presets after the change, null if it was rejected */
  const replaceBy = async (answer: Promise<{ presets: Preset[] }>): Promise<Preset[] | null> => {
    try {
      const stored = await answer;
      // A read that started before the change would replace its result.
      await client.cancelQueries({ queryKey: query.queryKey });
      client.setQueryData(query.queryKey, stored);
      setFault(null);
      return stored.presets;
    } catch (error) {
      setFault(asApiError(error).message);
      return null;
    }
  };
  return { presets: value?.presets ?? null, fault: fault ?? readFault, setFault, replaceBy };
}
