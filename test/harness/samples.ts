/**
 * Selects the generated cases and the tests that `npm test` runs. The long tests set ALL_SAMPLES, and then run all cases and tests.
 */

/** True in the long tests. A function, because a long test can set the variable after other files have loaded this module. */
export const runsAll = () => Boolean(process.env["ALL_SAMPLES"]);

/** Returns each `step`-th item, from index `first % step` on. In the long tests, returns all items. */
export function sampleOf<T>(items: readonly T[], first: number, step: number): T[] {
  return runsAll() ? [...items] : items.filter((_item, at) => at % step === first % step);
}

/** Returns the number of random cases of a test: a fifth of `all` in `npm test`, `all` in the long tests. */
export const caseCount = (all: number): number => (runsAll() ? all : Math.ceil(all / 5));

/** Declares a test that only the long tests run, in a file whose other tests also run in `npm test`. */
export function longTest(title: string, body: Mocha.AsyncFunc | Mocha.Func): void {
  if (runsAll()) it(title, body);
}
