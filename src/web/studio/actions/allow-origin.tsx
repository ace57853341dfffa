/**
 * Buttons that add an origin to the allowed origins of an action. AllowOriginButton changes the saved draft, and
 * AllowInDraftButton changes the unsaved draft in the editor.
 */
import { useState } from "react";
import { GetAction, UpdateAction } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";

/** Matches the service's message for the error POLICY: the action called an origin that is not in its list of allowed origins. */
const REJECTED_ORIGIN_PATTERN = /(https?:\/\/[^\s/]+) is not allowed for this action/;

/** Returns the origin that a failed run was not allowed to call. Returns null for messages of other errors. */
export const findRejectedOrigin = (message: string): string | null =>
  REJECTED_ORIGIN_PATTERN.exec(message)?.[1] ?? null;

interface AllowOriginProps {
  api: ApiClient;
  appId: number;
  /** ID of the action's draft. */
  actionId: number;
  /** Error message of the failed run. */
  message: string;
}

/**
 * Button on a run's page. The run was not allowed to call an origin. The button adds this origin to the allowed origins of the action's
 * saved draft.
 */
export function AllowOriginButton({ api, appId, actionId, message }: AllowOriginProps) {
  const origin = findRejectedOrigin(message);
  const [isAllowed, setAllowed] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  if (origin === null) return null;
  const allowOrigin = async () => {
    setFault(null);
    try {
      const { action } = await api.request(GetAction, { appId, id: actionId });
      const data = { integrationOrigins: [...new Set([...action.integrationOrigins, origin])] };
      await api.request(UpdateAction, { appId, id: actionId, data, ifUpdatedAt: action.updatedAt });
      setAllowed(true);
    } catch (error) {
      setFault(`Not allowed: ${asApiError(error).message}`);
    }
  };
  return (
    <>
      <p role="status">
        {isAllowed ? (
          "The draft allows it now. Publish the action to allow it for live runs."
        ) : (
          <button type="button" onClick={() => void allowOrigin()}>
            Allow {origin} for this action
          </button>
        )}
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
    </>
  );
}

interface AllowInDraftProps {
  origin: string | null;
  /** Allowed origins in the unsaved draft in the editor. */
  origins: readonly string[];
  allowOrigin: (origin: string) => void;
}

/** Button in the editor. It adds the origin to the unsaved draft; the next run saves the draft. */
export function AllowInDraftButton({ origin, origins, allowOrigin }: AllowInDraftProps) {
  if (origin === null) return null;
  if (origins.includes(origin)) return <p className="hint">The draft allows {origin} now. Run it again.</p>;
  return (
    <p>
      <button type="button" onClick={() => allowOrigin(origin)}>
        Allow {origin} for this action
      </button>
    </p>
  );
}
