/** Timers of one run, which end with it. Runs in the worker of a network isolate, where no code of actions runs. */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;
declare const self: Any;

export type HostTimers = ReturnType<typeof hostTimers>;

/** Evaluated by its source text, as `harnessCore`. Returns a function that creates the timers of one run. */
export function hostTimers() {
  const { clearTimeout } = self;

  return () => {
    const timers = new Set<number>();
    /** Last timer number of the thread before the run. The run's own numbers start at 1. */
    const before = self.setTimeout(() => {});
    clearTimeout(before);

    return {
      /** @param onFire calls the function of the realm @param values the delay is the second; none if the call had none */
      start(kind: string, onFire: () => void, values: readonly Any[]): number {
        if (values.length === 0) return self[kind]();
        const onTime = () => {
          if (kind === "setTimeout") timers.delete(id);
          onFire();
        };
        const id: number = self[kind](onTime, values[1]);
        timers.add(id);
        return id - before;
      },

      stop(number: number): void {
        // The platform converts it to a 32-bit integer. Both kinds of timers share their numbers.
        const id = before + (number | 0);
        if (timers.delete(id)) clearTimeout(id);
      },

      end(): void {
        for (const id of timers) clearTimeout(id);
      },
    };
  };
}
