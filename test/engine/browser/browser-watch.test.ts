/** Tests when the service measures the browser's processes: only if a run is active both before and after a short delay. */
import { expect } from "chai";
import { isStillActiveAfterDelay } from "../../../src/engine/browser/watch/browser-watch.js";

function createAnswers(...answers: readonly boolean[]) {
  let calls = 0;
  return { active: () => answers[calls++]!, calls: () => calls };
}

describe("the list of runs in progress for a check of the browser", () => {
  it("contains runs that last", async () => {
    expect(await isStillActiveAfterDelay(createAnswers(true, true).active)).to.equal(true);
  });

  it("does not contain runs that end in the meantime, because the check would disturb them", async () => {
    expect(await isStillActiveAfterDelay(createAnswers(true, false).active)).to.equal(false);
  });

  it("is empty at once if there are none", async () => {
    const { active, calls } = createAnswers(false, true);
    expect(await isStillActiveAfterDelay(active)).to.equal(false);
    expect(calls()).to.equal(1);
  });
});
