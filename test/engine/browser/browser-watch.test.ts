/** Tests when the service measures the browser's processes: only if a run is active both before and after a short delay. */
import { expect } from "chai";
import { isStillActiveAfterDelay } from "../../../src/engine/browser/watch/browser-watch.js";

function createAnswers(...answers: readonly boolean[]) {
  let asked = 0;
  return { active: () => answers[asked++]!, asked: () => asked };
}

describe("the list of runs in progress for a check of the browser", () => {
  it("contains runs that last", async () => {
    expect(await isStillActiveAfterDelay(createAnswers(true, true).active)).to.equal(true);
  });

  it("does not contain runs that end in the meantime, because the check would disturb them", async () => {
    expect(await isStillActiveAfterDelay(createAnswers(true, false).active)).to.equal(false);
  });

  it("is empty at once if there are none", async () => {
    const { active, asked } = createAnswers(false, true);
    expect(await isStillActiveAfterDelay(active)).to.equal(false);
    expect(asked()).to.equal(1);
  });
});
