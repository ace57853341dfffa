/** Catches the error of a rule, for tests of its status and message. */
import { expect } from "chai";
import { ActionError, type Status } from "../../src/errors.js";

export function refusal(status: Status, act: () => unknown): string {
  let thrown: unknown;
  try {
    act();
  } catch (error) {
    thrown = error;
  }
  expect(thrown, `expected ${status}, nothing was thrown`).to.be.instanceOf(ActionError);
  const error = thrown as ActionError;
  expect(error.status, error.message).to.equal(status);
  return error.message;
}
