/**
 * Renews the lease of this process, which shows other processes that it is alive. Decides when it may end the runs of processes whose lease
 * has expired.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { ProcessRole } from "../../config.js";
import { type Db, queryOnReservedConnection } from "../../data/database.js";
import { BROWSER_HOLDER_ID } from "../../data/run.js";

const LEASE_DURATION_MS = 12_000;
const RENEW_INTERVAL_MS = 3_000;
/** Delay after a failed renewal. After an outage, a process must renew its lease before other processes treat it as crashed. */
const RETRY_DELAY_MS = 500;
/** Maximum gap between two responses of the database. During a longer gap, other processes may have missed their renewals too. */
const DATABASE_GAP_MAX_MS = 6_000;

const RENEW_LEASE = `
  INSERT INTO instance (id, roles, lease_until, ignored_proxy)
  VALUES ($1, $2, now() + ${LEASE_DURATION_MS} * interval '1 millisecond', $3)
  ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, ignored_proxy = excluded.ignored_proxy`;

/** Measures for how long this process has been in contact with the database, without a gap longer than DATABASE_GAP_MAX_MS. */
export class DatabaseContactMonitor {
  private steadySince = Number.POSITIVE_INFINITY;
  private lastReachedAt = Number.NEGATIVE_INFINITY;

  /** @param now returns the time of a monotonic clock in milliseconds */
  constructor(
    private readonly steadyMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  onReached(): void {
    const at = this.now();
    if (this.steadySince > at || at - this.lastReachedAt > DATABASE_GAP_MAX_MS) this.steadySince = at;
    this.lastReachedAt = at;
  }

  onLost(): void {
    this.steadySince = Number.POSITIVE_INFINITY;
  }

  /** True if there was no gap for `steadyMs`. In this time, every live process could renew its lease. */
  isSteady(): boolean {
    const at = this.now();
    return at - this.steadySince >= this.steadyMs && at - this.lastReachedAt <= DATABASE_GAP_MAX_MS;
  }
}

interface LeaseOptions {
  db: Db;
  roles: ReadonlySet<ProcessRole>;
  /** True if no other process uses the database. All other rows of the table `instance` then belong to crashed processes. */
  isOnlyProcess: boolean;
  /** Called after each renewal. `mayDeclareDead` is true if processes with an expired lease count as crashed. */
  onRenewal: (mayDeclareDead: boolean) => Promise<void>;
  onDatabaseReached: () => void;
  log: Logger;
}

/** Lease of this process. A failed renewal does not end its runs, because no other process can end them without the database. */
export class Lease {
  /** ID of this process. A write to a run that this process executes checks that the run's row contains this ID. */
  readonly holder = randomUUID();
  private readonly contact = new DatabaseContactMonitor(LEASE_DURATION_MS);
  private timer: NodeJS.Timeout | undefined;
  private renewal: Promise<void> = Promise.resolve();
  /**
   * The running call of `onRenewal`; null if there is none. Renewals do not wait for it, because a slow statement must not let the lease
   * expire.
   */
  private onRenewalInProgress: Promise<void> | null = null;
  private isStopped = false;
  private ignoredProxy: string | null = null;

  constructor(private readonly options: LeaseOptions) {}

  private async renew(): Promise<void> {
    const { db, roles, onDatabaseReached } = this.options;
    const values = [this.holder, [...roles], this.ignoredProxy];
    await queryOnReservedConnection(db, "renew-lease", RENEW_LEASE, values);
    this.contact.onReached();
    onDatabaseReached();
  }

  private async callOnRenewal(): Promise<void> {
    try {
      await this.options.onRenewal(this.options.isOnlyProcess || this.contact.isSteady());
    } catch (error) {
      this.options.log.warn(
        { err: error },
        "the work that follows a lease renewal failed; the next renewal repeats it",
      );
    } finally {
      this.onRenewalInProgress = null;
    }
  }

  private async renewRepeatedly(): Promise<void> {
    let nextMs = RENEW_INTERVAL_MS;
    try {
      await this.renew();
      this.onRenewalInProgress ??= this.callOnRenewal();
    } catch (error) {
      this.contact.onLost();
      nextMs = RETRY_DELAY_MS;
      this.options.log.warn({ err: error }, "the lease could not be renewed");
    }
    if (this.isStopped) return;
    this.timer = setTimeout(() => {
      this.renewal = this.renewRepeatedly();
    }, nextMs);
  }

  /** Logs once that a proxy's header `X-Forwarded-For` is ignored, and stores the proxy's address for `npm run doctor`. */
  readonly reportIgnoredProxy = (address: string): void => {
    if (this.ignoredProxy !== null) return;
    this.ignoredProxy = address;
    this.options.log.warn(
      { proxy: address },
      "X-Forwarded-For of a proxy is ignored, so all visitors behind the proxy share the limits of one address; set TRUST_PROXY",
    );
  };

  async start(): Promise<void> {
    const { db, isOnlyProcess } = this.options;
    if (isOnlyProcess) await db.query("DELETE FROM instance WHERE id <> $1", [BROWSER_HOLDER_ID]);
    await this.renew();
    this.renewal = this.renewRepeatedly();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.renewal;
    await this.onRenewalInProgress;
    await queryOnReservedConnection(this.options.db, "remove-lease", "DELETE FROM instance WHERE id = $1", [
      this.holder,
    ]);
  }
}
