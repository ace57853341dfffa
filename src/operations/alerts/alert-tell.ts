/**
 * Queues the messages of an alert: an e-mail goes to the app's outbox, a webhook becomes a delivery row. Both are in the transaction that
 * changes the rule's state. Sends nothing itself.
 */
import { type Executor, rows } from "../../data/database.js";
import type { AlertChannel } from "../../rules/alert-input.js";
import type { Notice } from "../communicate/notices.js";
import { ALERT_CHANNEL } from "./alert-rows.js";
import { type AlertFacts, alertBody, mailText } from "./alert-texts.js";

/** Recipients of a rule. */
export interface AlertAudience {
  channel: AlertChannel;
  to: readonly string[];
  setting: string | null;
}

export type AlertTell = (executor: Executor, audience: AlertAudience, facts: AlertFacts) => Promise<void>;

const KEEP = `
  INSERT INTO alert_delivery (app_id, rule_id, channel, setting, body, status, detail, due_at, give_up_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $6 = 'queued' THEN now() END, now() + interval '24 hours')`;

export function createAlertTell(options: { notice: Notice; baseUrl: string }): AlertTell {
  const { notice, baseUrl } = options;
  return async (executor, { channel, to, setting }, facts) => {
    const body = alertBody(facts, baseUrl);
    const { appId, id: ruleId } = facts.rule;
    const keep = (status: string, detail: string | null) =>
      rows(executor, KEEP, [appId, ruleId, channel, setting, JSON.stringify(body), status, detail]);
    if (channel !== "email") {
      await keep("queued", null);
      await rows(executor, `SELECT pg_notify('${ALERT_CHANNEL}', '')`);
      return;
    }
    const receipt = await notice(executor, appId, { to, subject: body.text, text: mailText(body) });
    await keep("outbox", `message ${receipt.id}`);
  };
}
