/**
 * Limits the bytes that an app and its visitors can store per minute, and checks the free disk space. Each process
 * counts on its own, so several processes together allow more.
 */
import type { DiskSpace } from "../../engine/disk-space.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, rateLimitError } from "../../errors.js";
import {
  INTAKE_ADDRESS_SHARE,
  INTAKE_ROW_BYTES,
  INTAKE_VISITORS_SHARE,
  LOW_DISK_RETRY_SECONDS,
  RATE_WINDOW_MS,
} from "../../limits.js";
import { type Caller, isVisitor } from "../../rules/access.js";
import { addressBlock } from "../../rules/address-block.js";

/** The caller's fields that determine the quota that is used. */
export type Sender = Pick<Caller, "kind" | "credentialId" | "address">;

export type IntakeLimiter = ReturnType<typeof createIntake>;

function intakeError(owner: string, megabytes: number, retryAfter: number): ActionError {
  return rateLimitError(`${owner} may send ${megabytes} MB in a minute; try again in ${retryAfter} s`, retryAfter);
}

/** @param quotaBytes bytes per minute for one app's own credentials; 0 means unlimited */
export function createIntake({ quotaBytes, room }: { quotaBytes: number; room: DiskSpace }) {
  const bucketOf = (share: number) => createTokenBucket({ limit: quotaBytes * share, windowMs: RATE_WINDOW_MS });
  const serviceBucket = bucketOf(1);
  const visitors = bucketOf(INTAKE_VISITORS_SHARE);
  const addresses = bucketOf(INTAKE_ADDRESS_SHARE);
  const quotaMegabytes = (share: number) => (quotaBytes * share) / 2 ** 20;
  /**
   * Returns the key of the quota that the sender shares. Visitors have one quota per network address, apart from that
   * of the app's own credentials.
   */
  const addressOf = ({ address, credentialId }: Sender) =>
    address === undefined ? `credential ${credentialId}` : addressBlock(address);

  /** @throws OVERLOADED if the database's disk is nearly full */
  function checkSpace(): void {
    if (room.level() === "enough") return;
    const retryAfter = LOW_DISK_RETRY_SECONDS;
    throw new ActionError("OVERLOADED", `the service's disk is nearly full; try again in ${retryAfter} s`, {
      retryAfter,
    });
  }

  function takeVisitorQuota(sender: Sender, appId: number, intakeCost: number): void {
    // The address counts first, so that data that it is refused do not use up the shared quota.
    const waitSeconds = addresses.takeTokens(addressOf(sender), intakeCost);
    if (waitSeconds > 0) throw intakeError("one address", quotaMegabytes(INTAKE_ADDRESS_SHARE), waitSeconds);
    const waitOfAll = visitors.takeTokens(String(appId), intakeCost);
    if (waitOfAll > 0) throw intakeError("the visitors of one app", quotaMegabytes(INTAKE_VISITORS_SHARE), waitOfAll);
  }

  return {
    checkRoom: checkSpace,

    /**
     * Counts `rows` with `bytes` of content in total against the sender's quota, or rejects them.
     * @throws RATE_LIMIT_EXCEEDED, OVERLOADED
     */
    takeRows(sender: Sender, appId: number, bytes: number, rows = 1): void {
      checkSpace();
      if (quotaBytes === 0) return;
      const intakeCost = bytes + rows * INTAKE_ROW_BYTES;
      if (!isVisitor(sender)) {
        const waitSeconds = serviceBucket.takeTokens(String(appId), intakeCost);
        if (waitSeconds > 0) throw intakeError("this app", quotaMegabytes(1), waitSeconds);
        return;
      }
      takeVisitorQuota(sender, appId, intakeCost);
    },

    /**
     * Counts the payload of a run against its visitor's quota, or rejects it. The app's own runs are limited by rate
     * and queue.
     * @throws RATE_LIMIT_EXCEEDED
     */
    takePayload(sender: Sender, appId: number, bytes: number): void {
      if (quotaBytes > 0 && isVisitor(sender)) takeVisitorQuota(sender, appId, bytes);
    },

    /** Counts rows that are already stored. If they exceed the quota, the sender's next rows are rejected. */
    charge(sender: Sender, appId: number, rows: number): void {
      if (quotaBytes === 0 || rows === 0) return;
      const intakeCost = rows * INTAKE_ROW_BYTES;
      if (isVisitor(sender)) {
        addresses.charge(addressOf(sender), intakeCost);
        visitors.charge(String(appId), intakeCost);
      } else serviceBucket.charge(String(appId), intakeCost);
    },
  };
}
