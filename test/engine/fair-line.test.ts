/** Turns by key before few places. */
import { expect } from "chai";
import { createFairLine } from "../../src/engine/fair-line.js";

/** Lets all that is settled go on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a fair line", () => {
  it("gives no key more than its places, and the others theirs at once", async () => {
    const line = createFairLine(3, 1);
    const entered: number[] = [];
    const enter = (key: number) => line.enter(key).then(() => entered.push(key));
    for (const key of [1, 1, 1, 2, 2, 3]) void enter(key);
    await settled();
    expect(entered).to.deep.equal([1, 2, 3]);
  });

  it("lets keys take turns, whoever asked how often", async () => {
    const line = createFairLine(1, 1);
    const entered: number[] = [];
    const first = await line.enter(1);
    const done = [1, 1, 1, 2, 2, 3].map((key) =>
      line.enter(key).then((leave) => {
        entered.push(key);
        leave();
      }),
    );
    first();
    first();
    await Promise.all(done);
    expect(entered).to.deep.equal([1, 2, 3, 1, 2, 1]);
  });
});
