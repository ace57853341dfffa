/** Replaces the secret that the URLs of an action's HTTP triggers contain. */
import type { Db } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import type { TriggerEndpoints } from "../http/endpoints.js";
import { recordChange } from "../records/audit.js";
import type { DraftChangeTarget, LockDraft } from "./action-rows.js";

/**
 * Replaces the secret of a draft and its live version by a new one. URLs with the old secret stop working immediately.
 * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_CHANGED; CANNOT_UPDATE_PRODUCTION for the ID of a live version;
 *   TRIGGER_NOT_ALLOWED if the action has no HTTP trigger with a secret
 */
export type RotateHttpTriggerSecret = (caller: Caller, target: DraftChangeTarget) => Promise<void>;

interface SecretRotationOptions {
  db: Db;
  endpoints: TriggerEndpoints;
  lockDraft: LockDraft;
}

export function createHttpTriggerSecretRotator({
  db,
  endpoints,
  lockDraft,
}: SecretRotationOptions): RotateHttpTriggerSecret {
  return (caller, target) =>
    db.transaction(async (manager) => {
      const { id, appId, name, triggers } = await lockDraft(manager, target, "CANNOT_UPDATE_PRODUCTION");
      if (!(await endpoints.replaceSecret(manager, appId, id, triggers))) {
        throw new ActionError(
          "TRIGGER_NOT_ALLOWED",
          `the action ${JSON.stringify(name)} has no secret to replace; only http triggers with "auth": {"type": "secret"} have a secret in their URL`,
        );
      }
      await recordChange(manager, caller, { appId, type: "appAction.v3.rotateSecret", actionId: id, data: { name } });
    });
}
