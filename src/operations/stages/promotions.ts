/**
 * Copies the definitions of one stage to another in one transaction (promotion), and restores earlier ones (rollback).
 * Publishes nothing.
 */

import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { DataSource, EntityManager } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller, Operation } from "../../rules/access.js";
import { refuseField } from "../../rules/fields.js";
import type { Manifest } from "../../rules/manifest.js";
import type { ExpectedTags } from "../../rules/precondition.js";
import { reportUnknownField } from "../../rules/unknown-fields.js";
import type { ManifestPlan, Manifests } from "../manifest/manifests.js";
import { recordChange } from "../records/audit.js";
import type { Stages } from "./stages.js";

/** Maximum number of promotions of an app whose documents are stored. */
const PROMOTIONS_KEPT = 50;

/** A promotion to an app, or a rollback. */
export interface StagePromotion {
  id: number;
  appId: number;
  /** Null for a rollback. */
  fromAppId: number | null;
  /** ID of the promotion that a rollback names; null for a promotion. */
  rolledBackTo: number | null;
  userId: number | null;
  plan: ManifestPlan;
  /** ISO 8601. */
  createdAt: string;
}

const FIELDS = `id, app_id AS "appId", from_app_id AS "fromAppId", rolled_back_to AS "rolledBackTo", person_id AS "userId", plan,
  created_at AS "createdAt"`;

const compressDocument = promisify(gzip);
const decompressDocument = promisify(gunzip);

type Row = Omit<StagePromotion, "createdAt"> & { createdAt: Date };

const viewOf = ({ createdAt, ...row }: Row): StagePromotion => ({ ...row, createdAt: createdAt.toISOString() });

/** Source of the definitions. */
type Origin = Pick<StagePromotion, "fromAppId" | "rolledBackTo">;

export interface PromotionResult {
  plan: ManifestPlan;
  /** Tag of the definitions of both apps, for `precondition`; null for a rollback. */
  tag: string | null;
  /** Null if it was only planned. */
  promotion: StagePromotion | null;
}

/** Separates the tags of the two manifests, which never contain this character. */
const TAG_SEPARATOR = ".";

/**
 * Returns those expected tags that belong to the app's own manifest. The result is empty if the source stage has changed
 * since all of the tags; the promotion is then rejected.
 */
const ownTags = (precondition: ExpectedTags, ofOther: string): ExpectedTags =>
  precondition?.flatMap((tag) => {
    const [otherTag, ownTag] = tag.split(TAG_SEPARATOR);
    return otherTag === ofOther && ownTag ? [ownTag] : [];
  });

type May = (operation: Operation, appId: number) => void;

export type StagePromotions = ReturnType<typeof createPromotions>;

export function createPromotions(options: { db: DataSource; manifests: Manifests; stages: Stages }) {
  const { db, manifests, stages } = options;

  async function recordPromotion(
    manager: EntityManager,
    caller: Caller,
    appId: number,
    { fromAppId, rolledBackTo }: Origin,
    { plan, before, after }: { plan: ManifestPlan; before: Manifest; after: Manifest },
  ): Promise<StagePromotion> {
    const compressedDocuments = await Promise.all(
      [before, after].map((document) => compressDocument(JSON.stringify(document))),
    );
    const values = [appId, fromAppId, rolledBackTo, caller.personId, JSON.stringify(plan), ...compressedDocuments];
    const [made] = await rows<Row>(
      manager,
      `INSERT INTO promotion (app_id, from_app_id, rolled_back_to, person_id, plan, before, after)
       VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${FIELDS}`,
      values,
    );
    await rows(
      manager,
      `DELETE FROM promotion WHERE app_id = $1 AND id <=
         (SELECT id FROM promotion WHERE app_id = $1 ORDER BY id DESC OFFSET ${PROMOTIONS_KEPT} LIMIT 1)`,
      [appId],
    );
    const data = { promotionId: made!.id, fromAppId, rolledBackTo };
    await recordChange(manager, caller, { appId, type: rolledBackTo === null ? "app.promote" : "app.rollback", data });
    return viewOf(made!);
  }

  async function applyManifest(
    caller: Caller,
    appId: number,
    manifest: Manifest,
    origin: Origin,
    { isPlan, may, precondition }: { isPlan: boolean; may: May; precondition: ExpectedTags },
  ): Promise<Omit<PromotionResult, "tag"> & { tag: string }> {
    let promotion: StagePromotion | null = null;
    const { plan, tag } = await manifests.apply(caller, manifest, {
      ...{ appId, isPlan, prune: true, keepsData: true, precondition },
      may: (operation) => may(operation, appId),
      onApplied: async (manager, applied) => {
        reportUnknownField(caller);
        promotion = await recordPromotion(manager, caller, appId, origin, applied);
      },
    });
    return { plan, tag, promotion };
  }

  async function findPromotion(executor: Executor, appId: number, id: number): Promise<{ manifest: Buffer }> {
    // A rollback of the last promotion restores the state before it; of an earlier one, the state after it.
    const sql = `SELECT CASE WHEN id = (SELECT max(id) FROM promotion WHERE app_id = $1) THEN before ELSE after END AS manifest
      FROM promotion WHERE app_id = $1 AND id = $2`;
    const [promotion] = id > 0 ? await rows<{ manifest: Buffer }>(executor, sql, [appId, id]) : [];
    if (!promotion) throw new ActionError("NOT_FOUND", "no such promotion");
    return promotion;
  }

  return {
    /** Most recent first. */
    async list(appId: number): Promise<StagePromotion[]> {
      const sql = `SELECT ${FIELDS} FROM promotion WHERE app_id = $1 ORDER BY id DESC LIMIT ${PROMOTIONS_KEPT}`;
      return (await rows<Row>(db, sql, [appId])).map(viewOf);
    },

    /**
     * Copies the definitions of the app `fromAppId` to the target app. Settings that have a value keep that value.
     * @param precondition tags of the definitions of both apps that the promotion may start from
     * @throws REQUEST_INVALID if the apps are no stages of one another; MANIFEST_CHANGED; errors of manifests and of
     *   `may`
     */
    async promote(
      caller: Caller,
      appId: number,
      fromAppId: unknown,
      { isPlan, may, precondition }: { isPlan: boolean; may: May; precondition: ExpectedTags },
    ): Promise<PromotionResult> {
      const isId = Number.isSafeInteger(fromAppId) && (fromAppId as number) > 0;
      if (!isId) refuseField("fromAppId", "the ID of an app", fromAppId);
      const sourceAppId = fromAppId as number;
      may("readManifest", sourceAppId);
      if (sourceAppId === appId || !(await stages.areLinked(sourceAppId, appId))) {
        throw new ActionError("REQUEST_INVALID", `fromAppId must be another stage of this app (got ${sourceAppId})`);
      }
      const { manifest, tag: ofOther } = await manifests.get(sourceAppId);
      const applyMode = { isPlan, may, precondition: ownTags(precondition, ofOther) };
      const result = await applyManifest(
        caller,
        appId,
        manifest,
        { fromAppId: sourceAppId, rolledBackTo: null },
        applyMode,
      );
      return { ...result, tag: ofOther + TAG_SEPARATOR + result.tag };
    },

    /**
     * Restores the state after an earlier promotion; for the last promotion, the state before it.
     * @throws NOT_FOUND; errors of manifests and of `may`
     */
    async rollback(caller: Caller, appId: number, id: number, checkPermission: May): Promise<PromotionResult> {
      const { manifest } = await findPromotion(db.manager, appId, id);
      const document = JSON.parse(String(await decompressDocument(manifest))) as Manifest;
      const applyMode = { isPlan: false, may: checkPermission, precondition: undefined };
      const result = await applyManifest(caller, appId, document, { fromAppId: null, rolledBackTo: id }, applyMode);
      return { ...result, tag: null };
    },
  };
}
