import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { shareConcurrentReads } from "../../src/engine/shared-reads.js";

describe("shared reads", () => {
  let currentValue = 0;
  const started: string[] = [];
  /** Returns the value that `currentValue` had at the start of the read. The read fails if its key begins with "-". */
  const read = shareConcurrentReads(async (key: string) => {
    started.push(key);
    const found = currentValue;
    await turn();
    if (key.startsWith("-")) throw new Error(key);
    return { found };
  });
  beforeEach(() => {
    started.length = 0;
  });

  it("read once for all callers of one turn, and once for each key", async () => {
    const [first, second, other] = await Promise.all([read("a"), read("a"), read("b")]);
    expect(started).to.deep.equal(["a", "b"]);
    expect(second).to.equal(first);
    expect(other).not.to.equal(first);
  });

  it("give no caller a state from before its call, also while a read is in progress", async () => {
    currentValue = 1;
    const early = read("a");
    await turn();
    expect(started).to.deep.equal(["a"]);
    currentValue = 2;
    expect(await Promise.all([early, read("a")])).to.deep.equal([{ found: 1 }, { found: 2 }]);
  });

  it("see a change that was made before the last call", async () => {
    currentValue = 3;
    const early = read("a");
    currentValue = 4;
    expect(await Promise.all([early, read("a")])).to.deep.equal([{ found: 4 }, { found: 4 }]);
    expect(started).to.deep.equal(["a"]);
  });

  it("fail for all their callers, and the next call reads again", async () => {
    const outcomes = await Promise.allSettled([read("-"), read("-")]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    await Promise.allSettled([read("-")]);
    expect(started).to.deep.equal(["-", "-"]);
  });
});
