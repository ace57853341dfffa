/**
 * REST routes of stages and promotions: entries for the route table in rest/routes.ts. Stages are apps with the same definitions, such as a
 * test app. A promotion copies definitions to another stage.
 */
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const APP_ROUTE = "/v1/apps/:appId";

export const appStageRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${APP_ROUTE}/stages`,
    handle: async ({ stages }, request) => ({ stages: await stages.stages(request.context, request.pathId("appId")) }),
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/stages`,
    successStatus: 201,
    handle: async ({ stages }, request) => ({
      app: await stages.createStageOf(request.context, request.pathId("appId"), request.body),
    }),
  },
  {
    method: "DELETE",
    path: `${APP_ROUTE}/stages/:stageAppId`,
    hasNoVersion: true,
    handle: async ({ stages }, request) => {
      await stages.removeStage(request.context, request.pathId("appId"), request.pathId("stageAppId"));
      return { status: "STAGE_REMOVED" };
    },
  },
  {
    method: "GET",
    path: `${APP_ROUTE}/promotions`,
    handle: async ({ stages }, request) => ({
      promotions: await stages.promotions(request.context, request.pathId("appId")),
    }),
  },
  {
    method: "POST",
    path: `${APP_ROUTE}/promotions`,
    successStatus: 201,
    handle: async ({ stages }, request) => {
      const { fromAppId } = request.bodyFields(createFlatShape(["fromAppId"]));
      const [isPlan, precondition] = [request.queryFlag("plan"), request.readExpectedVersions()];
      const { plan, promotion, tag } = await stages.promote(
        request.context,
        request.pathId("appId"),
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
    path: `${APP_ROUTE}/promotions/:promotionId/rollback`,
    successStatus: 201,
    handle: async ({ stages }, request) => {
      const { promotion } = await stages.rollbackPromotion(
        request.context,
        request.pathId("appId"),
        request.pathId("promotionId"),
      );
      return { promotion };
    },
  },
];
