/**
 * Checks that each subscription ends within a second after its caller loses the right. Runs all cases of
 * test/service/subscription-ends.test.ts with this limit.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "chai";

const MATRIX = "dist/test/service/subscription-ends.test.js";

describe("a subscription that loses its right", () => {
  it("ends within a second, for each subscription and each way to lose the right", async () => {
    const flags = ["--no-node-snapshot", "--enable-source-maps", "node_modules/mocha/bin/mocha.js"];
    const mocha = spawn(process.execPath, [...flags, MATRIX], {
      env: { ...process.env, ENDS_WITHIN_MS: "1000", ALL_SAMPLES: "1" },
      stdio: "inherit",
    });
    const [code] = await once(mocha, "close");
    expect(code).to.equal(0);
  });
});
