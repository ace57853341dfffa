/** Restores a draft from one of its saved versions. */
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import type { Db } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { NO_RESOLVED_DEPENDENCIES, type ResolvedDependencies } from "../packages/packages.js";
import { recordChange } from "../records/audit.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import {
  type Action,
  type ConvertActionRow,
  type DraftChangeTarget,
  findLiveVersion,
  type LockDraft,
  readDraft,
} from "./action-rows.js";
import type { ActionValidation, ValidatedAction } from "./action-validation.js";
import { createAddedScriptAuditEntries, type DraftWriter } from "./draft-writer.js";
import { rethrowWithStatus } from "./failures.js";
import {
  readPublishedState,
  requireActionVersion,
  type StoredActionVersion,
  storeDisplacedVersion,
  storeDraftVersion,
} from "./versions.js";

export interface DraftRestoreResult {
  action: Action & { isPublished: boolean };
  restoredFromVersionId: number;
  /** ID of the version that contains the draft from before the restore; null if this version could not be stored. */
  preRestoreVersionId: number | null;
}

interface DraftRestorerOptions {
  db: Db;
  validation: ActionValidation;
  draftWriter: DraftWriter;
  log: Logger;
  convertRow: ConvertActionRow;
  lockDraft: LockDraft;
}

export class DraftRestorer {
  constructor(private readonly options: DraftRestorerOptions) {}

  /**
   * Validates the version with the current rules.
   * @throws RESTORE_FAILED with the validation error in its message. The status of the validation error itself would suggest an invalid
   * request
   */
  private async validateVersion(
    manager: EntityManager,
    row: ActionRow,
    { id, data }: StoredActionVersion,
    resolved: ResolvedDependencies,
  ): Promise<ValidatedAction> {
    return this.options.validation.validateRestore(manager, row, data, resolved).catch((error: unknown) => {
      if (!(error instanceof ActionError)) throw error;
      throw new ActionError(
        "RESTORE_FAILED",
        `version ${id} of the action is no longer valid (${error.status}): ${error.message}`,
      );
    });
  }

  private async restoreResolved(
    manager: EntityManager,
    caller: Caller,
    target: DraftChangeTarget,
    versionId: number,
    resolved: ResolvedDependencies,
  ): Promise<DraftRestoreResult> {
    const { draftWriter, log, convertRow, lockDraft } = this.options;
    const { appId, id: actionId } = target;
    const row = await lockDraft(manager, target, "CANNOT_RESTORE_PRODUCTION");
    const version = await requireActionVersion(manager, actionId, versionId);
    const restoredAction = await this.validateVersion(manager, row, version, resolved);
    const { personId } = caller;
    const publishedState = await readPublishedState(manager, versionId);
    const preRestoreVersionId = await storeDraftVersion(manager, log, row, { occasion: "pre-restore", personId });
    const { assets: before } = row;
    await draftWriter.store(manager, row, restoredAction);
    await storeDisplacedVersion(manager, log, row, { ...publishedState, versionId, personId });
    const ids = { restoredFromVersionId: versionId, preRestoreVersionId };
    const entry = { appId, type: "appAction.v3.restore", actionId, data: ids };
    await recordChange(manager, caller, entry, createAddedScriptAuditEntries(row, before));
    const isPublished = (await findLiveVersion(manager, actionId)) !== null;
    return { action: { ...convertRow(row), isPublished }, ...ids };
  }

  private async prepareAndRestore(caller: Caller, target: DraftChangeTarget, versionId: number) {
    const { db, validation } = this.options;
    const { appId, id } = target;
    const resolvePackages = async () => {
      const row = await readDraft(db, target);
      if (!row) return NO_RESOLVED_DEPENDENCIES;
      const { data } = await requireActionVersion(db.manager, id, versionId);
      return validation.prepareRestore({ caller, appId }, data, row);
    };
    // Ignores an error here: the transaction below makes the same checks again, and throws the error.
    const resolved = await resolvePackages().catch(() => NO_RESOLVED_DEPENDENCIES);
    return transactWithAppLock(db, appId, (manager) =>
      this.restoreResolved(manager, caller, target, versionId, resolved),
    );
  }

  /**
   * Copies the fields and the scripts of a saved version to the draft. The live version does not change.
   * @throws ActionError ACTION_NOT_FOUND, ACTION_NOT_V3, CANNOT_RESTORE_PRODUCTION, ACTION_CHANGED, VERSION_NOT_FOUND, NAME_ALREADY_EXISTS,
   *   RESTORE_FAILED (also for a version that is invalid by the current rules), REQUEST_INVALID if the app's actions together are too large
   */
  restore(caller: Caller, target: DraftChangeTarget, versionId: number): Promise<DraftRestoreResult> {
    return rethrowWithStatus("RESTORE_FAILED", this.options.log, this.prepareAndRestore(caller, target, versionId));
  }
}
