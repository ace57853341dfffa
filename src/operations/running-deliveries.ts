/** Tracks the deliveries that this process has in progress, and their number for each app. */

export type RunningDeliveries = ReturnType<typeof createRunningDeliveries>;

/** @param maxDeliveries maximum number in total */
export function createRunningDeliveries(maxDeliveries: number) {
  const running = new Map<number, { appId: number; done: Promise<void> }>();
  const stopController = new AbortController();
  let isDraining = false;
  let onFree: () => void = () => undefined;

  return {
    /** Aborts when running deliveries must stop. */
    signal: stopController.signal,
    ids: (): number[] => [...running.keys()],

    /** Returns the number of free slots; 0 while the process stops. */
    free: (): number => (isDraining ? 0 : maxDeliveries - running.size),

    /** Returns the apps with deliveries in progress, and their numbers, as two lists for SQL parameters. */
    byApp(): [apps: number[], counts: number[]] {
      const counts = new Map<number, number>();
      for (const { appId } of running.values()) counts.set(appId, (counts.get(appId) ?? 0) + 1);
      return [[...counts.keys()], [...counts.values()]];
    },

    /**
     * Tracks a delivery until `sending` settles.
     * @param sending promise that never rejects, because the sender reports its errors itself
     */
    trackDelivery({ id, appId }: { id: number; appId: number }, sending: Promise<void>): void {
      const done = sending.finally(() => {
        running.delete(id);
        onFree();
      });
      running.set(id, { appId, done });
    },

    /** Sets the listener that is called when a slot becomes free. */
    whenFree(listener: () => void): void {
      onFree = listener;
    },

    /**
     * Accepts no more deliveries, and resolves when none is in progress. When `forceStop` aborts, the deliveries in
     * progress are aborted.
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
