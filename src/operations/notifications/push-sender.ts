/**
 * Sends notifications by Web Push. A published notification becomes one delivery row for each device. The sender leases
 * a row and deletes it when the push message has been sent. After a crash, the message is sent again, because it is
 * unknown whether it was sent; because of its topic and tag, the device shows it only once.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { type CheckedConnections, NotConnectedError } from "../../engine/checked-connections.js";
import { createPushRequest } from "../../engine/push-message.js";
import { isUserInScope, type Scope } from "../../rules/scope.js";
import { createRunningDeliveries } from "../running-deliveries.js";
import { usersOf } from "./reader.js";
import type { VapidKeysOf } from "./vapid-keys.js";

const PUSH_SLOTS = 50;
/**
 * Maximum number of push messages of one app that are sent at once, so that push services that never respond do not
 * block other apps.
 */
const DELIVERIES_PER_APP = 10;
const DEVICES_PER_STATEMENT = 1_000;
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 30_000;
/** Statuses with which a push service reports that the device has unsubscribed. */
const GONE_STATUSES = [404, 410];
const REFUSED_FOR_NOW = [429, 500, 502, 503, 504];

const NEXT_WISH = `
  SELECT id, app_id AS "appId", scope FROM notification WHERE push_at <= $1
   ORDER BY push_at LIMIT 1 FOR UPDATE SKIP LOCKED`;
const SELECT_DEVICES = `
  SELECT id, reader FROM push_subscription WHERE app_id = $1 AND id > $2 ORDER BY id LIMIT ${DEVICES_PER_STATEMENT}`;
const INSERT_DELIVERIES = `
  INSERT INTO push_delivery (notification_id, subscription_id, due_at) SELECT $1, id, $3 FROM unnest($2::bigint[]) AS wanted (id)`;

/**
 * Claims deliveries. $1 is the time, $2 the limit, $3 are apps, $4 their numbers of deliveries in progress, $5 is the
 * holder.
 */
const CLAIM_DELIVERIES = `
  WITH first AS (
    SELECT delivery.id, subscription.app_id, delivery.due_at
      FROM push_delivery AS delivery JOIN push_subscription AS subscription ON subscription.id = subscription_id
     WHERE delivery.holder IS NULL AND delivery.due_at <= $1
       AND NOT EXISTS (SELECT FROM unnest($3::bigint[], $4::int[]) AS busy (app_id, sending)
                        WHERE busy.app_id = subscription.app_id AND sending >= ${DELIVERIES_PER_APP})
     ORDER BY delivery.due_at LIMIT 1000),
  turn AS (
    SELECT id, row_number() OVER (PARTITION BY app_id ORDER BY due_at) + coalesce(busy.sending, 0) AS place
      FROM first LEFT JOIN unnest($3::bigint[], $4::int[]) AS busy (app_id, sending) USING (app_id)),
  chosen AS (
    SELECT push_delivery.id FROM push_delivery JOIN turn USING (id) WHERE place <= ${DELIVERIES_PER_APP} AND holder IS NULL
     ORDER BY place LIMIT $2 FOR UPDATE OF push_delivery SKIP LOCKED),
  taken AS (
    UPDATE push_delivery SET holder = $5, claimed_at = now(), attempts = attempts + 1
      FROM chosen WHERE push_delivery.id = chosen.id RETURNING push_delivery.*)
  SELECT taken.id, taken.notification_id AS "notificationId", taken.subscription_id AS "subscriptionId", taken.attempts,
         notification.app_id AS "appId", notification.data, notification.push->'payload' AS payload, device.endpoint, device.p256dh, device.auth
    FROM taken JOIN notification ON notification.id = taken.notification_id
               JOIN push_subscription AS device ON device.id = taken.subscription_id`;
const DELETE_DELIVERY = "DELETE FROM push_delivery WHERE id = $1 AND holder = $2";
const POSTPONE_DELIVERY = "UPDATE push_delivery SET holder = NULL, due_at = $3 WHERE id = $1 AND holder = $2";
/**
 * Releases deliveries that the holder $1 has claimed and is not sending, because the response to the claim was lost. $2
 * are the deliveries that the holder is sending. $3 is true if processes with an expired lease are dead. Deletes
 * deliveries that had too many attempts.
 */
const RELEASE_DELIVERIES = `
  WITH lost AS (
    SELECT id FROM push_delivery
     WHERE holder IS NOT NULL AND
           (($3 AND NOT EXISTS (SELECT FROM instance WHERE instance.id = holder AND lease_until >= now()))
            OR (holder = $1 AND id <> ALL ($2::bigint[]) AND claimed_at < now() - interval '10 seconds'))),
  given_up AS (DELETE FROM push_delivery USING lost WHERE push_delivery.id = lost.id AND attempts >= ${ATTEMPTS})
  UPDATE push_delivery SET holder = NULL FROM lost WHERE push_delivery.id = lost.id AND attempts < ${ATTEMPTS} RETURNING push_delivery.id`;
const NEXT = `SELECT least((SELECT min(push_at) FROM notification WHERE push_at IS NOT NULL),
                           (SELECT min(due_at) FROM push_delivery WHERE holder IS NULL)) AS next`;

interface PushDelivery {
  id: number;
  notificationId: number;
  subscriptionId: number;
  attempts: number;
  appId: number;
  data: Record<string, unknown>;
  payload: Record<string, unknown>;
  endpoint: string;
  p256dh: string;
  auth: string;
}

export type PushSender = ReturnType<typeof createPushSender>;

export function createPushSender(options: {
  db: DataSource;
  keysOf: VapidKeysOf;
  connections: CheckedConnections;
  /** Contact for push services, as a `mailto:` or `https:` URL. */
  subject: string;
  /** ID of this process in the deliveries that it holds. */
  holder: string;
  now: () => number;
  log: Logger;
}) {
  const { db, keysOf, connections, subject, holder, now, log } = options;
  const deliveries = createRunningDeliveries(PUSH_SLOTS);

  /** Creates the deliveries of one due notification. Returns false if none is due. */
  async function createDeliveries(): Promise<boolean> {
    return db.transaction(async (manager) => {
      const moment = new Date(now());
      const [wish] = await rows<{ id: number; appId: number; scope: Scope | null }>(manager, NEXT_WISH, [moment]);
      if (!wish) return false;
      for (let last = 0; ; ) {
        const devices = await rows<{ id: number; reader: string }>(manager, SELECT_DEVICES, [wish.appId, last]);
        const isForAll = wish.scope === null;
        const users = isForAll
          ? null
          : await usersOf(
              manager,
              wish.appId,
              devices.map(({ reader }) => reader),
            );
        const wantedDevices = devices
          .filter(({ reader }) => isUserInScope(wish.scope, users?.get(reader) ?? null))
          .map(({ id }) => id);
        await rows(manager, INSERT_DELIVERIES, [wish.id, wantedDevices, moment]);
        if (devices.length < DEVICES_PER_STATEMENT) break;
        last = devices.at(-1)!.id;
      }
      await rows(manager, "UPDATE notification SET push_at = NULL WHERE id = $1", [wish.id]);
      return true;
    });
  }

  function payloadOf({ notificationId, data, payload }: PushDelivery): string {
    const { title, message, navigate } = data;
    return JSON.stringify({ title, body: message, navigate, ...payload, notificationId });
  }

  async function postPush(delivery: PushDelivery): Promise<"done" | "gone" | "later"> {
    try {
      const keys = await keysOf(delivery.appId);
      const topic = `svc-${delivery.notificationId}`;
      const { url, headers, body } = createPushRequest(delivery, payloadOf(delivery), { ...keys, subject, topic });
      const { status } = await connections.request(url, { method: "POST", headers, body, signal: deliveries.signal });
      if (GONE_STATUSES.includes(status)) return "gone";
      return REFUSED_FOR_NOW.includes(status) ? "later" : "done";
    } catch (error) {
      return error instanceof NotConnectedError && error.forbidden ? "done" : "later";
    }
  }

  async function sendPush(delivery: PushDelivery): Promise<void> {
    const outcome = await postPush(delivery);
    const { id, subscriptionId, attempts } = delivery;
    if (outcome === "gone") await rows(db, "DELETE FROM push_subscription WHERE id = $1", [subscriptionId]);
    else if (outcome === "later" && attempts < ATTEMPTS) {
      // A process that stops releases its running deliveries, so that the next process need not wait for the lease.
      const pause = deliveries.signal.aborted ? 0 : FIRST_PAUSE_MS * 2 ** (attempts - 1);
      await rows(db, POSTPONE_DELIVERY, [id, holder, new Date(now() + pause)]);
    } else await rows(db, DELETE_DELIVERY, [id, holder]);
  }

  function startPush(delivery: PushDelivery): void {
    // If the outcome cannot be stored, the delivery is released when the lease expires.
    const logUnsettled = (err: unknown) => log.warn({ err }, "the outcome of a push message could not be stored");
    deliveries.trackDelivery(delivery, sendPush(delivery).catch(logUnsettled));
  }

  return {
    whenFree: deliveries.whenFree,

    /** Sends due push messages. Returns the Unix time in milliseconds of the next due message, or null. */
    async sendDue(): Promise<number | null> {
      while (await createDeliveries());
      for (let freeSlots = deliveries.free(); freeSlots > 0; freeSlots = deliveries.free()) {
        const claimedDeliveries = await rows<PushDelivery>(db, CLAIM_DELIVERIES, [
          new Date(now()),
          freeSlots,
          ...deliveries.byApp(),
          holder,
        ]);
        for (const delivery of claimedDeliveries) startPush(delivery);
        if (claimedDeliveries.length === 0) break;
      }
      const [row] = await rows<{ next: Date | null }>(db, NEXT);
      const next = row!.next?.getTime() ?? null;
      return next !== null && next > now() ? next : null;
    },

    /**
     * Releases deliveries for which the response to this process's claim was lost. If `mayDeclareDead` is true, also
     * releases the deliveries of dead processes.
     */
    async recover(mayDeclareDead: boolean): Promise<void> {
      const releasedDeliveries = await rows(db, RELEASE_DELIVERIES, [holder, deliveries.ids(), mayDeclareDead]);
      if (releasedDeliveries.length > 0)
        log.warn({ count: releasedDeliveries.length }, "released push messages whose sending process has stopped");
    },

    drain: deliveries.drain,
  };
}
