/** REST routes of stages and promotions: entries for the route table in rest/routes.ts. */
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const APP = "/v1/apps/:appId";

export const stageRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${APP}/stages`,
    handle: async ({ stages }, request) => ({ stages: await stages.stages(request.context, request.id("appId")) }),
  },
  {
    method: "POST",
    path: `${APP}/stages`,
    successStatus: 201,
    handle: async ({ stages }, request) => ({
      app: await stages.createStageOf(request.context, request.id("appId"), request.body),
    }),
  },
  {
    method: "DELETE",
    path: `${APP}/stages/:stageAppId`,
    hasNoVersion: true,
    handle: async ({ stages }, request) => {
      await stages.removeStage(request.context, request.id("appId"), request.id("stageAppId"));
      return { status: "STAGE_REMOVED" };
    },
  },
  {
    method: "GET",
    path: `${APP}/promotions`,
    handle: async ({ stages }, request) => ({
      promotions: await stages.promotions(request.context, request.id("appId")),
    }),
  },
  {
    method: "POST",
    path: `${APP}/promotions`,
    successStatus: 201,
    handle: async ({ stages }, request) => {
      const { fromAppId } = request.object(flatShape(["fromAppId"]));
      const [isPlan, precondition] = [request.flag("plan"), request.ifMatch()];
      const { plan, promotion, tag } = await stages.promote(
        request.context,
        request.id("appId"),
        fromAppId,
        isPlan,
        precondition,
      );
      if (isPlan) request.context.httpStatus = 200;
      return request.setTag({ updatedAt: tag! }, isPlan ? { plan } : { promotion });
    },
  },
  {
    method: "POST",
    path: `${APP}/promotions/:promotionId/rollback`,
    successStatus: 201,
    handle: async ({ stages }, request) => {
      const { promotion } = await stages.rollbackPromotion(
        request.context,
        request.id("appId"),
        request.id("promotionId"),
      );
      return { promotion };
    },
  },
];
