/** Tests the fair semaphore. It gives free slots to the waiting keys in turn. */
import { expect } from "chai";
import { FairSemaphore } from "../../src/engine/fair-semaphore.js";

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a fair semaphore", () => {
  it("gives each key at most its slots, and others theirs at once", async () => {
    const semaphore = new FairSemaphore(3, 1);
    const entered: number[] = [];
    const enter = (key: number) => semaphore.enter(key).then(() => entered.push(key));
    for (const key of [1, 1, 1, 2, 2, 3]) void enter(key);
    await settled();
    expect(entered).to.deep.equal([1, 2, 3]);
  });

  it("gives a key at most half of what others leave, if shares are halved", async () => {
    const semaphore = new FairSemaphore(8, 8, "halved");
    const entered: number[] = [];
    for (const key of [1, 2, 3, 4]) {
      for (let time = 0; time < 8; time += 1) void semaphore.enter(key).then(() => entered.push(key));
    }
    await settled();
    expect(entered).to.deep.equal([1, 1, 1, 1, 2, 2, 3, 4]);
  });

  it("removes a request from the queue when its signal aborts", async () => {
    const semaphore = new FairSemaphore(1, 1);
    const release = await semaphore.enter(1);
    const [first, second] = [new AbortController(), new AbortController()];
    const entered: string[] = [];
    const enter = (name: string, { signal }: AbortController) =>
      semaphore
        .enter(1, () => signal)
        .then(
          () => entered.push(name),
          (reason: Error) => entered.push(reason.message),
        );
    const waiting = [enter("first", first), enter("second", second)];
    first.abort(new Error("gone"));
    await waiting[0];
    release();
    await waiting[1];
    expect(entered).to.deep.equal(["gone", "second"]);
    expect(
      await semaphore.enter(2, () => AbortSignal.abort(new Error("late"))).catch((error: Error) => error.message),
    ).to.equal("late");
  });

  it("rotates over keys, however often each one asks", async () => {
    const semaphore = new FairSemaphore(1, 1);
    const entered: number[] = [];
    const first = await semaphore.enter(1);
    const done = [1, 1, 1, 2, 2, 3].map((key) =>
      semaphore.enter(key).then((release) => {
        entered.push(key);
        release();
      }),
    );
    first();
    first();
    await Promise.all(done);
    expect(entered).to.deep.equal([1, 2, 3, 1, 2, 1]);
  });

  for (const shares of ["equal", "halved"] as const) {
    it(`lets no caller wait whose key may get a slot, if shares are ${shares}`, async () => {
      const [slots, slotsOfKey, keys] = [8, 6, [1, 2, 3, 4]];
      const semaphore = new FairSemaphore(slots, slotsOfKey, shares);
      const holders: { key: number; release: () => void }[] = [];
      const waiting: { key: number; abort: AbortController }[] = [];
      const countOf = (key: number) => holders.filter((caller) => caller.key === key).length;
      const mayEnter = (key: number) => {
        const others = holders.length - countOf(key);
        const share = shares === "equal" ? slots : Math.ceil((slots - others) / 2);
        return holders.length < slots && countOf(key) < Math.min(slotsOfKey, share);
      };
      const enter = (key: number) => {
        const caller = { key, abort: new AbortController() };
        waiting.push(caller);
        const stopWaiting = () => waiting.splice(waiting.indexOf(caller), 1);
        semaphore
          .enter(key, () => caller.abort.signal)
          .then((release) => {
            stopWaiting();
            holders.push({ key, release });
          }, stopWaiting);
      };
      let random = 1;
      const randomBelow = (limit: number) => {
        random = (random * 48_271) % 2_147_483_647;
        return random % limit;
      };
      for (let step = 0; step < 3_000; step += 1) {
        const operation = randomBelow(5);
        if (operation < 2 && waiting.length < 20) enter(keys[randomBelow(keys.length)]!);
        else if (operation < 4 && holders.length > 0) holders.splice(randomBelow(holders.length), 1)[0]!.release();
        else if (waiting.length > 0) waiting[randomBelow(waiting.length)]!.abort.abort();
        await settled();
        const state = `step ${step}: ${keys.map((key) => `${key} holds ${countOf(key)}`).join(", ")}`;
        expect(
          waiting.filter(({ key }) => mayEnter(key)),
          state,
        ).to.deep.equal([]);
      }
    });
  }
});
