/** Messages over REST, as rows of the REST table. */
import { flatShape } from "../../rules/unknown-fields.js";
import type { Route } from "./route.js";

const COMMUNICATE_PATH = "/v1/apps/:appId/communicate";

export const messageRoutes: readonly Route[] = [
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/email`,
    http: 202,
    answer: ({ messages }, q) => messages.sendEmail(q.context, q.id("appId"), q.body),
  },
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/email/batch`,
    http: 202,
    answer: async ({ messages }, q) => ({ messages: await messages.batchSendEmail(q.context, q.id("appId"), q.body) }),
  },
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/sms`,
    http: 202,
    answer: ({ messages }, q) => messages.sendSms(q.context, q.id("appId"), q.body),
  },
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/sms/batch`,
    http: 202,
    answer: async ({ messages }, q) => ({ messages: await messages.batchSendSms(q.context, q.id("appId"), q.body) }),
  },
  {
    method: "GET",
    path: `${COMMUNICATE_PATH}/messages`,
    answer: ({ messages }, q) =>
      messages.messages(
        q.context,
        q.id("appId"),
        q.text("kind"),
        q.text("status"),
        q.number("limit"),
        q.number("offset"),
      ),
  },
  {
    method: "GET",
    path: `${COMMUNICATE_PATH}/messages/:messageId`,
    answer: async ({ messages }, q) => ({
      message: await messages.message(q.context, q.id("appId"), q.id("messageId")),
    }),
  },
  {
    method: "POST",
    path: `${COMMUNICATE_PATH}/messages/:messageId/decide`,
    answer: async ({ messages }, q) => ({
      message: await messages.decideMessage(
        q.context,
        q.id("appId"),
        q.id("messageId"),
        q.object(flatShape(["decision"]))["decision"] as string,
      ),
    }),
  },
];
