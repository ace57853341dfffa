/**
 * Renews the lease of this process, and decides when this process may end the runs of processes whose lease has
 * expired.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { DataSource } from "typeorm";
import type { Role } from "../../config.js";
import { BROWSER_HOLDER } from "./run-repository.js";

const LEASE_MS = 12_000;
const RENEW_EVERY_MS = 3_000;
/**
 * Delay before a failed renewal is repeated. It is short, because after an outage each process must renew its lease
 * before another process declares it dead.
 */
const RETRY_MS = 500;
/**
 * Maximum gap between two responses of the database. During a longer gap, other processes may have been unable to renew
 * their leases too.
 */
const GAP_MAX_MS = 6_000;

const RENEW_LEASE = `
  INSERT INTO instance (id, roles, lease_until, ignored_proxy)
  VALUES ($1, $2, now() + ${LEASE_MS} * interval '1 millisecond', $3)
  ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, ignored_proxy = excluded.ignored_proxy`;

/** Measures for how long this process has reached the database without a gap. */
export class DatabaseContact {
  private since = Number.POSITIVE_INFINITY;
  private last = Number.NEGATIVE_INFINITY;

  /** @param now monotonic clock in milliseconds */
  constructor(
    private readonly steadyMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  onReached(): void {
    const at = this.now();
    if (this.since > at || at - this.last > GAP_MAX_MS) this.since = at;
    this.last = at;
  }

  onLost(): void {
    this.since = Number.POSITIVE_INFINITY;
  }

  /** True if there was no gap for `steadyMs`: every live process has had that long to renew its lease. */
  isSteady(): boolean {
    const at = this.now();
    return at - this.since >= this.steadyMs && at - this.last <= GAP_MAX_MS;
  }
}

interface LeaseOptions {
  db: DataSource;
  roles: ReadonlySet<Role>;
  /** True if only this process uses the database: every other row of the table belongs to a dead process. */
  isOnlyProcess: boolean;
  /** Called after each renewal. With `mayDeclareDead`, processes whose lease has ended count as dead. */
  onRenewal: (mayDeclareDead: boolean) => Promise<void>;
  /**
   * Called after a renewal of an expired lease, because another process may have ended runs of this process in the
   * meantime.
   */
  onLateRenewal: () => Promise<void>;
  onDatabaseReached: () => void;
  log: Logger;
}

/**
 * Lease of this process. A failed renewal ends no run, because in an outage of the database no other process can end
 * the runs either.
 */
export class Lease {
  /** ID of this process. Every write to a run that this process holds checks this ID. */
  readonly holder = randomUUID();
  private readonly contact = new DatabaseContact(LEASE_MS);
  private timer: NodeJS.Timeout | undefined;
  private renewal: Promise<void> = Promise.resolve();
  /**
   * The current `onRenewal` call. It runs beside the renewals, because a slow statement must not let the lease expire.
   */
  private work: Promise<void> | null = null;
  private isStopped = false;
  private renewedAt = 0;
  private isLate = false;
  private ignoredProxy: string | null = null;

  constructor(private readonly options: LeaseOptions) {}

  private async renew(): Promise<void> {
    const { db, roles, onDatabaseReached } = this.options;
    const at = performance.now();
    await db.query(RENEW_LEASE, [this.holder, [...roles], this.ignoredProxy]);
    if (this.renewedAt > 0 && at - this.renewedAt > LEASE_MS) this.isLate = true;
    this.renewedAt = at;
    this.contact.onReached();
    onDatabaseReached();
  }

  private async workAfterRenewal(): Promise<void> {
    try {
      if (this.isLate) await this.options.onLateRenewal();
      this.isLate = false;
      await this.options.onRenewal(this.options.isOnlyProcess || this.contact.isSteady());
    } catch (error) {
      this.options.log.warn(
        { err: error },
        "the work that follows a lease renewal failed; the next renewal repeats it",
      );
    } finally {
      this.work = null;
    }
  }

  private async renewRepeatedly(): Promise<void> {
    let nextMs = RENEW_EVERY_MS;
    try {
      await this.renew();
      this.work ??= this.workAfterRenewal();
    } catch (error) {
      this.contact.onLost();
      nextMs = RETRY_MS;
      this.options.log.warn({ err: error }, "the lease could not be renewed");
    }
    if (this.isStopped) return;
    this.timer = setTimeout(() => {
      this.renewal = this.renewRepeatedly();
    }, nextMs);
  }

  /**
   * Logs once that requests come through a proxy whose `X-Forwarded-For` is ignored, and stores the proxy's address for
   * `npm run doctor`.
   */
  readonly reportIgnoredProxy = (address: string): void => {
    if (this.ignoredProxy !== null) return;
    this.ignoredProxy = address;
    this.options.log.warn(
      { proxy: address },
      "X-Forwarded-For of a proxy is ignored, so that all visitors behind the proxy share the limits of one address; set TRUST_PROXY",
    );
  };

  async start(): Promise<void> {
    const { db, isOnlyProcess } = this.options;
    if (isOnlyProcess) await db.query("DELETE FROM instance WHERE id <> $1", [BROWSER_HOLDER]);
    await this.renew();
    this.renewal = this.renewRepeatedly();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.renewal;
    await this.work;
    await this.options.db.query("DELETE FROM instance WHERE id = $1", [this.holder]);
  }
}
