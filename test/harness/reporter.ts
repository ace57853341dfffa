/** mocha's spec report, and its sum as the very last line: `N passed, N failed`. */
import { relative } from "node:path";
import Mocha from "mocha";

/** A failed test as whoever runs several checks repeats it at the end of all their output. */
function failureOf(test: Mocha.Test): { title: string; file: string; message: string } {
  // A hook bears no file of its own.
  const file = test.file ?? test.parent?.file ?? "";
  return {
    title: test.fullTitle(),
    file: relative(process.cwd(), file),
    message: String(test.err?.message ?? test.err),
  };
}

class SumReporter extends Mocha.reporters.Spec {
  override epilogue(): void {
    super.epilogue();
    const { passes, failures } = this.stats;
    // Whoever runs several checks hears the figures and prints one line for all of them.
    if (process.send) process.send({ passes, failures, failed: this.failures.map(failureOf) });
    else process.stdout.write(`${passes} passed, ${failures} failed\n`);
  }
}

// mocha loads a reporter by require(), which hands over the export of this name.
export { SumReporter as "module.exports" };
