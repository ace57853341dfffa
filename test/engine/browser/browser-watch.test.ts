/** When a browser's processes are looked at. */
import { expect } from "chai";
import { lasts } from "../../../src/engine/browser/watch/browser-watch.js";

/** Answers what it is to say, one after the other, and how often it was asked. */
function said(...answers: readonly boolean[]) {
  let asked = 0;
  return { active: () => answers[asked++]!, asked: () => asked };
}

describe("runs under way, as a look at the browser has them", () => {
  it("are those that last", async () => {
    expect(await lasts(said(true, true).active)).to.equal(true);
  });

  it("are not those that end in the meantime, whose way a look would be in", async () => {
    expect(await lasts(said(true, false).active)).to.equal(false);
  });

  it("are none where there is none, at once", async () => {
    const { active, asked } = said(false, true);
    expect(await lasts(active)).to.equal(false);
    expect(asked()).to.equal(1);
  });
});
