/** Tracks the deliveries (such as e-mails or push messages) that this process is sending, and how many of them belong to each app. */

export class DeliveryTracker {
  private readonly running = new Map<number, { appId: number; done: Promise<void> }>();
  private readonly stopController = new AbortController();
  private isDraining = false;
  private endListener: () => void = () => undefined;
  /** Signal that aborts when the running deliveries must stop. */
  readonly signal = this.stopController.signal;

  constructor(private readonly maxDeliveries: number) {}

  listIds(): number[] {
    return [...this.running.keys()];
  }

  /** Returns how many further deliveries this process can start; 0 while the process is stopping. */
  countFree(): number {
    return this.isDraining ? 0 : this.maxDeliveries - this.running.size;
  }

  /** Returns the IDs of the apps with running deliveries and the number of deliveries for each, as two lists for SQL parameters. */
  countByApp(): [apps: number[], counts: number[]] {
    const counts = new Map<number, number>();
    for (const { appId } of this.running.values()) counts.set(appId, (counts.get(appId) ?? 0) + 1);
    return [[...counts.keys()], [...counts.values()]];
  }

  /**
   * Counts a delivery as running until `sending` settles.
   * @param sending promise of the delivery; it must never reject, so the sender must handle its own errors
   */
  trackDelivery({ id, appId }: { id: number; appId: number }, sending: Promise<void>): void {
    const done = sending.finally(() => {
      this.running.delete(id);
      this.endListener();
    });
    this.running.set(id, { appId, done });
  }

  /** Sets the function to call when a running delivery has ended. */
  onDeliveryEnd(listener: () => void): void {
    this.endListener = listener;
  }

  /** Accepts no more deliveries, and resolves when none is running. When `forceStop` aborts, aborts the running deliveries. */
  async drain(forceStop: AbortSignal): Promise<void> {
    this.isDraining = true;
    const stopAll = () => this.stopController.abort();
    if (forceStop.aborted) stopAll();
    forceStop.addEventListener("abort", stopAll, { once: true });
    await Promise.all([...this.running.values()].map(({ done }) => done));
  }
}
