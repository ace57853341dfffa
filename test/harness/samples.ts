/** Selects some of the generated cases for the gate. The long tests run all cases (all-samples, subscription-ends). */

/**
 * Returns each `step`-th item, starting with item number `first`. Other values of `first` cover the remaining items. In the long tests
 * returns all items.
 */
export function sampleOf<T>(items: readonly T[], first: number, step: number): T[] {
  if (process.env["ALL_SAMPLES"]) return [...items];
  return items.filter((_item, at) => at % step === first % step);
}
