/**
 * Queues the message of an alert in the caller's transaction. Each message has a row in the table alert_delivery. An e-mail is also in the
 * app's outbox, which sends it.
 */
import { rows, type SqlClient } from "../../data/database.js";
import type { AlertChannel } from "../../rules/alert-input.js";
import type { QueueAppEmail } from "../communicate/app-email-queue.js";
import { QUEUED_ALERT_CHANNEL } from "./alert-rows.js";
import { type AlertFacts, composeAlertBody, composeMailText } from "./alert-texts.js";

export interface AlertChannelSetting {
  channel: AlertChannel;
  to: readonly string[];
  setting: string | null;
}

export type SendAlert = (executor: SqlClient, channelSetting: AlertChannelSetting, facts: AlertFacts) => Promise<void>;

const INSERT_DELIVERY = `
  INSERT INTO alert_delivery (app_id, rule_id, channel, setting, body, status, detail, due_at, give_up_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $6 = 'queued' THEN now() END, now() + interval '24 hours')`;

export function createAlertSender(options: { queueAppEmail: QueueAppEmail; baseUrl: string }): SendAlert {
  const { queueAppEmail, baseUrl } = options;
  return async (executor, { channel, to, setting }, facts) => {
    const body = composeAlertBody(facts, baseUrl);
    const { appId, id: ruleId } = facts.rule;
    const storeDelivery = (status: string, detail: string | null) =>
      rows(executor, INSERT_DELIVERY, [appId, ruleId, channel, setting, JSON.stringify(body), status, detail]);
    if (channel !== "email") {
      await storeDelivery("queued", null);
      await rows(executor, `SELECT pg_notify('${QUEUED_ALERT_CHANNEL}', '')`);
      return;
    }
    const receipt = await queueAppEmail(executor, appId, { to, subject: body.text, text: composeMailText(body) });
    await storeDelivery("outbox", `message ${receipt.id}`);
  };
}
