/** REST routes of messages: entries for the route table in rest/routes.ts. */
import { createFlatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const COMMUNICATE_PATH = "/v1/apps/:appId/communicate";

export const messageRoutes: readonly Route[] = [
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/email`,
    successStatus: 202,
    handle: ({ messages }, request) => messages.sendEmail(request.context, request.pathId("appId"), request.body),
  },
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/email/batch`,
    successStatus: 202,
    handle: async ({ messages }, request) => ({
      messages: await messages.batchSendEmail(request.context, request.pathId("appId"), request.body),
    }),
  },
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/sms`,
    successStatus: 202,
    handle: ({ messages }, request) => messages.sendSms(request.context, request.pathId("appId"), request.body),
  },
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/sms/batch`,
    successStatus: 202,
    handle: async ({ messages }, request) => ({
      messages: await messages.batchSendSms(request.context, request.pathId("appId"), request.body),
    }),
  },
  {
    method: "GET",
    path: `${COMMUNICATE_PATH}/messages`,
    handle: ({ messages }, request) =>
      messages.messages(
        request.context,
        request.pathId("appId"),
        request.queryText("kind"),
        request.queryText("status"),
        request.queryNumber("limit"),
        request.queryNumber("offset"),
      ),
  },
  {
    method: "GET",
    path: `${COMMUNICATE_PATH}/messages/:messageId`,
    handle: async ({ messages }, request) => ({
      message: await messages.message(request.context, request.pathId("appId"), request.pathId("messageId")),
    }),
  },
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/messages/:messageId/decide`,
    handle: async ({ messages }, request) => ({
      message: await messages.decideMessage(
        request.context,
        request.pathId("appId"),
        request.pathId("messageId"),
        request.bodyFields(createFlatShape(["decision"]))["decision"] as string,
      ),
    }),
  },
];
