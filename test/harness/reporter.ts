/** mocha's spec report, and its sum as the very last line: `N passed, N failed`. */
import Mocha from "mocha";

class SumReporter extends Mocha.reporters.Spec {
  override epilogue(): void {
    super.epilogue();
    const { passes, failures } = this.stats;
    // Whoever runs several checks hears the figures and prints one line for all of them.
    if (process.send) process.send({ passes, failures });
    else process.stdout.write(`${passes} passed, ${failures} failed\n`);
  }
}

// mocha loads a reporter by require(), which hands over the export of this name.
export { SumReporter as "module.exports" };
