/** Checks that the scan agrees with its oracle in generated texts. A test in test/long runs many more. */
import { expectSameVerdicts } from "./secret-texts.js";

const TEXTS = 60;

describe("the scan for secrets and its reference", () => {
  it(`agree on ${TEXTS} generated texts`, () => expectSameVerdicts(TEXTS));
});
