/**
 * Promotes and rolls back stages. A promotion copies the definitions (manifest) of one stage to another stage in one transaction. A
 * rollback restores the definitions that a stage had before its last promotion, or after an earlier one. Neither publishes actions.
 */

import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { EntityManager } from "typeorm";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller, Operation } from "../../rules/access.js";
import { refuseField } from "../../rules/fields.js";
import type { Manifest } from "../../rules/manifest.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import type { AppliedManifestChange, ManifestPlan, Manifests } from "../manifest/manifests.js";
import { recordChange } from "../records/audit.js";
import { findStageGroupRootId, requireStageGroupRootId } from "./stages.js";

/** Maximum number of promotions to one app that are stored. A rollback can only use a stored promotion. */
const STORED_PROMOTIONS_MAX = 50;

export interface StagePromotion {
  id: number;
  appId: number;
  /** ID of the app from which the definitions were copied; null for a rollback. */
  fromAppId: number | null;
  /** For a rollback: ID of the promotion that the request named (see `rollback`). Null for a promotion. */
  rolledBackTo: number | null;
  userId: number | null;
  plan: ManifestPlan;
  /** Time of the promotion or rollback, as ISO 8601 text. */
  createdAt: string;
}

const PROMOTION_COLUMNS = `id, app_id AS "appId", from_app_id AS "fromAppId", rolled_back_to AS "rolledBackTo", person_id AS "userId", plan,
  created_at AS "createdAt"`;

const compressDocument = promisify(gzip);
const decompressDocument = promisify(gunzip);

type PromotionRow = Omit<StagePromotion, "createdAt"> & { createdAt: Date };

const toStagePromotion = ({ createdAt, ...row }: PromotionRow): StagePromotion => ({
  ...row,
  createdAt: createdAt.toISOString(),
});

type DefinitionsOrigin = Pick<StagePromotion, "fromAppId" | "rolledBackTo">;

export interface PromotionResult {
  plan: ManifestPlan;
  /** Version tag of the definitions of both apps, which a later promotion can send as its precondition; null for a rollback. */
  tag: string | null;
  /** The stored promotion; null if the changes were only planned (dry run). */
  promotion: StagePromotion | null;
}

/** Separates the tags of the two manifests in the tag of a promotion. The tag of a manifest never contains this character. */
const TAG_SEPARATOR = ".";

/** Returns the second part of each tag whose first part (the source app's tag) is `sourceTag`. An empty list rejects the promotion. */
const pickTargetTags = (precondition: ExpectedVersions, sourceTag: string): ExpectedVersions =>
  precondition?.flatMap((tag) => {
    const [otherTag, ownTag] = tag.split(TAG_SEPARATOR);
    return otherTag === sourceTag && ownTag ? [ownTag] : [];
  });

/** Checks that the caller may run the operation on the app. @throws FORBIDDEN otherwise */
type CheckPermission = (operation: Operation, appId: number) => void;

interface PromotionOptions {
  isPlan: boolean;
  checkPermission: CheckPermission;
  precondition: ExpectedVersions;
}

interface ApplyManifestOptions extends PromotionOptions {
  /**
   * Repeats checks in the transaction.
   * @throws REQUEST_INVALID or APP_NOT_FOUND if a stage was closed; for a rollback, MANIFEST_CHANGED if the chosen promotion was the app's
   *   last promotion, and is no longer
   */
  checkOrigin: (manager: EntityManager) => Promise<void>;
}

interface StagePromotionsOptions {
  db: Db;
  manifests: Manifests;
}

/**
 * Checks that both apps are stages of one group.
 * @param lock "FOR SHARE" to prevent the closing of these stages until the transaction ends
 * @throws REQUEST_INVALID
 */
async function requireSameGroup(
  executor: SqlClient,
  sourceAppId: number,
  appId: number,
  lock?: "FOR SHARE",
): Promise<void> {
  const rootId = sourceAppId === appId ? null : await findStageGroupRootId(executor, sourceAppId, lock);
  if (rootId === null || rootId !== (await findStageGroupRootId(executor, appId, lock)))
    throw new ActionError(
      "REQUEST_INVALID",
      `"fromAppId" must be the ID of another stage of this app (got ${sourceAppId})`,
    );
}

/** Stores a promotion or rollback with its audit log entry, and deletes the oldest promotions above STORED_PROMOTIONS_MAX. */
async function recordPromotion(
  manager: EntityManager,
  caller: Caller,
  appId: number,
  { fromAppId, rolledBackTo }: DefinitionsOrigin,
  { plan, manifestBefore, manifestAfter }: AppliedManifestChange,
): Promise<StagePromotion> {
  const compressedDocuments = await Promise.all(
    [manifestBefore, manifestAfter].map((document) => compressDocument(JSON.stringify(document))),
  );
  const values = [appId, fromAppId, rolledBackTo, caller.personId, JSON.stringify(plan), ...compressedDocuments];
  const [storedPromotion] = await rows<PromotionRow>(
    manager,
    `INSERT INTO promotion (app_id, from_app_id, rolled_back_to, person_id, plan, before, after)
       VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${PROMOTION_COLUMNS}`,
    values,
  );
  await rows(
    manager,
    `DELETE FROM promotion WHERE app_id = $1 AND id <=
         (SELECT id FROM promotion WHERE app_id = $1 ORDER BY id DESC OFFSET ${STORED_PROMOTIONS_MAX} LIMIT 1)`,
    [appId],
  );
  const data = { promotionId: storedPromotion!.id, fromAppId, rolledBackTo };
  await recordChange(manager, caller, { appId, type: rolledBackTo === null ? "app.promote" : "app.rollback", data });
  return toStagePromotion(storedPromotion!);
}

/**
 * Definitions that a rollback restores. `manifest` is gzipped JSON. `isLast` is true if the chosen promotion is the app's last promotion.
 */
interface RollbackDefinitions {
  manifest: Buffer;
  isLast: boolean;
}

async function findDefinitions(executor: SqlClient, appId: number, id: number): Promise<RollbackDefinitions> {
  // A rollback undoes the last promotion (definitions before it), or repeats an earlier promotion (definitions after it).
  const sql = `SELECT CASE WHEN "isLast" THEN before ELSE after END AS manifest, "isLast" FROM (
      SELECT *, id = (SELECT max(id) FROM promotion WHERE app_id = $1) AS "isLast"
        FROM promotion WHERE app_id = $1 AND id = $2) AS chosen`;
  const [promotion] = id > 0 ? await rows<RollbackDefinitions>(executor, sql, [appId, id]) : [];
  if (!promotion) throw new ActionError("NOT_FOUND", "this app has no promotion with this ID, or no longer stores it");
  return promotion;
}

export class StagePromotions {
  constructor(private readonly options: StagePromotionsOptions) {}

  private async applyManifest(
    caller: Caller,
    appId: number,
    manifest: Manifest,
    origin: DefinitionsOrigin,
    { isPlan, checkPermission, precondition, checkOrigin }: ApplyManifestOptions,
  ): Promise<Omit<PromotionResult, "tag"> & { tag: string }> {
    let promotion: StagePromotion | null = null;
    const { plan, tag } = await this.options.manifests.apply(caller, manifest, {
      ...{ appId, isPlan, prune: true, keepsData: true, precondition },
      checkPermission: (operation) => checkPermission(operation, appId),
      onApplied: async (manager, applied) => {
        throwIfUnknownField(caller);
        await checkOrigin(manager);
        promotion = await recordPromotion(manager, caller, appId, origin, applied);
      },
    });
    return { plan, tag, promotion };
  }

  /** Lists the stored promotions and rollbacks of the app, the most recent first. */
  async list(appId: number): Promise<StagePromotion[]> {
    const sql =
      `SELECT ${PROMOTION_COLUMNS} FROM promotion WHERE ` +
      `app_id = $1 ORDER BY id DESC LIMIT ${STORED_PROMOTIONS_MAX}`;
    return (await rows<PromotionRow>(this.options.db, sql, [appId])).map(toStagePromotion);
  }

  /**
   * Copies the definitions of the app `fromAppId` to the app `appId`, and removes definitions that only the app `appId` has. The app
   * `appId` keeps its settings with their values, its secret bindings, the columns of its data sources, and data sources that have entries.
   * @param precondition version tags of both apps' definitions that the request accepts
   * @throws REQUEST_INVALID if the apps are not stages of one group; MANIFEST_CHANGED; errors of applying a manifest
   */
  async promote(
    caller: Caller,
    appId: number,
    fromAppId: unknown,
    { isPlan, checkPermission, precondition }: PromotionOptions,
  ): Promise<PromotionResult> {
    const { db, manifests } = this.options;
    const isId = Number.isSafeInteger(fromAppId) && (fromAppId as number) > 0;
    if (!isId) refuseField("fromAppId", "the ID of an app", fromAppId);
    const sourceAppId = fromAppId as number;
    checkPermission("readManifest", sourceAppId);
    // An unfinished stage has no definitions to read. `checkOrigin` repeats this check in the transaction.
    await requireSameGroup(db, sourceAppId, appId);
    const { manifest, tag: sourceTag } = await manifests.get(sourceAppId);
    const checkOrigin = (manager: EntityManager) => requireSameGroup(manager, sourceAppId, appId, "FOR SHARE");
    const applyMode = { isPlan, checkPermission, precondition: pickTargetTags(precondition, sourceTag), checkOrigin };
    const result = await this.applyManifest(
      caller,
      appId,
      manifest,
      { fromAppId: sourceAppId, rolledBackTo: null },
      applyMode,
    );
    return { ...result, tag: sourceTag + TAG_SEPARATOR + result.tag };
  }

  /**
   * Rolls the app back to an earlier state. If `id` is the last promotion, restores the definitions that the app had before this promotion.
   * Otherwise, restores the definitions that it had after the promotion `id`.
   * @throws NOT_FOUND; APP_NOT_FOUND for a closed stage; MANIFEST_CHANGED if the definitions change during the rollback, or if `id` was the
   *   last promotion and is no longer; the errors of `checkPermission` and of a manifest
   */
  async rollback(
    caller: Caller,
    appId: number,
    id: number,
    checkPermission: CheckPermission,
  ): Promise<PromotionResult> {
    const { db, manifests } = this.options;
    await requireStageGroupRootId(db, appId);
    const precondition = [await manifests.readTag(appId)];
    const { manifest, isLast } = await findDefinitions(db.manager, appId, id);
    const document = JSON.parse(String(await decompressDocument(manifest))) as Manifest;
    // Fails if the chosen promotion was the last one, and another promotion has ended since. The tag does not show this if the other
    // promotion changed no definitions.
    const checkOrigin = async (manager: EntityManager) => {
      await requireStageGroupRootId(manager, appId, "FOR SHARE");
      if ((await findDefinitions(manager, appId, id)).isLast !== isLast) throw new ActionError("MANIFEST_CHANGED");
    };
    const applyMode = { isPlan: false, checkPermission, precondition, checkOrigin };
    const result = await this.applyManifest(caller, appId, document, { fromAppId: null, rolledBackTo: id }, applyMode);
    return { ...result, tag: null };
  }
}
