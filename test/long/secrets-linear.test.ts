/** Checks that a scan for secrets takes time linear in the size of the text, for any content of text and secrets. Counts steps, not time. */
import { expect } from "chai";
import { SecretScan } from "../../src/engine/secret-scan/scan.js";
import { findSecretsInSettingValue } from "../../src/rules/secrets.js";
import { KB, numbered, SECRETS, textsOf } from "../attacks/scan-worst-cases.js";

/** Maximum number of steps of the scan for each byte of text. */
const STEPS_PER_BYTE = 24;

describe("the scan for secrets", () => {
  for (const [kind, setting] of Object.entries(SECRETS)) {
    it(`needs steps in proportion to the text, with ${kind} as secrets`, () => {
      const scan = new SecretScan(findSecretsInSettingValue("_x", setting));
      for (const [name, text] of Object.entries(textsOf(64 * KB))) {
        const before = scan.countSteps();
        scan.findInJson(text);
        const steps = scan.countSteps() - before;
        expect(steps / Buffer.byteLength(text), name).to.be.below(STEPS_PER_BYTE);
      }
    });
  }

  it("finds each of 9,000 strings with a common prefix, and no string that only has the prefix", () => {
    const values = numbered(9000, "AAAA");
    const scan = new SecretScan(findSecretsInSettingValue("_x", values));
    for (const value of values.filter((_, i) => i % 500 === 0)) expect(scan.findInJson(`["${value}"]`)).to.equal("_x");
    expect(scan.findInJson(JSON.stringify(values.map((value) => value.slice(0, -1))))).to.equal(null);
  });
});
