/** Checks that a run's console and error stacks show no stack frames of the service's own code in the page. */
import { expect } from "chai";
import { HARNESS_SOURCE_NAME, parsePageAnswer, removeHarnessFrames } from "../../../src/engine/browser/pages/answer.js";

const HARNESS = `    at run (${HARNESS_SOURCE_NAME}:12:7)`;

describe("stack frames of the harness", () => {
  it("are removed with their line break, and the following frame stays", () => {
    const stack = `Error: a\n    at execute (shop.js:1:2)\n${HARNESS}\n    at ${HARNESS_SOURCE_NAME}:3:4`;
    expect(removeHarnessFrames(stack)).to.equal("Error: a\n    at execute (shop.js:1:2)");
    expect(removeHarnessFrames(`Error: a\n${HARNESS} {"b": 1}\nmore`)).to.equal('Error: a {"b": 1}\nmore');
    expect(removeHarnessFrames(`about ${HARNESS_SOURCE_NAME}:1:2\nand ${HARNESS_SOURCE_NAME}`)).to.include(
      HARNESS_SOURCE_NAME,
    );
  });

  it("are found in texts of line breaks and spaces", () => {
    for (const part of ["\n", "\n    at ", " ", `\n    at ${HARNESS_SOURCE_NAME}:`]) {
      const text = `${part.repeat(100_000 / part.length)}\n${HARNESS}`;
      expect(removeHarnessFrames(text).length, JSON.stringify(part)).to.equal(text.length - HARNESS.length - 1);
    }
  });

  it("and those of the evaluation are in no stack", () => {
    const stack = "Error: a\n    at eval (shop.js:1:2)\n    at eval (<anonymous>)\n    at x (b.js:1:1)";
    const answer = parsePageAnswer(`error ${JSON.stringify({ name: "Error", message: "a", stack, cause: "script" })}`);
    expect(answer).to.have.nested.property("error.stack", "Error: a\n    at shop.js:1:2\n    at x (b.js:1:1)");
  });
});
