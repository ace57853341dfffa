/**
 * Sends alerts to webhooks and to Slack: each is tried until somebody takes it, for a day, and may come twice under the same id. Goes to
 * public addresses alone, and keeps of an answer no more than its status.
 */

import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { type CheckedConnections, NotConnectedError } from "../../engine/checked-connections.js";
import { ActionError } from "../../errors.js";
import { type AlertChannel, type AlertDestination, alertDestination } from "../../rules/alert-input.js";
import { signature } from "../communicate/sms-delivery.js";
import type { Settings } from "../settings/settings.js";
import { type AlertBody, slackBody } from "./alert-texts.js";

/** Of one look. */
const AT_ONCE = 20;
/** Longer than a try may take: until then it is nobody else's. */
const HELD = "interval '60 seconds'";
const FIRST_PAUSE_SECONDS = 15;
const LONGEST_PAUSE_SECONDS = 3_600;

/* Of each rule the oldest alone, so that what it says comes in order; of apps those with the fewest before them first. */
const CLAIM = `
  UPDATE alert_delivery SET due_at = now() + ${HELD}, attempts = attempts + 1
   WHERE id IN (
     SELECT delivery.id FROM alert_delivery AS delivery
       JOIN (SELECT id, row_number() OVER (PARTITION BY app_id ORDER BY due_at) AS place
               FROM alert_delivery AS first
              WHERE status = 'queued' AND due_at <= now()
                AND NOT EXISTS (SELECT FROM alert_delivery AS older
                                 WHERE older.rule_id = first.rule_id AND older.status = 'queued' AND older.id < first.id)
            ) AS turn USING (id)
      WHERE delivery.status = 'queued' AND delivery.due_at <= now()
      ORDER BY turn.place LIMIT ${AT_ONCE} FOR UPDATE OF delivery SKIP LOCKED)
  RETURNING id, app_id AS "appId", channel, setting, body, attempts, give_up_at <= now() AS "isLast"`;

const SETTLE = `
  UPDATE alert_delivery SET status = $2, detail = $3,
         due_at = CASE WHEN $2 = 'queued' THEN now() + $4::int * interval '1 second' END
   WHERE id = $1 AND status = 'queued'`;

interface Claimed {
  id: number;
  appId: number;
  channel: AlertChannel;
  setting: string;
  body: AlertBody;
  attempts: number;
  isLast: boolean;
}

type Outcome = { status: "sent" | "failed" | "queued"; detail: string };

export type AlertDelivery = ReturnType<typeof createAlertDelivery>;

export function createAlertDelivery(options: {
  db: DataSource;
  settings: Settings;
  connections: CheckedConnections;
  allowHttp: boolean;
  log: Logger;
}) {
  const { db, settings, connections, allowHttp, log } = options;
  let stopping = false;

  /** @throws REQUEST_INVALID that names the setting and what it lacks */
  async function destination(appId: number, setting: string, channel: AlertChannel): Promise<AlertDestination> {
    const value = (await settings.backend(appId)).get(setting);
    return alertDestination(setting, value, channel, { allowHttp });
  }

  async function post({ id, body, channel }: Claimed, { url, secret }: AlertDestination): Promise<Outcome> {
    const text = JSON.stringify(channel === "slack" ? slackBody(body) : { id, ...body });
    const headers = {
      "content-type": "application/json",
      "idempotency-key": `alert-${id}`,
      ...(secret !== null && { "svc-signature": signature(secret, text, Math.floor(Date.now() / 1000)) }),
    };
    const { status } = await connections.request(url, { method: "POST", headers, body: text });
    if (status >= 200 && status < 300) return { status: "sent", detail: `HTTP ${status}` };
    const isForGood = status < 500 && ![408, 425, 429].includes(status);
    return { status: isForGood ? "failed" : "queued", detail: `HTTP ${status}` };
  }

  async function outcomeOf(one: Claimed): Promise<Outcome> {
    try {
      return await post(one, await destination(one.appId, one.setting, one.channel));
    } catch (error) {
      if (error instanceof ActionError) return { status: "failed", detail: error.message };
      if (error instanceof NotConnectedError && error.forbidden) return { status: "failed", detail: error.message };
      // The address is a secret of its own, and may be in what other errors say.
      const detail = error instanceof NotConnectedError ? error.message : "the host gave no answer";
      return { status: "queued", detail };
    }
  }

  async function send(one: Claimed): Promise<void> {
    const outcome = await outcomeOf(one);
    const status = outcome.status === "queued" && one.isLast ? "failed" : outcome.status;
    const pause = Math.min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** Math.min(one.attempts - 1, 10));
    await rows(db, SETTLE, [one.id, status, outcome.detail, pause]);
  }

  return {
    destination,

    /** Sends what is due. Answers when more may be, as Unix time in milliseconds; null when nothing waits. */
    async look(): Promise<number | null> {
      while (!stopping) {
        const claimed = await rows<Claimed>(db, CLAIM);
        if (claimed.length === 0) break;
        await Promise.all(
          claimed.map((one) =>
            send(one).catch((err) => log.warn({ err, deliveryId: one.id }, "an alert could not be settled")),
          ),
        );
      }
      return null;
    },

    stop(): void {
      stopping = true;
    },
  };
}
