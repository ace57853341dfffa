/**
 * Sends what waits in the outbox: claims what is due while it has places, tries each message once at a time, and writes down what came
 * of it with the log event of that. Knows no protocol.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import { createInHand } from "../in-hand.js";
import type { LogEvents } from "../records/log-events.js";
import type { Handing } from "./email-delivery.js";
import type { HeldMessage, Outbox, Settlement } from "./outbox.js";
import { emitStatus } from "./status-events.js";
import type { TryOutcome } from "./try-outcome.js";

/** Messages in hand at once, in this process. */
const PLACES = 100;
/** What one app may have of the places that are free: servers that never answer must not take them all. */
const APP_PART = 1 / 10;
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 3_600_000;
/** A status that cannot be written is tried again for so long; after that the message is held to be unknown. */
const SETTLE_ATTEMPTS = 60;
const SETTLE_AGAIN_MS = 500;

type Deliver = (message: HeldMessage, handing: Handing) => Promise<TryOutcome>;

/** Twice as long each time, up to an hour; a quarter of it by chance, so that not all come back at once. */
function pauseAfter(attempts: number): number {
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 10));
  return longest * (0.75 + Math.random() / 4);
}

export type Sender = ReturnType<typeof createSender>;

export function createSender(options: {
  db: DataSource;
  outbox: Outbox;
  deliver: Record<"email" | "sms", Deliver>;
  logEvents: LogEvents;
  /** The fence of this process. */
  holder: string;
  now: () => number;
  log: Logger;
}) {
  const { db, outbox, deliver, logEvents, holder, now, log } = options;
  const inHand = createInHand(PLACES);

  function settlementOf(message: HeldMessage, outcome: Exclude<TryOutcome, { kind: "fenced" }>): Settlement {
    const { recipients, detail } = outcome;
    if (outcome.kind === "done") return outcome;
    const dueAt = new Date(now() + pauseAfter(message.attempts));
    if (dueAt <= message.giveUpAt) return { status: "queued", dueAt, recipients, detail };
    const status = recipients.some((one) => one.status === "sent") ? "sent" : "failed";
    return { status, recipients, detail };
  }

  /** Writes the status and its event together; a database that is away is waited for. */
  async function settle(message: HeldMessage, settlement: Settlement): Promise<void> {
    for (let left = SETTLE_ATTEMPTS - 1; ; left -= 1) {
      try {
        await db.transaction(async (manager) => {
          if (await outbox.settle(manager, holder, message.id, settlement)) {
            await emitStatus(logEvents, manager, message, settlement);
          }
        });
        return;
      } catch (error) {
        if (left === 0) throw error;
        await delay(SETTLE_AGAIN_MS);
      }
    }
  }

  /** One try. Every message gets an outcome: without it, a message whose try failed in an unforeseen way would stay claimed. */
  async function attempt(message: HeldMessage): Promise<TryOutcome> {
    let hasBegun = false;
    const mayBegin = async () => {
      hasBegun = await outbox.handOver(holder, message.id);
      return hasBegun;
    };
    try {
      return await deliver[message.content.kind](message, { mayBegin, signal: inHand.signal });
    } catch (err) {
      log.error({ err, messageId: message.id }, "a message's try failed in an unforeseen way");
      const { recipients } = message;
      if (hasBegun) return { kind: "done", status: "unknown", recipients, detail: "the try failed within the service" };
      return { kind: "later", recipients, detail: "the message could not be prepared" };
    }
  }

  async function send(message: HeldMessage): Promise<void> {
    const outcome = await attempt(message);
    if (outcome.kind !== "fenced") await settle(message, settlementOf(message, outcome));
  }

  function begin(message: HeldMessage): void {
    // Nothing is settled then: when the lease ends, the message is released by its stored state.
    const unsettled = (err: unknown) => log.warn({ err, messageId: message.id }, "a message could not be settled");
    inHand.take(message, send(message).catch(unsettled));
  }

  return {
    /** The messages that this process knows to hold. */
    known: inHand.ids,
    whenFree: inHand.whenFree,

    /** Takes what is due and has a place. Answers with the Unix time in milliseconds of what is due next, or null. */
    async look(): Promise<number | null> {
      for (let free = inHand.free(); free > 0; free = inHand.free()) {
        const share = Math.max(1, Math.floor(free * APP_PART));
        const claimed = await outbox.claim(holder, { held: inHand.byApp(), share, count: free, now: new Date(now()) });
        for (const message of claimed) begin(message);
        if (claimed.length === 0) break;
      }
      const next = await outbox.nextDue();
      // A message that is already due waits for a slot, and a free slot wakes this loop.
      return next && next.getTime() > now() ? next.getTime() : null;
    },

    drain: inHand.drain,
  };
}
