/** The scan agrees with its oracle in generated texts; a test in test/long runs many more. */
import { expectSameVerdicts } from "./secret-texts.js";

const TEXTS = 200;

describe("the scan and its oracle", () => {
  it(`say the same of ${TEXTS} generated texts`, () => expectSameVerdicts(TEXTS));
});
