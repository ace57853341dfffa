/**
 * Sends the messages of the outbox. Claims due messages while it has free slots, makes one attempt for each, and stores
 * the outcome with its log event.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Db } from "../../data/database.js";
import { DeliveryTracker } from "../delivery-tracker.js";
import type { LogEventStore } from "../records/log-events.js";
import type { DeliveryAttemptOutcome } from "./attempt-outcome.js";
import { addReportedStatuses, getStatusOfAccepted } from "./delivery-status.js";
import type { DeliveryAttemptControl } from "./email-delivery.js";
import type { ClaimedMessage, Outbox, StoredDeliveryOutcome } from "./outbox.js";
import { emitMessageStatusEvent } from "./status-events.js";

/** Maximum number of messages that this process sends at the same time. */
const SENDER_SLOTS = 100;
/** Share of this process's free send slots that one app can take. So an app with slow mail servers cannot occupy all slots. */
const APP_SHARE_OF_FREE_SLOTS = 1 / 10;
const FIRST_RETRY_DELAY_MS = 30_000;
const MAX_RETRY_DELAY_MS = 3_600_000;
/** Maximum number of attempts to store a message's outcome. If all fail, `recover` (communicate.ts) releases the message later. */
const STORE_ATTEMPTS_MAX = 60;
const STORE_RETRY_DELAY_MS = 500;

type DeliverMessage = (message: ClaimedMessage, control: DeliveryAttemptControl) => Promise<DeliveryAttemptOutcome>;

/** Returns the delay before the next attempt. It doubles each time, up to an hour, and varies by up to a quarter to spread retries. */
function computeRetryDelayMs(attempts: number): number {
  const maxDelayMs = Math.min(MAX_RETRY_DELAY_MS, FIRST_RETRY_DELAY_MS * 2 ** Math.min(attempts - 1, 10));
  return maxDelayMs * (0.75 + Math.random() / 4);
}

interface MessageSenderOptions {
  db: Db;
  outbox: Outbox;
  deliver: Record<"email" | "sms", DeliverMessage>;
  logEvents: LogEventStore;
  processId: string;
  now: () => number;
  log: Logger;
}

export class MessageSender {
  private readonly deliveries = new DeliveryTracker(SENDER_SLOTS);

  constructor(private readonly options: MessageSenderOptions) {}

  private toStoredResult(
    message: ClaimedMessage,
    outcome: Exclude<DeliveryAttemptOutcome, { kind: "fenced" }>,
  ): StoredDeliveryOutcome {
    const { recipients, detail } = outcome;
    if (outcome.kind === "done") return outcome;
    const dueAt = new Date(this.options.now() + computeRetryDelayMs(message.attempts));
    if (dueAt <= message.giveUpAt) return { status: "queued", dueAt, recipients, detail };
    return { status: getStatusOfAccepted(recipients) ?? "failed", recipients, detail };
  }

  /** Stores the status and its log event in one transaction, with up to STORE_ATTEMPTS_MAX attempts. */
  private async storeResult(message: ClaimedMessage, outcome: StoredDeliveryOutcome): Promise<void> {
    const { db, outbox, logEvents, processId } = this.options;
    for (let attemptsLeft = STORE_ATTEMPTS_MAX - 1; ; attemptsLeft -= 1) {
      try {
        await db.transaction(async (manager) => {
          const mayHaveReports = message.recipients.some((recipient) => recipient.status);
          const result = mayHaveReports
            ? addReportedStatuses(outcome, await outbox.lockRecipients(manager, message.id))
            : outcome;
          if (await outbox.storeAttemptResult(manager, processId, message.id, result)) {
            await emitMessageStatusEvent(logEvents, manager, message, result);
          }
        });
        return;
      } catch (error) {
        if (attemptsLeft === 0) throw error;
        await delay(STORE_RETRY_DELAY_MS);
      }
    }
  }

  /** Tries once to send the message. Never throws: without an outcome, the message would stay claimed. */
  private async attemptDelivery(message: ClaimedMessage): Promise<DeliveryAttemptOutcome> {
    const { outbox, deliver, processId, log } = this.options;
    let hasStartedSending = false;
    const markSending = async () => {
      hasStartedSending = await outbox.markSending(processId, message.id);
      return hasStartedSending;
    };
    try {
      return await deliver[message.content.kind](message, { markSending, signal: this.deliveries.signal });
    } catch (err) {
      log.error({ err, messageId: message.id }, "an attempt to send a message failed unexpectedly");
      const { recipients } = message;
      if (hasStartedSending)
        return { kind: "done", status: "unknown", recipients, detail: "the attempt failed inside the service" };
      return { kind: "later", recipients, detail: "the attempt failed inside the service before the message was sent" };
    }
  }

  private async sendMessage(message: ClaimedMessage): Promise<void> {
    const outcome = await this.attemptDelivery(message);
    if (outcome.kind !== "fenced") await this.storeResult(message, this.toStoredResult(message, outcome));
  }

  private startSending(message: ClaimedMessage): void {
    const logStoreFailure = (err: unknown) =>
      this.options.log.warn({ err, messageId: message.id }, "the outcome of a message could not be stored");
    this.deliveries.trackDelivery(message, this.sendMessage(message).catch(logStoreFailure));
  }

  /** Sends due messages while slots are free. Returns the time of the next call as Unix time in milliseconds; null if none is planned. */
  async sendDueMessages(): Promise<number | null> {
    const { outbox, processId, now } = this.options;
    for (let freeSlots = this.deliveries.countFree(); freeSlots > 0; freeSlots = this.deliveries.countFree()) {
      const limitPerApp = Math.max(1, Math.floor(freeSlots * APP_SHARE_OF_FREE_SLOTS));
      const claimedMessages = await outbox.claim(processId, {
        sendingByApp: this.deliveries.countByApp(),
        limitPerApp,
        limit: freeSlots,
        now: new Date(now()),
      });
      for (const message of claimedMessages) this.startSending(message);
      if (claimedMessages.length === 0) break;
    }
    const next = await outbox.readNextDueTime();
    // Returns null for a message that is already due: it waits for a slot, and each freed slot causes a call of `sendDueMessages`.
    return next && next.getTime() > now() ? next.getTime() : null;
  }

  listIdsInProgress(): number[] {
    return this.deliveries.listIds();
  }

  onDeliveryEnd(listener: () => void): void {
    this.deliveries.onDeliveryEnd(listener);
  }

  drain(forceStop: AbortSignal): Promise<void> {
    return this.deliveries.drain(forceStop);
  }
}
