/** Tracks the deliveries that this process has in progress, and their number for each app. */

export type RunningDeliveries = ReturnType<typeof createRunningDeliveries>;

/** @param maxDeliveries maximum number in total */
export function createRunningDeliveries(maxDeliveries: number) {
  const heldWork = new Map<number, { appId: number; done: Promise<void> }>();
  const hurrySignal = new AbortController();
  let isDraining = false;
  let onFree: () => void = () => undefined;

  return {
    /** Aborts when running deliveries must stop. */
    signal: hurrySignal.signal,
    ids: (): number[] => [...heldWork.keys()],

    /** Returns the number of free slots; 0 while the process stops. */
    free: (): number => (isDraining ? 0 : maxDeliveries - heldWork.size),

    /** Returns the apps with deliveries in progress, and their numbers, as two lists for SQL parameters. */
    byApp(): [apps: number[], counts: number[]] {
      const counts = new Map<number, number>();
      for (const { appId } of heldWork.values()) counts.set(appId, (counts.get(appId) ?? 0) + 1);
      return [[...counts.keys()], [...counts.values()]];
    },

    /**
     * Tracks a delivery until `sending` settles.
     * @param sending promise that never rejects, because the sender reports its errors itself
     */
    trackDelivery({ id, appId }: { id: number; appId: number }, sending: Promise<void>): void {
      const done = sending.finally(() => {
        heldWork.delete(id);
        onFree();
      });
      heldWork.set(id, { appId, done });
    },

    /** Called when a slot becomes free. */
    whenFree(listener: () => void): void {
      onFree = listener;
    },

    /** Accepts no more deliveries, and resolves when none is in progress. When `impatient` aborts, the running ones are stopped. */
    async drain(impatient: AbortSignal): Promise<void> {
      isDraining = true;
      const hurryWork = () => hurrySignal.abort();
      if (impatient.aborted) hurryWork();
      impatient.addEventListener("abort", hurryWork, { once: true });
      await Promise.all([...heldWork.values()].map(({ done }) => done));
    },
  };
}
