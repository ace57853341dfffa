/** Tests the fair semaphore: it gives free slots to the waiting keys in turn. */
import { expect } from "chai";
import { FairSemaphore } from "../../src/engine/fair-semaphore.js";

/** Waits until the callbacks of settled promises have run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a fair semaphore", () => {
  it("gives each key at most its slots, and others theirs at once", async () => {
    const line = new FairSemaphore(3, 1);
    const entered: number[] = [];
    const enter = (key: number) => line.enter(key).then(() => entered.push(key));
    for (const key of [1, 1, 1, 2, 2, 3]) void enter(key);
    await settled();
    expect(entered).to.deep.equal([1, 2, 3]);
  });

  it("gives a key at most half of what others leave, if shares are halved", async () => {
    const line = new FairSemaphore(8, 8, "halved");
    const entered: number[] = [];
    for (const key of [1, 2, 3, 4]) {
      for (let time = 0; time < 8; time += 1) void line.enter(key).then(() => entered.push(key));
    }
    await settled();
    expect(entered).to.deep.equal([1, 1, 1, 1, 2, 2, 3, 4]);
  });

  it("removes a request from the queue when its signal aborts", async () => {
    const line = new FairSemaphore(1, 1);
    const leave = await line.enter(1);
    const [first, second] = [new AbortController(), new AbortController()];
    const entered: string[] = [];
    const enter = (name: string, { signal }: AbortController) =>
      line
        .enter(1, () => signal)
        .then(
          () => entered.push(name),
          (reason: Error) => entered.push(reason.message),
        );
    const waiting = [enter("first", first), enter("second", second)];
    first.abort(new Error("gone"));
    await waiting[0];
    leave();
    await waiting[1];
    expect(entered).to.deep.equal(["gone", "second"]);
    expect(
      await line.enter(2, () => AbortSignal.abort(new Error("late"))).catch((error: Error) => error.message),
    ).to.equal("late");
  });

  it("rotates over keys, however often each one asks", async () => {
    const line = new FairSemaphore(1, 1);
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
