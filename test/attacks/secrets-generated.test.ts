/** The scan finds a secret where its oracle does, and nowhere else, in generated texts; a long test throws many more. */
import { expectSameVerdicts } from "./secret-texts.js";

const TEXTS = 200;

describe("the scan and its oracle", () => {
  it(`say the same of ${TEXTS} generated texts`, () => expectSameVerdicts(TEXTS));
});
