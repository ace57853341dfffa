/** Promotions: copies the definitions of one stage to another in one transaction, and supports rollback. Publishes nothing. */

import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { DataSource, EntityManager } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller, Operation } from "../../rules/access.js";
import { refuse } from "../../rules/fields.js";
import type { Manifest } from "../../rules/manifest.js";
import type { Precondition } from "../../rules/precondition.js";
import { reportUnknownField } from "../../rules/unknown-fields.js";
import type { ManifestPlan, Manifests } from "../manifest/manifests.js";
import { audit } from "../records/audit.js";
import type { Stages } from "./stages.js";

/** Promotions of one app that are stored with their documents. */
const KEPT = 50;

/** A promotion to an app, or a rollback. */
export interface Promotion {
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

const packed = promisify(gzip);
const unpacked = promisify(gunzip);

type Row = Omit<Promotion, "createdAt"> & { createdAt: Date };

const viewOf = ({ createdAt, ...row }: Row): Promotion => ({ ...row, createdAt: createdAt.toISOString() });

/** Source of the definitions. */
type Origin = Pick<Promotion, "fromAppId" | "rolledBackTo">;

export interface PromotionResult {
  plan: ManifestPlan;
  /** Tag of the definitions of both apps, for `precondition`; null for a rollback. */
  tag: string | null;
  /** Null if it was only planned. */
  promotion: Promotion | null;
}

/** Stands between the tags of the two manifests, which do not have it. */
const BETWEEN = ".";

/**
 * The tags of the app's own manifest, out of tags of both. Empty if the source stage has changed since every tag: the promotion is then
 * rejected.
 */
const ownTags = (precondition: Precondition, ofOther: string): Precondition =>
  precondition?.flatMap((tag) => {
    const [other, own] = tag.split(BETWEEN);
    return other === ofOther && own ? [own] : [];
  });

type May = (operation: Operation, appId: number) => void;

export type Promotions = ReturnType<typeof createPromotions>;

export function createPromotions(options: { db: DataSource; manifests: Manifests; stages: Stages }) {
  const { db, manifests, stages } = options;

  async function record(
    manager: EntityManager,
    caller: Caller,
    appId: number,
    { fromAppId, rolledBackTo }: Origin,
    { plan, before, after }: { plan: ManifestPlan; before: Manifest; after: Manifest },
  ): Promise<Promotion> {
    const documents = await Promise.all([before, after].map((one) => packed(JSON.stringify(one))));
    const values = [appId, fromAppId, rolledBackTo, caller.personId, JSON.stringify(plan), ...documents];
    const [made] = await rows<Row>(
      manager,
      `INSERT INTO promotion (app_id, from_app_id, rolled_back_to, person_id, plan, before, after)
       VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${FIELDS}`,
      values,
    );
    await rows(
      manager,
      `DELETE FROM promotion WHERE app_id = $1 AND id <=
         (SELECT id FROM promotion WHERE app_id = $1 ORDER BY id DESC OFFSET ${KEPT} LIMIT 1)`,
      [appId],
    );
    const data = { promotionId: made!.id, fromAppId, rolledBackTo };
    await audit(manager, caller, { appId, type: rolledBackTo === null ? "app.promote" : "app.rollback", data });
    return viewOf(made!);
  }

  async function bring(
    caller: Caller,
    appId: number,
    manifest: Manifest,
    origin: Origin,
    { isPlan, may, precondition }: { isPlan: boolean; may: May; precondition: Precondition },
  ): Promise<Omit<PromotionResult, "tag"> & { tag: string }> {
    let promotion: Promotion | null = null;
    const { plan, tag } = await manifests.apply(caller, manifest, {
      ...{ appId, isPlan, prune: true, keepsData: true, precondition },
      may: (operation) => may(operation, appId),
      onApplied: async (manager, applied) => {
        reportUnknownField(caller);
        promotion = await record(manager, caller, appId, origin, applied);
      },
    });
    return { plan, tag, promotion };
  }

  async function find(executor: Executor, appId: number, id: number): Promise<{ manifest: Buffer }> {
    // A rollback of the last promotion restores the state before it; of an earlier one, the state after it.
    const sql = `SELECT CASE WHEN id = (SELECT max(id) FROM promotion WHERE app_id = $1) THEN before ELSE after END AS manifest
      FROM promotion WHERE app_id = $1 AND id = $2`;
    const [found] = id > 0 ? await rows<{ manifest: Buffer }>(executor, sql, [appId, id]) : [];
    if (!found) throw new ActionError("NOT_FOUND", "no such promotion");
    return found;
  }

  return {
    /** Most recent first. */
    async list(appId: number): Promise<Promotion[]> {
      const sql = `SELECT ${FIELDS} FROM promotion WHERE app_id = $1 ORDER BY id DESC LIMIT ${KEPT}`;
      return (await rows<Row>(db, sql, [appId])).map(viewOf);
    },

    /**
     * Brings the definitions of `fromAppId` to the app. Settings that have a value keep it.
     * @param precondition tags of the definitions of both apps that the promotion may start from
     * @throws REQUEST_INVALID if the apps are no stages of one another; MANIFEST_CHANGED; errors of manifests and of `may`
     */
    async promote(
      caller: Caller,
      appId: number,
      fromAppId: unknown,
      { isPlan, may, precondition }: { isPlan: boolean; may: May; precondition: Precondition },
    ): Promise<PromotionResult> {
      const isId = Number.isSafeInteger(fromAppId) && (fromAppId as number) > 0;
      if (!isId) refuse("fromAppId", "the ID of an app", fromAppId);
      const from = fromAppId as number;
      may("readManifest", from);
      if (from === appId || !(await stages.areLinked(from, appId))) {
        throw new ActionError("REQUEST_INVALID", `fromAppId must be another stage of this app (got ${from})`);
      }
      const { manifest, tag: ofOther } = await manifests.get(from);
      const mode = { isPlan, may, precondition: ownTags(precondition, ofOther) };
      const result = await bring(caller, appId, manifest, { fromAppId: from, rolledBackTo: null }, mode);
      return { ...result, tag: ofOther + BETWEEN + result.tag };
    },

    /**
     * Restores the state after an earlier promotion; for the last promotion, the state before it.
     * @throws NOT_FOUND; errors of manifests and of `may`
     */
    async rollback(caller: Caller, appId: number, id: number, may: May): Promise<PromotionResult> {
      const { manifest } = await find(db.manager, appId, id);
      const document = JSON.parse(String(await unpacked(manifest))) as Manifest;
      const mode = { isPlan: false, may, precondition: undefined };
      const result = await bring(caller, appId, document, { fromAppId: null, rolledBackTo: id }, mode);
      return { ...result, tag: null };
    },
  };
}
