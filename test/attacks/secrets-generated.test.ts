/** Compares the scan with its oracle on generated texts. A test in test/long uses many more texts. */
import { expectSameVerdicts } from "./secret-texts.js";

const TEXT_COUNT = 60;

describe("the scan for secrets and its reference", () => {
  it(`agree on ${TEXT_COUNT} generated texts`, () => expectSameVerdicts(TEXT_COUNT));
});
