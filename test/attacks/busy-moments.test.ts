/** Checks that the service accepts code later if a busy machine could not check it in time: such a rejection is not cached. */
import { expect } from "chai";
import { ActionError } from "../../src/errors.js";
import { CodeChecker } from "../../src/operations/actions/code-checker.js";

const CODE = "async function execute() { return 1 }";

describe("code that was rejected while the machine was busy", () => {
  it("is accepted at the next save, by its own app and by another", async () => {
    let busy = true;
    const codeChecker = new CodeChecker(async () => {
      if (busy) throw new ActionError("CODE_VALIDATION_FAILED", "code takes longer than 1000 ms to compile");
    });
    const faults = async () =>
      Promise.all([1, 2].map(async (appId) => (await codeChecker.check(appId, CODE)).compileError?.message ?? null));
    expect((await faults())[0]).to.match(/longer/);
    busy = false;
    expect(await faults()).to.deep.equal([null, null]);
  });
});
