/** Timers of a run, which are cleared when the run ends. Runs in the worker of a network isolate, outside of the realm. */
import type { Any } from "./any.js";

declare const self: Any;

export type WorkerTimers = ReturnType<typeof createWorkerTimers>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createWorkerTimers() {
  const { clearTimeout } = self;
  const { apply } = Reflect;

  return () => {
    const timers = new Set<number>();
    /** ID of the thread's last timer before the run. The run's timer IDs are relative to this ID, so that they start at 1. */
    const lastIdBeforeRun = self.setTimeout(() => {});
    clearTimeout(lastIdBeforeRun);

    return {
      /** Starts a timer and returns its ID. `kind` is `setTimeout` or `setInterval`. */
      start(kind: string, values: readonly Any[]): number {
        if (values.length === 0) return self[kind]();
        const [work, ms, ...parameters] = values;
        // A `work` that is no function is only converted to text, which may throw. Its code would run outside of the realm.
        if (typeof work !== "function") void `${work}`;
        const handleTimer = () => {
          if (kind === "setTimeout") timers.delete(id);
          try {
            if (typeof work === "function") apply(work, self, parameters);
          } catch {
            // Ignores errors of the callback, as a worker does.
          }
        };
        const id: number = self[kind](handleTimer, ms);
        timers.add(id);
        return id - lastIdBeforeRun;
      },

      stop(timerId: unknown): void {
        // Converts the timer ID to a 32-bit integer, as browsers do. Timeouts and intervals share one sequence of IDs.
        const id = lastIdBeforeRun + (+(timerId as number) | 0);
        if (timers.delete(id)) clearTimeout(id);
      },

      end(): void {
        for (const id of timers) clearTimeout(id);
      },
    };
  };
}
