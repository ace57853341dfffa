/** Tests that the benchmark can measure each of its figures. Measures one round of each, and ignores the values. */
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { FIGURE_LOADERS } from "../../bench/figures.js";
import { readResults } from "../../bench/report/results.js";
import { freshFolder, ROOT } from "../harness/reader.js";

describe("the benchmark", function () {
  this.timeout(600_000);
  const folder = freshFolder();
  const resultsFile = join(folder, "results.json");
  after(() => rmSync(folder, { recursive: true }));

  for (const figure of Object.keys(FIGURE_LOADERS)) {
    it(`measures ${figure}`, async () => {
      const args = ["--no-node-snapshot", "dist/bench/main.js", figure, "--rounds", "1", "--into", resultsFile];
      await promisify(execFile)(process.execPath, args, { cwd: ROOT });
      expect(readResults(resultsFile)[figure]?.rows).to.not.be.empty;
    });
  }
});
