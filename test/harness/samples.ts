/**
 * Selects the generated cases and the tests that `npm test` runs. The long tests all-samples.test.ts and subscription-ends.test.ts run all
 * of them.
 */

/** True in the long tests. This is a function, because the long tests set the variable after other files have loaded this module. */
export const runsAll = () => Boolean(process.env["ALL_SAMPLES"]);

/**
 * Returns each `step`-th item, starting with item number `first`. Other values of `first` cover the remaining items. In the long tests
 * returns all items.
 */
export function sampleOf<T>(items: readonly T[], first: number, step: number): T[] {
  return runsAll() ? [...items] : items.filter((_item, at) => at % step === first % step);
}

/** Returns the number of random cases of a test: a fifth of `all` in `npm test`, `all` in the long tests. */
export const caseCount = (all: number): number => (runsAll() ? all : Math.ceil(all / 5));

/** Declares a test that only the long tests run. It shares the set-up of a file whose other tests run in `npm test`. */
export function longTest(title: string, body: Mocha.AsyncFunc | Mocha.Func): void {
  if (runsAll()) it(title, body);
}
