/**
 * Sends notifications to devices by Web Push. A published notification with push options becomes one row in push_delivery for each device
 * whose user can read it. A message can be sent twice after a crash; the device then shows it once, because both have the same topic and
 * tag.
 */
import type { Logger } from "pino";
import { type Db, isDatabaseUnavailable, rows, type SqlClient } from "../../data/database.js";
import { type AddressCheckedConnections, NotConnectedError } from "../../engine/checked-connections.js";
import { createPushRequest } from "../../engine/push-message.js";
import type { NotificationScope } from "../../rules/notification-scope.js";
import { DeliveryTracker } from "../delivery-tracker.js";
import { type FailedPush, type PushFailure, PushFailureLog } from "./push-failure-log.js";
import type { FindCredentialsInScope } from "./reader.js";
import type { ReadOrCreateVapidKeys } from "./vapid-keys.js";

const CONCURRENT_PUSHES_MAX = 50;
/** Maximum push messages of one app in progress, so that push services that do not respond do not delay other apps. */
const CONCURRENT_PUSHES_PER_APP_MAX = 10;
const DEVICES_PER_STATEMENT = 1_000;
const SEND_ATTEMPTS_MAX = 5;
const FIRST_RETRY_DELAY_MS = 30_000;
/** HTTP statuses with which a push service reports that the device no longer has this subscription. */
const UNSUBSCRIBED_HTTP_STATUSES = [404, 410];
const RETRYABLE_HTTP_STATUSES = [408, 425, 429, 500, 502, 503, 504];

const SELECT_NOTIFICATION_TO_PUSH = `
  SELECT id, app_id AS "appId", scope FROM notification WHERE push_at <= $1 AND app_id <> ALL ($2::bigint[])
   ORDER BY push_at LIMIT 1 FOR UPDATE SKIP LOCKED`;
const SELECT_DEVICES = `
  SELECT id, credential_id AS "credentialId" FROM push_subscription
   WHERE app_id = $1 AND id > $2 ORDER BY id LIMIT ${DEVICES_PER_STATEMENT}`;
const INSERT_DELIVERIES = `
  INSERT INTO push_delivery (notification_id, subscription_id, due_at) SELECT $1, id, $3 FROM unnest($2::bigint[]) AS wanted (id)`;

/**
 * Claims up to $2 deliveries that are due at $1 for the process $5. The arrays $3 (app IDs) and $4 (numbers) say how many messages of each
 * app the process is already sending.
 */
const CLAIM_DELIVERIES = `
  WITH first AS (
    SELECT delivery.id, subscription.app_id, delivery.due_at
      FROM push_delivery AS delivery JOIN push_subscription AS subscription ON subscription.id = subscription_id
     WHERE delivery.holder IS NULL AND delivery.due_at <= $1
       AND NOT EXISTS (SELECT FROM unnest($3::bigint[], $4::int[]) AS busy (app_id, sending)
                        WHERE busy.app_id = subscription.app_id AND sending >= ${CONCURRENT_PUSHES_PER_APP_MAX})
     ORDER BY delivery.due_at LIMIT 1000),
  turn AS (
    SELECT id, row_number() OVER (PARTITION BY app_id ORDER BY due_at) + coalesce(busy.sending, 0) AS place
      FROM first LEFT JOIN unnest($3::bigint[], $4::int[]) AS busy (app_id, sending) USING (app_id)),
  chosen AS (
    SELECT push_delivery.id FROM push_delivery JOIN turn USING (id) WHERE place <= ${CONCURRENT_PUSHES_PER_APP_MAX} AND holder IS NULL
     ORDER BY place LIMIT $2 FOR UPDATE OF push_delivery SKIP LOCKED),
  taken AS (
    UPDATE push_delivery SET holder = $5, claimed_at = now(), attempts = attempts + 1
      FROM chosen WHERE push_delivery.id = chosen.id RETURNING push_delivery.*)
  SELECT taken.id, taken.notification_id AS "notificationId", taken.subscription_id AS "subscriptionId", taken.attempts,
         notification.app_id AS "appId", notification.data, notification.push->'payload' AS payload, notification.scope,
         device.credential_id AS "credentialId", device.endpoint, device.p256dh, device.auth
    FROM taken JOIN notification ON notification.id = taken.notification_id
               JOIN push_subscription AS device ON device.id = taken.subscription_id`;
const DELETE_DELIVERY = "DELETE FROM push_delivery WHERE id = $1 AND holder = $2";
const POSTPONE_DELIVERY = `
  UPDATE push_delivery SET holder = NULL, due_at = $3, attempts = attempts - $4 WHERE id = $1 AND holder = $2`;
/**
 * Releases deliveries that the process $1 has claimed but is not sending. $2 are the IDs of the deliveries that it is sending. If $3 is
 * true, also releases the deliveries of dead processes. Subtracts the attempt from the deliveries $4, which the process $1 never tried to
 * send. Deletes a delivery without attempts left.
 */
const RELEASE_DELIVERIES = `
  WITH lost AS (
    SELECT delivery.id, app_id, endpoint, attempts - (holder = $1 AND delivery.id = ANY ($4::bigint[]))::int AS attempts
      FROM push_delivery AS delivery JOIN push_subscription AS device ON device.id = subscription_id
     WHERE holder IS NOT NULL AND
           (($3 AND NOT EXISTS (SELECT FROM instance WHERE instance.id = holder AND lease_until >= now()))
            OR (holder = $1 AND delivery.id <> ALL ($2::bigint[])
                AND (delivery.id = ANY ($4::bigint[]) OR claimed_at < now() - interval '10 seconds')))),
  given_up AS (
    DELETE FROM push_delivery USING lost WHERE push_delivery.id = lost.id AND lost.attempts >= ${SEND_ATTEMPTS_MAX}
    RETURNING app_id, endpoint),
  released AS (
    UPDATE push_delivery SET holder = NULL, attempts = lost.attempts FROM lost
     WHERE push_delivery.id = lost.id AND lost.attempts < ${SEND_ATTEMPTS_MAX} RETURNING app_id, endpoint)
  SELECT app_id AS "appId", endpoint, true AS "isGivenUp" FROM given_up
  UNION ALL SELECT app_id, endpoint, false FROM released`;
const SELECT_NEXT_DUE_TIME = `SELECT least((SELECT min(push_at) FROM notification WHERE push_at IS NOT NULL),
                           (SELECT min(due_at) FROM push_delivery WHERE holder IS NULL)) AS next`;

interface PushTarget {
  /** Credential of the page that subscribed the device; null if this credential no longer exists. */
  credentialId: number | null;
}

interface PushDelivery extends PushTarget {
  id: number;
  notificationId: number;
  subscriptionId: number;
  attempts: number;
  appId: number;
  data: Record<string, unknown>;
  payload: Record<string, unknown>;
  scope: NotificationScope | null;
  endpoint: string;
  p256dh: string;
  auth: string;
}

/**
 * Outcome of sending a push message. `gone` means that the device has unsubscribed. `unattempted` means that the service did not send the
 * message, because the database was unavailable. Only `failed` and `unattempted` are tried again.
 */
type PushOutcome =
  | { kind: "delivered" | "gone" | "unattempted" }
  | { kind: "rejected" | "failed"; failure: PushFailure };

interface PushSenderOptions {
  db: Db;
  readVapidKeys: ReadOrCreateVapidKeys;
  findCredentialsInScope: FindCredentialsInScope;
  connections: AddressCheckedConnections;
  /** Contact of the service's operator for push services, as a `mailto:` or `https:` URL. */
  subject: string;
  processId: string;
  now: () => number;
  log: Logger;
}

function createPayload({ notificationId, data, payload }: PushDelivery): string {
  const { title, message, navigate } = data;
  return JSON.stringify({ title, body: message, navigate, ...payload, notificationId });
}

export class PushSender {
  private readonly deliveries = new DeliveryTracker(CONCURRENT_PUSHES_MAX);
  /** IDs of apps that have had their turn in this round: this process has created the deliveries of one of their notifications. */
  private readonly appIdsServedInRound = new Set<number>();
  /** IDs of claimed deliveries that this process never tried to send and has not released yet. */
  private readonly unattemptedIds = new Set<number>();
  private readonly failureLog: PushFailureLog;

  constructor(private readonly options: PushSenderOptions) {
    this.failureLog = new PushFailureLog(options.log);
  }

  private async selectTargetsInScope<T extends PushTarget>(
    executor: SqlClient,
    appId: number,
    devices: readonly T[],
    scope: NotificationScope | null,
  ): Promise<readonly T[]> {
    if (scope === null) return devices;
    const credentialIds = devices.flatMap(({ credentialId }) => credentialId ?? []);
    const credentialsInScope = await this.options.findCredentialsInScope(executor, appId, credentialIds, scope);
    return devices.filter(({ credentialId }) => credentialId !== null && credentialsInScope.has(credentialId));
  }

  /** Deletes deliveries to users who may not read the notification any more, for example after a sign-out. Returns the other deliveries. */
  private async deleteDeliveriesOutOfScope(deliveries: readonly PushDelivery[]): Promise<PushDelivery[]> {
    const { db, processId } = this.options;
    const allowedDeliveries: PushDelivery[] = [];
    for (const notificationDeliveries of Map.groupBy(deliveries, ({ notificationId }) => notificationId).values()) {
      const { appId, scope } = notificationDeliveries[0]!;
      const deliveriesInScope = new Set(await this.selectTargetsInScope(db, appId, notificationDeliveries, scope));
      for (const delivery of notificationDeliveries) {
        if (deliveriesInScope.has(delivery)) allowedDeliveries.push(delivery);
        else await rows(db, DELETE_DELIVERY, [delivery.id, processId]);
      }
    }
    return allowedDeliveries;
  }

  /** Creates the deliveries of the next notification of an app that is not in `excludedApps`. Returns false if there is none. */
  private async createDeliveriesOfNextNotification(excludedApps: readonly number[]): Promise<boolean> {
    const { db, now } = this.options;
    return db.transaction(async (manager) => {
      const moment = new Date(now());
      const [notification] = await rows<{ id: number; appId: number; scope: NotificationScope | null }>(
        manager,
        SELECT_NOTIFICATION_TO_PUSH,
        [moment, excludedApps],
      );
      if (!notification) return false;
      for (let last = 0; ; ) {
        const devices = await rows<PushTarget & { id: number }>(manager, SELECT_DEVICES, [notification.appId, last]);
        const devicesInScope = await this.selectTargetsInScope(
          manager,
          notification.appId,
          devices,
          notification.scope,
        );
        await rows(manager, INSERT_DELIVERIES, [notification.id, devicesInScope.map(({ id }) => id), moment]);
        if (devices.length < DEVICES_PER_STATEMENT) break;
        last = devices.at(-1)!.id;
      }
      await rows(manager, "UPDATE notification SET push_at = NULL WHERE id = $1", [notification.id]);
      this.appIdsServedInRound.add(notification.appId);
      return true;
    });
  }

  /**
   * Creates the deliveries of the next notification. Returns false if there is none. Apps take turns; apps that already send many messages
   * wait.
   */
  private async createDeliveries(): Promise<boolean> {
    const [appIds, sending] = this.deliveries.countByApp();
    const busyApps = appIds.filter((_, index) => sending[index]! >= CONCURRENT_PUSHES_PER_APP_MAX);
    if (await this.createDeliveriesOfNextNotification([...busyApps, ...this.appIdsServedInRound])) return true;
    if (this.appIdsServedInRound.size === 0) return false;
    this.appIdsServedInRound.clear();
    return this.createDeliveriesOfNextNotification(busyApps);
  }

  private async claimDueDeliveries(): Promise<void> {
    const { db, processId, now } = this.options;
    for (let freeSlots = this.deliveries.countFree(); freeSlots > 0; freeSlots = this.deliveries.countFree()) {
      const claimedDeliveries = await rows<PushDelivery>(db, CLAIM_DELIVERIES, [
        new Date(now()),
        freeSlots,
        ...this.deliveries.countByApp(),
        processId,
      ]);
      try {
        for (const delivery of await this.deleteDeliveriesOutOfScope(claimedDeliveries)) this.startPush(delivery);
      } catch (error) {
        if (isDatabaseUnavailable(error)) for (const { id } of claimedDeliveries) this.unattemptedIds.add(id);
        throw error;
      }
      if (claimedDeliveries.length === 0) break;
    }
  }

  private async prepareRequest(delivery: PushDelivery): Promise<ReturnType<typeof createPushRequest>> {
    const keys = await this.options.readVapidKeys(delivery.appId);
    const topic = `svc-${delivery.notificationId}`;
    return createPushRequest(delivery, createPayload(delivery), { ...keys, subject: this.options.subject, topic });
  }

  private async postRequest({ url, ...request }: ReturnType<typeof createPushRequest>): Promise<PushOutcome> {
    const { signal } = this.deliveries;
    try {
      const { status } = await this.options.connections.request(url, { method: "POST", ...request, signal });
      if (status >= 200 && status < 300) return { kind: "delivered" };
      if (UNSUBSCRIBED_HTTP_STATUSES.includes(status)) return { kind: "gone" };
      return { kind: RETRYABLE_HTTP_STATUSES.includes(status) ? "failed" : "rejected", failure: { status } };
    } catch (error) {
      // Messages of other errors may contain the URL, which is a secret.
      const reason = error instanceof NotConnectedError ? error.message : "the push service did not respond";
      const isForbidden = error instanceof NotConnectedError && error.forbidden;
      return { kind: isForbidden ? "rejected" : "failed", failure: { reason } };
    }
  }

  private async attemptPush(delivery: PushDelivery): Promise<PushOutcome> {
    try {
      return await this.postRequest(await this.prepareRequest(delivery));
    } catch (error) {
      if (isDatabaseUnavailable(error)) return { kind: "unattempted" };
      this.failureLog.logUnexpectedFailure(delivery, error);
      return { kind: "failed", failure: { reason: "the message could not be prepared" } };
    }
  }

  private async sendPush(delivery: PushDelivery): Promise<void> {
    const { db, processId, now } = this.options;
    const outcome = await this.attemptPush(delivery);
    const { id, subscriptionId, attempts } = delivery;
    const isUnattempted = outcome.kind === "unattempted";
    if (isUnattempted) this.unattemptedIds.add(id);
    if (outcome.kind === "gone") await rows(db, "DELETE FROM push_subscription WHERE id = $1", [subscriptionId]);
    else if (isUnattempted || (outcome.kind === "failed" && attempts < SEND_ATTEMPTS_MAX)) {
      // A process that stops makes its deliveries due at once, so that other processes can send them.
      const pause = this.deliveries.signal.aborted ? 0 : FIRST_RETRY_DELAY_MS * 2 ** (attempts - 1);
      await rows(db, POSTPONE_DELIVERY, [id, processId, new Date(now() + pause), isUnattempted ? 1 : 0]);
    } else {
      if (outcome.kind === "rejected") this.failureLog.logRejected(delivery, outcome.failure);
      if (outcome.kind === "failed") this.failureLog.logGivenUp(delivery, outcome.failure);
      await rows(db, DELETE_DELIVERY, [id, processId]);
    }
    this.unattemptedIds.delete(id);
  }

  private startPush(delivery: PushDelivery): void {
    // If the result cannot be stored, the delivery stays claimed until `recover` releases it.
    const logStoreFailure = (err: unknown) =>
      this.options.log.warn({ err }, "the outcome of a push message could not be stored");
    this.deliveries.trackDelivery(delivery, this.sendPush(delivery).catch(logStoreFailure));
  }

  /**
   * Sends the push messages that are due. Returns the time of the next push message as Unix time in milliseconds; null if none is planned,
   * or if one is due but has no free slot.
   */
  async sendDuePushes(): Promise<number | null> {
    const { db, now } = this.options;
    await this.claimDueDeliveries();
    while (this.deliveries.countFree() > 0 && (await this.createDeliveries())) await this.claimDueDeliveries();
    const [row] = await rows<{ next: Date | null }>(db, SELECT_NEXT_DUE_TIME);
    const next = row!.next?.getTime() ?? null;
    return next !== null && next > now() ? next : null;
  }

  /**
   * Releases deliveries that this process has claimed but is not sending, for example because the response to the claim was lost. With
   * `mayDeclareDead`, also releases the deliveries of processes whose lease has expired. Gives up deliveries without attempts left.
   */
  async recover(mayDeclareDead: boolean): Promise<void> {
    const { db, processId, log } = this.options;
    const sendingIds = this.deliveries.listIds();
    const unattemptedIds = [...this.unattemptedIds].filter((id) => !sendingIds.includes(id));
    const lostDeliveries = await rows<FailedPush & { isGivenUp: boolean }>(db, RELEASE_DELIVERIES, [
      processId,
      sendingIds,
      mayDeclareDead,
      unattemptedIds,
    ]);
    for (const id of unattemptedIds) this.unattemptedIds.delete(id);
    const givenUpDeliveries = lostDeliveries.filter(({ isGivenUp }) => isGivenUp);
    const count = lostDeliveries.length - givenUpDeliveries.length;
    if (count > 0) log.warn({ count }, "released claimed push messages that no running process was sending");
    for (const push of givenUpDeliveries)
      this.failureLog.logGivenUp(push, { reason: "the result of the last attempt is unknown" });
  }

  /** Sets the function that is called when a delivery has ended. */
  onDeliveryEnd(listener: () => void): void {
    this.deliveries.onDeliveryEnd(listener);
  }

  /** Resolves when no delivery is running. The signal `forceStop` aborts the running deliveries. */
  drain(forceStop: AbortSignal): Promise<void> {
    return this.deliveries.drain(forceStop);
  }
}
