/** Fixes for an action that does not list an origin: one adds it to the saved draft, the other to the draft in the editor. */
import { useState } from "react";
import { GetAction, UpdateAction } from "../documents.js";
import { type Api, asApiError } from "../shared/api.js";

/** As the service's message for POLICY begins. */
const REFUSED = /(https?:\/\/[^\s/]+) is not allowed for this action/;

/** The origin that a failed run would have needed; null if it failed for another reason. */
export const refusedOrigin = (message: string): string | null => REFUSED.exec(message)?.[1] ?? null;

interface AllowOriginProps {
  api: Api;
  appId: number;
  /** ID of the action's draft. */
  actionId: number;
  /** Message of the run's error. */
  message: string;
}

/** For a run's page: changes the saved draft. */
export function AllowOrigin({ api, appId, actionId, message }: AllowOriginProps) {
  const origin = refusedOrigin(message);
  const [said, setSaid] = useState<string | null>(null);
  if (origin === null) return null;
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

interface AllowInDraftProps {
  origin: string | null;
  /** Origins of the draft in the editor. */
  origins: readonly string[];
  allow: (origin: string) => void;
}

/** For the editor: changes the draft there, which is saved with the next run. */
export function AllowInDraft({ origin, origins, allow }: AllowInDraftProps) {
  if (origin === null) return null;
  if (origins.includes(origin)) return <p className="hint">The draft allows {origin} now. Run it again.</p>;
  return (
    <p>
      <button type="button" onClick={() => allow(origin)}>
        Allow {origin} for this action
      </button>
    </p>
  );
}
