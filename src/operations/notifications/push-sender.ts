/**
 * Web Push: what was published becomes one delivery for each device that it is for, and each delivery one message. A delivery's row goes
 * before the message does, so that none arrives twice by us; what a process had in hand when it died is lost.
 */
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { rows } from "../../data/database.js";
import { type CheckedConnections, NotConnectedError } from "../../engine/checked-connections.js";
import { pushRequest } from "../../engine/push-message.js";
import { inScope, type Scope, type ScopeUser } from "../../rules/scope.js";
import type { VapidKeysOf } from "./vapid-keys.js";

const PLACES = 50;
/** Of one app at once: push services that never answer must not keep the others waiting. */
const PLACES_PER_APP = 10;
const DEVICES_TOGETHER = 1_000;
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 30_000;
/** The device does not want it any longer. */
const GONE = [404, 410];
const REFUSED_FOR_NOW = [429, 500, 502, 503, 504];

const NEXT_WISH = `
  SELECT id, app_id AS "appId", scope FROM notification WHERE push_at <= $1
   ORDER BY push_at LIMIT 1 FOR UPDATE SKIP LOCKED`;
const DEVICES = `
  SELECT id, reader_user AS "user" FROM push_subscription WHERE app_id = $1 AND id > $2 ORDER BY id LIMIT ${DEVICES_TOGETHER}`;
const DELIVER = `
  INSERT INTO push_delivery (notification_id, subscription_id, due_at) SELECT $1, id, $3 FROM unnest($2::bigint[]) AS wanted (id)`;

/* $1 the moment, $2 how many, $3 apps and $4 how many each has in hand. */
const CLAIM = `
  WITH first AS (
    SELECT delivery.id, subscription.app_id, delivery.due_at
      FROM push_delivery AS delivery JOIN push_subscription AS subscription ON subscription.id = subscription_id
     WHERE delivery.due_at <= $1 ORDER BY delivery.due_at LIMIT 1000),
  turn AS (
    SELECT id, row_number() OVER (PARTITION BY app_id ORDER BY due_at) + coalesce(busy.held, 0) AS place
      FROM first LEFT JOIN unnest($3::bigint[], $4::int[]) AS busy (app_id, held) USING (app_id)),
  chosen AS (
    SELECT push_delivery.id FROM push_delivery JOIN turn USING (id) WHERE place <= ${PLACES_PER_APP}
     ORDER BY place LIMIT $2 FOR UPDATE OF push_delivery SKIP LOCKED),
  taken AS (DELETE FROM push_delivery USING chosen WHERE push_delivery.id = chosen.id RETURNING push_delivery.*)
  SELECT taken.notification_id AS "notificationId", taken.subscription_id AS "subscriptionId", taken.attempts,
         one.app_id AS "appId", one.data, one.push->'payload' AS payload, device.endpoint, device.p256dh, device.auth
    FROM taken JOIN notification AS one ON one.id = taken.notification_id
               JOIN push_subscription AS device ON device.id = taken.subscription_id`;
const AGAIN = `
  INSERT INTO push_delivery (notification_id, subscription_id, attempts, due_at)
  SELECT one.id, device.id, $3, $4 FROM notification AS one, push_subscription AS device WHERE one.id = $1 AND device.id = $2`;
const NEXT = `SELECT least((SELECT min(push_at) FROM notification WHERE push_at IS NOT NULL),
                           (SELECT min(due_at) FROM push_delivery)) AS next`;

interface Delivery {
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
  /** `mailto:` or `https:`, whom a push service may turn to. */
  subject: string;
  now: () => number;
  log: Logger;
}) {
  const { db, keysOf, connections, subject, now, log } = options;
  const inHand = new Map<Promise<void>, number>();
  const stopped = new AbortController();
  let onFree: () => void = () => undefined;

  /** Makes the deliveries of one notification whose time has come; false when there is none. */
  async function spread(): Promise<boolean> {
    return db.transaction(async (manager) => {
      const moment = new Date(now());
      const [wish] = await rows<{ id: number; appId: number; scope: Scope | null }>(manager, NEXT_WISH, [moment]);
      if (!wish) return false;
      for (let last = 0; ; ) {
        const devices = await rows<{ id: number; user: ScopeUser }>(manager, DEVICES, [wish.appId, last]);
        const wanted = devices.filter(({ user }) => inScope(wish.scope, user)).map(({ id }) => id);
        await rows(manager, DELIVER, [wish.id, wanted, moment]);
        if (devices.length < DEVICES_TOGETHER) break;
        last = devices.at(-1)!.id;
      }
      await rows(manager, "UPDATE notification SET push_at = NULL WHERE id = $1", [wish.id]);
      return true;
    });
  }

  function payloadOf({ notificationId, data, payload }: Delivery): string {
    const { title, message, navigate } = data;
    return JSON.stringify({ title, body: message, navigate, ...payload, notificationId });
  }

  async function post(delivery: Delivery): Promise<"done" | "gone" | "later"> {
    try {
      const keys = await keysOf(delivery.appId);
      const { url, headers, body } = pushRequest(delivery, payloadOf(delivery), { ...keys, subject });
      const { status } = await connections.request(url, { method: "POST", headers, body, signal: stopped.signal });
      if (GONE.includes(status)) return "gone";
      return REFUSED_FOR_NOW.includes(status) ? "later" : "done";
    } catch (error) {
      // After the request began nobody knows whether it was taken.
      return error instanceof NotConnectedError && !error.forbidden ? "later" : "done";
    }
  }

  async function send(delivery: Delivery): Promise<void> {
    const outcome = await post(delivery);
    const { notificationId, subscriptionId, attempts } = delivery;
    if (outcome === "gone") await rows(db, "DELETE FROM push_subscription WHERE id = $1", [subscriptionId]);
    if (outcome !== "later" || attempts + 1 >= ATTEMPTS) return;
    const due = new Date(now() + FIRST_PAUSE_MS * 2 ** attempts);
    await rows(db, AGAIN, [notificationId, subscriptionId, attempts + 1, due]);
  }

  function begin(delivery: Delivery): void {
    const sending = send(delivery)
      .catch((error: unknown) => log.warn({ err: error }, "a push message was given up"))
      .finally(() => {
        inHand.delete(sending);
        onFree();
      });
    inHand.set(sending, delivery.appId);
  }

  async function claim(free: number): Promise<Delivery[]> {
    const held = new Map<number, number>();
    for (const appId of inHand.values()) held.set(appId, (held.get(appId) ?? 0) + 1);
    return rows(db, CLAIM, [new Date(now()), free, [...held.keys()], [...held.values()]]);
  }

  return {
    /** To be called where a place becomes free. */
    whenFree(listener: () => void): void {
      onFree = listener;
    },

    /** Sends what is due. Answers with the Unix time in milliseconds of what is due next, or null. */
    async look(): Promise<number | null> {
      while (await spread());
      for (let free = PLACES; free > 0 && !stopped.signal.aborted; free = PLACES - inHand.size) {
        const claimed = await claim(PLACES - inHand.size);
        for (const delivery of claimed) begin(delivery);
        if (claimed.length === 0) break;
      }
      const [row] = await rows<{ next: Date | null }>(db, NEXT);
      const next = row!.next?.getTime() ?? null;
      return next !== null && next > now() ? next : null;
    },

    /** Resolves when what is in hand has ended; after `impatient` it is given up. */
    async drain(impatient: AbortSignal): Promise<void> {
      if (impatient.aborted) stopped.abort();
      impatient.addEventListener("abort", () => stopped.abort(), { once: true });
      await Promise.all(inHand.keys());
    },
  };
}
