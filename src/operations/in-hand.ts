/** What a process that sends has in hand, each thing once and each of an app. Knows no table, and not what sending is. */

export type InHand = ReturnType<typeof createInHand>;

/** @param places in all */
export function createInHand(places: number) {
  const held = new Map<number, { appId: number; done: Promise<void> }>();
  const impatience = new AbortController();
  let draining = false;
  let onFree: () => void = () => undefined;

  return {
    /** Aborted where what is under way is to be given up. */
    signal: impatience.signal,
    ids: (): number[] => [...held.keys()],

    /** How many may still be taken; none while it drains. */
    free: (): number => (draining ? 0 : places - held.size),

    /** The apps that have something in hand, and how much each: as two lists, the way a statement takes them. */
    byApp(): [apps: number[], counts: number[]] {
      const counts = new Map<number, number>();
      for (const { appId } of held.values()) counts.set(appId, (counts.get(appId) ?? 0) + 1);
      return [[...counts.keys()], [...counts.values()]];
    },

    /** @param sending never rejects: the sender reports its errors itself */
    take({ id, appId }: { id: number; appId: number }, sending: Promise<void>): void {
      const done = sending.finally(() => {
        held.delete(id);
        onFree();
      });
      held.set(id, { appId, done });
    },

    /** To be called where a place becomes free. */
    whenFree(listener: () => void): void {
      onFree = listener;
    },

    /** Takes no more; resolves when nothing is in hand. With `impatient` aborted, what is under way is given up. */
    async drain(impatient: AbortSignal): Promise<void> {
      draining = true;
      const hurry = () => impatience.abort();
      if (impatient.aborted) hurry();
      impatient.addEventListener("abort", hurry, { once: true });
      await Promise.all([...held.values()].map(({ done }) => done));
    },
  };
}
