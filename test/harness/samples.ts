/** Samples of generated cases: some of them in the gate, all of them in test/long (all-samples, subscription-ends). */

/** Returns every `step`-th item from `first` on; other values of `first` cover the rest. Returns all items in the long tests. */
export function sampleOf<T>(items: readonly T[], first: number, step: number): T[] {
  if (process.env["ALL_SAMPLES"]) return [...items];
  return items.filter((_item, at) => at % step === first % step);
}
