/**
 * Limits how many bytes an app and its visitors can send per minute, and checks the free disk space. Each process has
 * its own counts, so several processes together allow more.
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
import { type Caller, isPageCaller } from "../../rules/access.js";
import { addressBlock } from "../../rules/address-block.js";

/** The fields of a caller that determine which quota its requests use. */
export type Sender = Pick<Caller, "kind" | "credentialId" | "address">;

export type IntakeLimiter = ReturnType<typeof createIntake>;

function intakeError(owner: string, megabytes: number, retryAfter: number): ActionError {
  return rateLimitError(
    `${owner} can send at most ${megabytes} MB per minute; try again in ${retryAfter} s`,
    retryAfter,
  );
}

/**
 * Creates the limits on received data. @param quotaBytes maximum bytes per minute that callers other than visitors can
 * send to one app; 0 means unlimited
 */
export function createIntake({ quotaBytes, room: diskSpace }: { quotaBytes: number; room: DiskSpace }) {
  const bucketOf = (share: number) => createTokenBucket({ limit: quotaBytes * share, windowMs: RATE_WINDOW_MS });
  const serviceBucket = bucketOf(1);
  const visitors = bucketOf(INTAKE_VISITORS_SHARE);
  const addresses = bucketOf(INTAKE_ADDRESS_SHARE);
  const quotaMegabytes = (share: number) => (quotaBytes * share) / 2 ** 20;
  /** Returns the key of a visitor's quota. All visitors from one network address share a quota. */
  const addressOf = ({ address, credentialId }: Sender) =>
    address === undefined ? `credential ${credentialId}` : addressBlock(address);

  /** Checks the free space on the database's disk. @throws OVERLOADED if the disk is nearly full */
  function checkSpace(): void {
    if (diskSpace.level() === "enough") return;
    const retryAfter = LOW_DISK_RETRY_SECONDS;
    throw new ActionError(
      "OVERLOADED",
      `the service's disk is nearly full, so the service stores no new data; try again in ${retryAfter} s`,
      {
        retryAfter,
      },
    );
  }

  function takeVisitorQuota(sender: Sender, appId: number, intakeCost: number): void {
    // The quota of the address is used first. Data that exceeds it then does not use up the quota that all visitors
    // share.
    const waitSeconds = addresses.takeTokens(addressOf(sender), intakeCost);
    if (waitSeconds > 0) throw intakeError("one address", quotaMegabytes(INTAKE_ADDRESS_SHARE), waitSeconds);
    const waitOfAll = visitors.takeTokens(String(appId), intakeCost);
    if (waitOfAll > 0) throw intakeError("the visitors of one app", quotaMegabytes(INTAKE_VISITORS_SHARE), waitOfAll);
  }

  return {
    checkSpace,

    /**
     * Counts `rows` rows with `bytes` bytes of content in total against the sender's quota.
     * @throws RATE_LIMIT_EXCEEDED if they exceed the quota, OVERLOADED
     */
    takeRows(sender: Sender, appId: number, bytes: number, rows = 1): void {
      checkSpace();
      if (quotaBytes === 0) return;
      const intakeCost = bytes + rows * INTAKE_ROW_BYTES;
      if (!isPageCaller(sender)) {
        const waitSeconds = serviceBucket.takeTokens(String(appId), intakeCost);
        if (waitSeconds > 0) throw intakeError("this app", quotaMegabytes(1), waitSeconds);
        return;
      }
      takeVisitorQuota(sender, appId, intakeCost);
    },

    /**
     * Counts the payload of a run against the visitor's quota. Runs of other callers are limited by rate and by the
     * queue instead.
     * @throws RATE_LIMIT_EXCEEDED
     */
    takePayload(sender: Sender, appId: number, bytes: number): void {
      if (quotaBytes > 0 && isPageCaller(sender)) takeVisitorQuota(sender, appId, bytes);
    },

    /**
     * Counts rows that are already stored. It never throws: if they exceed the quota, the sender's next request is
     * rejected.
     */
    charge(sender: Sender, appId: number, rows: number): void {
      if (quotaBytes === 0 || rows === 0) return;
      const intakeCost = rows * INTAKE_ROW_BYTES;
      if (isPageCaller(sender)) {
        addresses.charge(addressOf(sender), intakeCost);
        visitors.charge(String(appId), intakeCost);
      } else serviceBucket.charge(String(appId), intakeCost);
    },
  };
}
