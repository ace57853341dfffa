/** The fix for a run that failed because its action does not list an origin: adds the origin to the action's draft. */
import { useState } from "react";
import { GetAction, UpdateAction } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";

/** As the service's message for POLICY begins. */
const REFUSED = /(https?:\/\/[^\s/]+) is not allowed for this action/;

interface AllowOriginProps {
  api: Api;
  appId: number;
  /** ID of the action's draft. */
  actionId: number;
  /** Message of the run's error. */
  message: string;
}

export function AllowOrigin({ api, appId, actionId, message }: AllowOriginProps) {
  const origin = REFUSED.exec(message)?.[1];
  const [said, setSaid] = useState<string | null>(null);
  if (origin === undefined) return null;
  const allow = async () => {
    try {
      const { action } = await api.ask(GetAction, { appId, id: actionId });
      if (!action) throw new Error("the action is gone");
      const data = { integrationOrigins: [...new Set([...action.integrationOrigins, origin])] };
      await api.ask(UpdateAction, { appId, id: actionId, data, ifUpdatedAt: action.updatedAt });
      setSaid("The draft allows it now. Publish the action to allow it for live runs.");
    } catch (error) {
      setSaid(asApiError(error).message);
    }
  };
  return (
    <p role="status">
      {said ?? (
        <button type="button" onClick={() => void allow()}>
          Allow {origin} for this action
        </button>
      )}
    </p>
  );
}
