/**
 * Tracks the deliveries (such as e-mails or push messages) that this process is sending, and how many of them belong to
 * each app.
 */

export type DeliveryTracker = ReturnType<typeof createDeliveryTracker>;

/**
 * Creates a tracker of running deliveries.
 * @param maxDeliveries maximum number of deliveries that this process sends at the same time
 */
export function createDeliveryTracker(maxDeliveries: number) {
  const running = new Map<number, { appId: number; done: Promise<void> }>();
  const stopController = new AbortController();
  let isDraining = false;
  let onFree: () => void = () => undefined;

  return {
    /** Signal that aborts when the running deliveries must stop. */
    signal: stopController.signal,
    ids: (): number[] => [...running.keys()],

    /** Returns how many further deliveries this process can start; 0 while the process is stopping. */
    countFree: (): number => (isDraining ? 0 : maxDeliveries - running.size),

    /**
     * Returns the IDs of the apps with running deliveries and the number of deliveries for each, as two lists for SQL
     * parameters.
     */
    byApp(): [apps: number[], counts: number[]] {
      const counts = new Map<number, number>();
      for (const { appId } of running.values()) counts.set(appId, (counts.get(appId) ?? 0) + 1);
      return [[...counts.keys()], [...counts.values()]];
    },

    /**
     * Counts a delivery as running until `sending` settles.
     * @param sending promise that never rejects, because the sender reports its errors itself
     */
    trackDelivery({ id, appId }: { id: number; appId: number }, sending: Promise<void>): void {
      const done = sending.finally(() => {
        running.delete(id);
        onFree();
      });
      running.set(id, { appId, done });
    },

    /** Sets the function to call when a running delivery has ended. */
    whenFree(listener: () => void): void {
      onFree = listener;
    },

    /**
     * Accepts no more deliveries, and resolves when none is running. When `forceStop` aborts, aborts the running
     * deliveries.
     */
    async drain(forceStop: AbortSignal): Promise<void> {
      isDraining = true;
      const stopAll = () => stopController.abort();
      if (forceStop.aborted) stopAll();
      forceStop.addEventListener("abort", stopAll, { once: true });
      await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
}
