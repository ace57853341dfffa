/**
 * Limits the bytes that an app and its visitors can send per minute, in each process separately. Rejects data if the disk is nearly full.
 */
import type { DiskSpaceMonitor } from "../../engine/disk-space.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import {
  INTAKE_QUOTA_ADDRESS_SHARE,
  INTAKE_QUOTA_VISITORS_SHARE,
  INTAKE_ROW_OVERHEAD_BYTES,
  LOW_DISK_RETRY_SECONDS,
  RATE_WINDOW_MS,
} from "../../limits.js";
import { type Caller, isPageCaller } from "../../rules/access.js";
import { getAddressBlock } from "../../rules/address-block.js";

/** The fields of a caller that determine against which quota the caller's data counts. */
export type DataSender = Pick<Caller, "kind" | "credentialId" | "address">;

function createTooMuchDataError(owner: string, megabytes: number, retryAfter: number): ActionError {
  return createRateLimitError(
    `${owner} can send at most ${megabytes} MB per minute; try again in ${retryAfter} s`,
    retryAfter,
  );
}

interface ReceivedDataLimiterOptions {
  /** Maximum bytes that callers other than visitors can send to one app per minute. Visitors have a share of it. 0 means unlimited. */
  quotaBytes: number;
  diskSpace: DiskSpaceMonitor;
}

/** Returns the key of the sender's quota. Visitors at the same network address share one quota. */
const createAddressKey = ({ address, credentialId }: DataSender) =>
  address === undefined ? `credential ${credentialId}` : getAddressBlock(address);

export class ReceivedDataLimiter {
  private readonly appBucket = this.createBucket(1);
  private readonly visitorBucket = this.createBucket(INTAKE_QUOTA_VISITORS_SHARE);
  private readonly addressBucket = this.createBucket(INTAKE_QUOTA_ADDRESS_SHARE);

  constructor(private readonly options: ReceivedDataLimiterOptions) {}

  private createBucket(share: number) {
    return createTokenBucket({ limit: this.options.quotaBytes * share, windowMs: RATE_WINDOW_MS });
  }

  private computeQuotaMegabytes(share: number) {
    return (this.options.quotaBytes * share) / 2 ** 20;
  }

  private countVisitorData(sender: DataSender, appId: number, intakeCost: number): void {
    // The quota of the network address is checked first, so that data rejected here does not reduce the quota of all visitors.
    const waitSeconds = this.addressBucket.takeTokens(createAddressKey(sender), intakeCost);
    if (waitSeconds > 0)
      throw createTooMuchDataError(
        "one network address",
        this.computeQuotaMegabytes(INTAKE_QUOTA_ADDRESS_SHARE),
        waitSeconds,
      );
    const appWaitSeconds = this.visitorBucket.takeTokens(String(appId), intakeCost);
    if (appWaitSeconds > 0)
      throw createTooMuchDataError(
        "the visitors of one app",
        this.computeQuotaMegabytes(INTAKE_QUOTA_VISITORS_SHARE),
        appWaitSeconds,
      );
  }

  /** Checks the free disk space of the database. @throws OVERLOADED if the disk is nearly full */
  checkSpace(): void {
    if (this.options.diskSpace.level() === "enough") return;
    const retryAfter = LOW_DISK_RETRY_SECONDS;
    throw new ActionError(
      "OVERLOADED",
      `the service's disk is nearly full, so the service stores no new data; try again in ${retryAfter} s`,
      {
        retryAfter,
      },
    );
  }

  /** Counts `bytes` bytes in `rows` rows against the sender's quota. @throws RATE_LIMIT_EXCEEDED; OVERLOADED if the disk is nearly full */
  countRows(sender: DataSender, appId: number, bytes: number, rows = 1): void {
    this.checkSpace();
    if (this.options.quotaBytes === 0) return;
    const intakeCost = bytes + rows * INTAKE_ROW_OVERHEAD_BYTES;
    if (!isPageCaller(sender)) {
      const waitSeconds = this.appBucket.takeTokens(String(appId), intakeCost);
      if (waitSeconds > 0) throw createTooMuchDataError("this app", this.computeQuotaMegabytes(1), waitSeconds);
      return;
    }
    this.countVisitorData(sender, appId, intakeCost);
  }

  /** Counts a run's payload against a visitor's quota. Payloads of other callers do not count. @throws RATE_LIMIT_EXCEEDED */
  countPayload(sender: DataSender, appId: number, bytes: number): void {
    if (this.options.quotaBytes > 0 && isPageCaller(sender)) this.countVisitorData(sender, appId, bytes);
  }

  /**
   * Subtracts rows from the sender's quota after they were stored. Never throws: if the rows exceed the quota, the sender's next request is
   * rejected.
   */
  chargeRows(sender: DataSender, appId: number, rows: number): void {
    if (this.options.quotaBytes === 0 || rows === 0) return;
    const intakeCost = rows * INTAKE_ROW_OVERHEAD_BYTES;
    if (isPageCaller(sender)) {
      this.addressBucket.charge(createAddressKey(sender), intakeCost);
      this.visitorBucket.charge(String(appId), intakeCost);
    } else this.appBucket.charge(String(appId), intakeCost);
  }
}
