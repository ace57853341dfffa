/** Timers and addresses of one run, which end with it. Runs inside the browser, in the worker, where no author's code does. */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

export type LentTimers = ReturnType<typeof lentTimers>;

/** As `harnessCore`: evaluated by its source text. */
export function lentTimers(converted: <T>(asked: string, work: () => T) => T) {
  const { URL, clearTimeout } = self;

  /** Of one run. */
  return () => {
    const timers = new Set<number>();
    const addresses = new Set<string>();
    /** The number of a timer before the run's first, which is 1 to it. */
    const before = self.setTimeout(() => {});
    clearTimeout(before);

    return {
      /** `ring`: does the realm's work, given the text of which to make it where there is one. Without values: none was given. */
      start(kind: string, ring: (text?: string) => void, hasWork: boolean, given: readonly Any[]): number {
        if (given.length === 0) return self[kind]();
        const text = hasWork ? undefined : converted(`'${kind}' on 'WorkerGlobalScope'`, () => `${given[0]}`);
        const onTime = () => {
          if (kind === "setTimeout") timers.delete(id);
          ring(text);
        };
        const id: number = self[kind](onTime, given[1]);
        timers.add(id);
        return id - before;
      },

      stop(kind: string, given: unknown): void {
        // As the platform makes a number of it.
        const id = before + (converted(`'${kind}' on 'WorkerGlobalScope'`, () => +(given as Any)) | 0);
        // Both kinds are of one row of numbers.
        if (timers.delete(id)) clearTimeout(id);
      },

      createObjectURL(...given: unknown[]): string {
        const address = URL.createObjectURL(...given);
        addresses.add(address);
        return address;
      },

      revokeObjectURL(...given: unknown[]): void {
        // It says what it lacks.
        if (given.length === 0) URL.revokeObjectURL();
        const address = converted("'revokeObjectURL' on 'URL'", () => `${given[0]}`);
        if (addresses.delete(address)) URL.revokeObjectURL(address);
      },

      end(): void {
        for (const id of timers) clearTimeout(id);
        for (const address of addresses) URL.revokeObjectURL(address);
      },
    };
  };
}
