/** Publishes and unpublishes actions: creates, updates and deletes the live version of a draft. */
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import { ActionRow } from "../../data/action.js";
import { type Db, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { computeNextUpdatedAt } from "../../rules/precondition.js";
import { findRouteConflictError, writeRoutes } from "../http/routes.js";
import { NO_RESOLVED_DEPENDENCIES, type ResolvedDependencies } from "../packages/packages.js";
import { recordChange } from "../records/audit.js";
import { runAppChangeInSlot, transactWithAppLock } from "../settings/app-lock.js";
import type { TriggerIndex } from "../triggers/trigger-index.js";
import {
  type Action,
  assignAuthoredFields,
  type ConvertActionRow,
  type DraftChangeTarget,
  findLiveVersion,
  type LockDraft,
  pickAuthoredFields,
  readDraft,
  rejectDuplicateName,
  writeActionRow,
} from "./action-rows.js";
import type { ActionValidation } from "./action-validation.js";
import { checkTotalActionSize, createAddedScriptAuditEntries, type DraftWriter } from "./draft-writer.js";
import { rethrowWithStatus } from "./failures.js";
import { markVersionPublished, wasDraftStatePublished } from "./versions.js";

export interface PublishRequest extends DraftChangeTarget {
  /** True if the caller states that the tests of the draft have passed. */
  tested: boolean;
}

const SELECT_PUBLISHING_APP = `SELECT requires_tests AS "requiresTests", published_at IS NOT NULL AS "isPublished" FROM app WHERE id = $1`;

type PublishingApp = { requiresTests: boolean; isPublished: boolean };

/** Reads the app's state for a publish. Lock the app first, so that no other request can unpublish the app meanwhile. */
async function readPublishingApp(manager: EntityManager, appId: number): Promise<PublishingApp> {
  return (await rows<PublishingApp>(manager, SELECT_PUBLISHING_APP, [appId]))[0]!;
}

/**
 * Checks that a draft can be published. If the app requires tests, `tested` must be true, unless a version that equals
 * the draft was live before.
 * @throws ActionError APP_NOT_PUBLISHED, TESTS_REQUIRED
 */
async function requirePublishable(
  manager: EntityManager,
  app: PublishingApp,
  tested: boolean,
  master: ActionRow,
): Promise<void> {
  if (!app.isPublished) throw new ActionError("APP_NOT_PUBLISHED");
  if (app.requiresTests && !tested && !(await wasDraftStatePublished(manager, master)))
    throw new ActionError("TESTS_REQUIRED");
}

function overwriteLiveVersion(liveVersion: ActionRow | null, master: ActionRow): ActionRow {
  const { appId, id: masterId, actionVersion, assets } = master;
  const link = { appId, masterId, actionVersion, assets, updatedAt: computeNextUpdatedAt(liveVersion?.updatedAt) };
  return Object.assign(assignAuthoredFields(liveVersion ?? new ActionRow(), pickAuthoredFields(master)), link);
}

const SELECT_LAST_RUN_END = `
  SELECT created_at AS "at" FROM execution_log WHERE app_id = $1 AND task_id = $2 ORDER BY id DESC LIMIT 1`;

/**
 * Writes a live version. If the action had a live version before, the new one gets its ID and the time of its last run. So earlier runs
 * still belong to the action.
 */
async function writeLiveVersion(manager: EntityManager, liveVersion: ActionRow, master: ActionRow): Promise<void> {
  const isNew = liveVersion.id === undefined;
  if (isNew && master.liveId !== null) {
    const [lastRun] = await rows<{ at: Date }>(manager, SELECT_LAST_RUN_END, [master.appId, master.liveId]);
    Object.assign(liveVersion, { id: master.liveId, lastRunAt: lastRun?.at ?? null });
  }
  const { name } = master;
  const refusal = new ActionError(
    "NAME_ALREADY_EXISTS",
    `the live version of another action of this app has the name ${JSON.stringify(name)}; publish or unpublish that action, or rename this action`,
  );
  await rejectDuplicateName(writeActionRow(manager, liveVersion, isNew), refusal);
}

/** Writes the URL paths of a live version. @throws TRIGGERS_INVALID if the live version of another action has one of these paths */
async function publishRoutes(manager: EntityManager, liveVersion: ActionRow): Promise<void> {
  const { appId, id, triggers } = liveVersion;
  const routeFault = await findRouteConflictError(manager, { appId, isDraft: false, ignoredActionIds: [id] }, triggers);
  if (routeFault) throw routeFault;
  await writeRoutes(manager, liveVersion);
}

interface ActionPublisherOptions {
  db: Db;
  validation: ActionValidation;
  draftWriter: DraftWriter;
  log: Logger;
  convertRow: ConvertActionRow;
  lockDraft: LockDraft;
  triggerIndex: TriggerIndex;
}

export class ActionPublisher {
  constructor(private readonly options: ActionPublisherOptions) {}

  private async publishResolved(
    manager: EntityManager,
    caller: Caller,
    target: PublishRequest,
    resolved: ResolvedDependencies,
  ): Promise<Action> {
    const { validation, draftWriter, log, convertRow, lockDraft, triggerIndex } = this.options;
    const { appId, id } = target;
    const app = await readPublishingApp(manager, appId);
    const master = await lockDraft(manager, target, "CANNOT_UPDATE_PRODUCTION");
    await requirePublishable(manager, app, target.tested, master);
    // Throws if a package is no longer available, because a run could not load this package.
    const publishedAction = validation.validatePublish(master, resolved);
    // A draft must have the same scripts as its live version. So a new script is first saved in a new version of the draft.
    if (createAddedScriptAuditEntries(publishedAction, master.assets).length > 0)
      await draftWriter.replace(manager, caller, master, publishedAction);
    const currentLiveVersion = await findLiveVersion(manager, id);
    await checkTotalActionSize(manager, currentLiveVersion ?? { appId }, pickAuthoredFields(master));
    const liveVersion = overwriteLiveVersion(currentLiveVersion, master);
    await writeLiveVersion(manager, liveVersion, master);
    await publishRoutes(manager, liveVersion);
    await markVersionPublished(manager, log, master, caller);
    const data = { name: master.name, productionId: liveVersion.id, ...(target.tested && { tested: true }) };
    await recordChange(manager, caller, { appId, type: "appAction.v3.publish", actionId: id, data });
    await triggerIndex.apply(manager, liveVersion);
    return convertRow(liveVersion);
  }

  private async prepareAndPublish(caller: Caller, target: PublishRequest): Promise<Action> {
    const { db, validation } = this.options;
    const stored = await readDraft(db, target);
    const author = { caller, appId: target.appId };
    const resolved = stored ? await validation.preparePublish(author, stored) : NO_RESOLVED_DEPENDENCIES;
    return transactWithAppLock(db, target.appId, (manager) => this.publishResolved(manager, caller, target, resolved));
  }

  private async unpublishLocked(manager: EntityManager, caller: Caller, target: DraftChangeTarget): Promise<void> {
    const { appId, id } = target;
    const { name } = await this.options.lockDraft(manager, target, "CANNOT_UPDATE_PRODUCTION");
    const liveVersion = await findLiveVersion(manager, id);
    if (!liveVersion) throw new ActionError("ACTION_NOT_PUBLISHED");
    await manager.delete(ActionRow, liveVersion.id);
    const data = { name, productionId: liveVersion.id };
    await recordChange(manager, caller, { appId, type: "appAction.v3.unpublish", actionId: id, data });
  }

  /**
   * Creates the live version of a draft, or overwrites it with the current draft. The live version always gets the same ID.
   * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, CANNOT_UPDATE_PRODUCTION, APP_NOT_PUBLISHED, TESTS_REQUIRED, ACTION_CHANGED,
   *   NAME_ALREADY_EXISTS, TRIGGERS_INVALID, DEPENDENCY_UNRESOLVED, PUBLISH_FAILED; REQUEST_INVALID if the app's actions together are too
   *   large
   */
  publish(caller: Caller, target: PublishRequest): Promise<Action> {
    return rethrowWithStatus("PUBLISH_FAILED", this.options.log, this.prepareAndPublish(caller, target));
  }

  /**
   * Checks that these drafts can be published without a statement of the caller that their tests have passed. Call this method in the
   * transaction that changes the drafts, after this transaction has locked the app.
   * @throws APP_NOT_PUBLISHED, TESTS_REQUIRED
   */
  async checkPublishable(manager: EntityManager, appId: number, ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    const app = await readPublishingApp(manager, appId);
    for (const id of ids)
      await requirePublishable(manager, app, false, await manager.findOneByOrFail(ActionRow, { id }));
  }

  /**
   * Deletes the live version of a draft.
   * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, CANNOT_UPDATE_PRODUCTION, ACTION_CHANGED, ACTION_NOT_PUBLISHED
   */
  unpublish(caller: Caller, target: DraftChangeTarget): Promise<void> {
    const { db } = this.options;
    const unpublishDraft = (manager: EntityManager) => this.unpublishLocked(manager, caller, target);
    return runAppChangeInSlot(db, target.appId, () => db.transaction(unpublishDraft));
  }
}
