/** Hook that loads and changes the payload presets of an action. A preset is a named payload that the service stores. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ListPresets } from "../documents.js";
import { asApiError } from "../shared/api.js";
import type { Preset } from "../shared/model.js";
import { queryOf, useResource } from "../shared/use-resource.js";

/** @param actionId ID of the draft of the action */
export function usePresets(appId: number, actionId: number) {
  const client = useQueryClient();
  const query = queryOf(ListPresets, { appId, actionId });
  const { value, fault: readFault } = useResource(query);
  const [fault, setFault] = useState<string | null>(null);
  /** Waits for a change of the presets and shows its result. Returns the presets after the change, or null if the service rejected it. */
  const replaceBy = async (answer: Promise<{ presets: Preset[] }>): Promise<Preset[] | null> => {
    try {
      const stored = await answer;
      // Cancels a read that started before the change. Its older result would overwrite the result of the change.
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
