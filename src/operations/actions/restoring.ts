/** Restores a draft from one of its versions. */
import type { Logger } from "pino";
import type { DataSource, EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { NO_PACKAGES, type ResolvedPackages } from "../packages/packages.js";
import { recordChange } from "../records/audit.js";
import {
  type Action,
  type DraftTarget,
  type LockMaster,
  productionOf,
  readMaster,
  type ShowAction,
} from "./action-rows.js";
import { rethrowAs } from "./failures.js";
import type { ActionValidation, ValidatedAction } from "./judgement.js";
import { type Masters, scriptsAdded } from "./masters.js";
import { findVersion, recordVersion, type StoredVersion } from "./versions.js";

export interface RestoredAction {
  action: Action & { isPublished: boolean };
  restoredFromVersionId: number;
  /**
   * ID of the version from before the restore. Restoring this version undoes the restore. Null if the version could not
   * be stored.
   */
  preRestoreVersionId: number | null;
}

export type Restoring = ReturnType<typeof createRestoring>;

export function createRestoring(options: {
  db: DataSource;
  judgement: ActionValidation;
  masters: Masters;
  log: Logger;
  show: ShowAction;
  lockMaster: LockMaster;
}) {
  const { db, judgement, masters, log, show, lockMaster } = options;

  /**
   * Validates the version with the current rules. The request itself is valid, so the error says which fault the
   * version has, for example a package that is no longer available.
   */
  async function validateVersion(
    manager: EntityManager,
    row: ActionRow,
    { id, data }: StoredVersion,
    resolved: ResolvedPackages,
  ): Promise<ValidatedAction> {
    return judgement.validateRestore(manager, row, data, resolved).catch((error: unknown) => {
      if (!(error instanceof ActionError)) throw error;
      throw new ActionError("RESTORE_FAILED", `version ${id} is no longer valid (${error.status}): ${error.message}`);
    });
  }

  async function restore(
    manager: EntityManager,
    caller: Caller,
    target: DraftTarget,
    versionId: number,
    resolved: ResolvedPackages,
  ): Promise<RestoredAction> {
    const { appId, id: actionId } = target;
    const row = await lockMaster(manager, target, "CANNOT_RESTORE_PRODUCTION");
    const version = await findVersion(manager, actionId, versionId);
    const restoredAction = await validateVersion(manager, row, version, resolved);
    const { personId } = caller;
    const preRestoreVersionId = await recordVersion(manager, log, row, { occasion: "pre-restore", personId });
    const { assets: before } = row;
    await masters.store(manager, row, restoredAction);
    const ids = { restoredFromVersionId: versionId, preRestoreVersionId };
    const entry = { appId, type: "appAction.v3.restore", actionId, data: ids };
    await recordChange(manager, caller, entry, scriptsAdded(row, before));
    const isPublished = (await productionOf(manager, actionId)) !== null;
    return { action: { ...show(row), isPublished }, ...ids };
  }

  async function prepareAndRestore(caller: Caller, target: DraftTarget, versionId: number) {
    const { appId, id } = target;
    const resolvePackages = async () => {
      const row = await readMaster(db, target);
      if (!row) return NO_PACKAGES;
      const { data } = await findVersion(db.manager, id, versionId);
      return judgement.prepareRestore({ caller, appId }, data, row);
    };
    // An error is ignored here, because `restore` finds the same fault and reports it.
    const resolved = await resolvePackages().catch(() => NO_PACKAGES);
    return db.transaction((manager) => restore(manager, caller, target, versionId, resolved));
  }

  return {
    /**
     * Restores the configuration and the scripts of a version to the draft. The live version does not change.
     * @throws ActionError ACTION_NOT_FOUND, ACTION_NOT_V3, CANNOT_RESTORE_PRODUCTION, ACTION_CHANGED,
     *   VERSION_NOT_FOUND, NAME_ALREADY_EXISTS; RESTORE_FAILED, also for a version that the current rules reject
     */
    restore: (caller: Caller, target: DraftTarget, versionId: number): Promise<RestoredAction> =>
      rethrowAs("RESTORE_FAILED", log, prepareAndRestore(caller, target, versionId)),
  };
}
