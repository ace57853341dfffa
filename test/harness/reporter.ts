/** Mocha reporter: prints the report "spec", and then the line `N passed, N failed`, or sends these totals to a parent process. */
import { relative } from "node:path";
import Mocha from "mocha";

/** Describes a failed test for scripts/test.mjs, which runs several checks and repeats the failures at the end. */
function describeFailure(test: Mocha.Test): { title: string; file: string; message: string } {
  // A failed hook has no `file`, but the suite of the hook has one.
  const file = test.file ?? test.parent?.file ?? "";
  return {
    title: test.fullTitle(),
    file: relative(process.cwd(), file),
    message: String(test.err?.message ?? test.err),
  };
}

class SummaryReporter extends Mocha.reporters.Spec {
  override epilogue(): void {
    super.epilogue();
    const { passes, failures } = this.stats;
    // scripts/test.mjs receives the totals by IPC, and prints one line for all its checks.
    if (process.send) process.send({ passes, failures, failed: this.failures.map(describeFailure) });
    else process.stdout.write(`${passes} passed, ${failures} failed\n`);
  }
}

// mocha loads a reporter by require(), which returns the export with this name.
export { SummaryReporter as "module.exports" };
