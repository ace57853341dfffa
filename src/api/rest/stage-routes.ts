/** Stages and promotions over REST, as rows of the REST table. */
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

export const stageRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${APP}/stages`,
    answer: async ({ stages }, q) => ({ stages: await stages.stages(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: `${APP}/stages`,
    http: 201,
    answer: async ({ stages }, q) => ({ app: await stages.createStageOf(q.context, q.id("appId"), q.body) }),
  },
  {
    method: "DELETE",
    path: `${APP}/stages/:stageAppId`,
    stateless: true,
    answer: async ({ stages }, q) => {
      await stages.removeStage(q.context, q.id("appId"), q.id("stageAppId"));
      return { status: "STAGE_REMOVED" };
    },
  },
  {
    method: "GET",
    path: `${APP}/promotions`,
    answer: async ({ stages }, q) => ({ promotions: await stages.promotions(q.context, q.id("appId")) }),
  },
  {
    method: "POST",
    path: `${APP}/promotions`,
    http: 201,
    answer: async ({ stages }, q) => {
      const { fromAppId } = q.object(flatShape(["fromAppId"]));
      const [isPlan, precondition] = [q.flag("plan"), q.ifMatch()];
      const { plan, promotion, tag } = await stages.promote(q.context, q.id("appId"), fromAppId, isPlan, precondition);
      if (isPlan) q.context.http = 200;
      return q.at({ updatedAt: tag! }, isPlan ? { plan } : { promotion });
    },
  },
  {
    method: "POST",
    path: `${APP}/promotions/:promotionId/rollback`,
    http: 201,
    answer: async ({ stages }, q) => {
      const { promotion } = await stages.rollbackPromotion(q.context, q.id("appId"), q.id("promotionId"));
      return { promotion };
    },
  },
];
