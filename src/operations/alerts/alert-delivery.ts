/**
 * Sends alerts to webhooks and Slack. Repeats attempts that failed temporarily, for up to a day. So a receiver can get a message twice,
 * with the same ID. Stores the status of each response, but not its body.
 */

import type { Logger } from "pino";
import { type Db, rows } from "../../data/database.js";
import { type AddressCheckedConnections, NotConnectedError } from "../../engine/checked-connections.js";
import { ActionError } from "../../errors.js";
import { type AlertChannel, type AlertWebhook, parseAlertWebhook } from "../../rules/alert-input.js";
import { createBodySignature } from "../communicate/sms-delivery.js";
import { DeliveryTracker } from "../delivery-tracker.js";
import type { Settings } from "../settings/settings.js";
import { type AlertBody, composeSlackBody } from "./alert-texts.js";

/** Maximum number of alert messages that this process sends at the same time. */
const DELIVERY_SLOTS = 20;
/**
 * Maximum number of alert messages of one app that this process sends at once. So hosts that never respond cannot occupy all slots.
 */
const DELIVERIES_PER_APP = 4;
/** Time for which a claimed alert message is reserved for this process. One attempt to send the message never takes longer. */
const CLAIM_DURATION = "interval '60 seconds'";
const FIRST_RETRY_DELAY_SECONDS = 15;
const MAX_RETRY_DELAY_SECONDS = 3_600;

/**
 * Claims due messages: only the oldest queued message of each rule, so that messages arrive in order. $1 is the maximum number of messages.
 * $2 are app IDs. $3 are the numbers of messages that this process is sending for these apps; they count toward DELIVERIES_PER_APP.
 */
const CLAIM_DELIVERIES = `
  UPDATE alert_delivery SET due_at = now() + ${CLAIM_DURATION}, attempts = attempts + 1
   WHERE id IN (
     SELECT delivery.id FROM alert_delivery AS delivery
       JOIN (SELECT id, row_number() OVER (PARTITION BY app_id ORDER BY due_at) + coalesce(busy.sending, 0) AS place
               FROM alert_delivery AS first LEFT JOIN unnest($2::bigint[], $3::int[]) AS busy (app_id, sending) USING (app_id)
              WHERE status = 'queued' AND due_at <= now()
                AND NOT EXISTS (SELECT FROM alert_delivery AS older
                                 WHERE older.rule_id = first.rule_id AND older.status = 'queued' AND older.id < first.id)
            ) AS turn USING (id)
      WHERE delivery.status = 'queued' AND delivery.due_at <= now() AND turn.place <= ${DELIVERIES_PER_APP}
      ORDER BY turn.place LIMIT $1 FOR UPDATE OF delivery SKIP LOCKED)
  RETURNING id, app_id AS "appId", channel, setting, body, attempts, give_up_at <= now() AS "isLastAttempt"`;

const STORE_DELIVERY_OUTCOME = `
  UPDATE alert_delivery SET status = $2, detail = $3,
         due_at = CASE WHEN $2 = 'queued' THEN now() + $4::int * interval '1 second' END
   WHERE id = $1 AND status = 'queued'`;

interface ClaimedDelivery {
  id: number;
  appId: number;
  channel: AlertChannel;
  setting: string;
  body: AlertBody;
  attempts: number;
  isLastAttempt: boolean;
}

type DeliveryOutcome = { status: "sent" | "failed" | "queued"; detail: string };

interface AlertDelivererOptions {
  db: Db;
  settings: Settings;
  connections: AddressCheckedConnections;
  allowHttp: boolean;
  log: Logger;
}

export class AlertDeliverer {
  private readonly deliveries = new DeliveryTracker(DELIVERY_SLOTS);

  constructor(private readonly options: AlertDelivererOptions) {}

  private async postAlert(
    { id, body, channel }: ClaimedDelivery,
    { url, secret }: AlertWebhook,
  ): Promise<DeliveryOutcome> {
    const text = JSON.stringify(channel === "slack" ? composeSlackBody(body) : { id, ...body });
    const headers = {
      "content-type": "application/json",
      "idempotency-key": `alert-${id}`,
      ...(secret !== null && { "svc-signature": createBodySignature(secret, text, Math.floor(Date.now() / 1000)) }),
    };
    const { status } = await this.options.connections.request(url, {
      method: "POST",
      headers,
      body: text,
      signal: this.deliveries.signal,
    });
    if (status >= 200 && status < 300) return { status: "sent", detail: `HTTP ${status}` };
    const isPermanent = status < 500 && ![408, 425, 429].includes(status);
    return { status: isPermanent ? "failed" : "queued", detail: `HTTP ${status}` };
  }

  /** Tries once to send the message. */
  private async attemptDelivery(delivery: ClaimedDelivery): Promise<DeliveryOutcome> {
    try {
      return await this.postAlert(
        delivery,
        await this.readDestination(delivery.appId, delivery.setting, delivery.channel),
      );
    } catch (error) {
      if (error instanceof ActionError) return { status: "failed", detail: error.message };
      if (error instanceof NotConnectedError && error.forbidden) return { status: "failed", detail: error.message };
      // The webhook's URL is a secret, and messages of errors may contain it. Only messages of NotConnectedError never do.
      const detail = error instanceof NotConnectedError ? error.message : "the host did not respond";
      return { status: "queued", detail };
    }
  }

  private async sendDelivery(delivery: ClaimedDelivery): Promise<void> {
    const outcome = await this.attemptDelivery(delivery);
    const status = outcome.status === "queued" && delivery.isLastAttempt ? "failed" : outcome.status;
    const retryDelaySeconds = Math.min(
      MAX_RETRY_DELAY_SECONDS,
      FIRST_RETRY_DELAY_SECONDS * 2 ** Math.min(delivery.attempts - 1, 10),
    );
    // If this process is stopping, a message that was not sent is due again at once, so that another process can send it without delay.
    await rows(this.options.db, STORE_DELIVERY_OUTCOME, [
      delivery.id,
      status,
      outcome.detail,
      this.deliveries.signal.aborted ? 0 : retryDelaySeconds,
    ]);
  }

  private startDelivery(delivery: ClaimedDelivery): void {
    const logStoreFailure = (err: unknown) =>
      this.options.log.warn({ err, deliveryId: delivery.id }, "the outcome of an alert could not be stored");
    this.deliveries.trackDelivery(delivery, this.sendDelivery(delivery).catch(logStoreFailure));
  }

  /**
   * Reads the URL and the secret of an alert's destination from the app's setting.
   * @throws REQUEST_INVALID whose message names the setting and the missing value
   */
  async readDestination(appId: number, setting: string, channel: AlertChannel): Promise<AlertWebhook> {
    const { settings, allowHttp } = this.options;
    const value = (await settings.readAll(appId)).get(setting);
    return parseAlertWebhook(setting, value, channel, { allowHttp });
  }

  /**
   * Starts to send alert messages that are due, while slots are free. Always returns null instead of the time of the
   * next call, because this time is unknown.
   */
  async sendDueAlerts(): Promise<null> {
    for (let freeSlots = this.deliveries.countFree(); freeSlots > 0; freeSlots = this.deliveries.countFree()) {
      const claimedDeliveries = await rows<ClaimedDelivery>(this.options.db, CLAIM_DELIVERIES, [
        freeSlots,
        ...this.deliveries.countByApp(),
      ]);
      for (const delivery of claimedDeliveries) this.startDelivery(delivery);
      if (claimedDeliveries.length === 0) break;
    }
    return null;
  }

  onDeliveryEnd(listener: () => void): void {
    this.deliveries.onDeliveryEnd(listener);
  }

  drain(forceStop: AbortSignal): Promise<void> {
    return this.deliveries.drain(forceStop);
  }
}
