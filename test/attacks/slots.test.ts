/** Tests the slots of a dispatcher: how many slots malicious apps can hold, and how many remain for other apps. */
import { expect } from "chai";
import fc from "fast-check";
import { RUN_CHAIN_DEPTH_MAX } from "../../src/limits.js";
import { type Slot, Slots } from "../../src/operations/runs/slots.js";

const ORDINARY_SLOTS = 4;
const SLOTS_PER_APP_MAX = ORDINARY_SLOTS;

const createSlots = (ordinary: number) => new Slots(ordinary, () => {});

function acquireAll(slots: Slots, appId: number): Slot[] {
  const all: Slot[] = [];
  for (let next = slots.tryAcquire(appId); next; next = slots.tryAcquire(appId)) all.push(next);
  return all;
}

/** Acquires slots for queued runs of the app until the app has reached its limit. The queue contains no other runs. */
function acquireAllQueued(slots: Slots, appId: number): void {
  for (let hasClaimed = true; hasClaimed; ) {
    hasClaimed = slots.countFreeSlots() > 0 && (slots.getSlotCountByApp().get(appId) ?? 0) < slots.getSlotLimitOfApp();
    if (hasClaimed) slots.acquire(appId);
  }
}

/** Returns a nested slot; null if none is free. */
const acquireFreeNested = (slots: Slots, appId: number, parent: Slot): Promise<Slot | null> =>
  Promise.race([slots.acquireNested(appId, parent), new Promise<null>((resolve) => setImmediate(resolve, null))]);

/** For each of the app's slots, tries to acquire 40 slots for nested runs, and 40 more for each slot that it gets in this way. */
async function acquireAllNested(slots: Slots, appId: number, from: readonly Slot[]): Promise<Slot[]> {
  const nested: Slot[] = [];
  const all = [...from];
  for (const parent of all) {
    // A run at this level cannot start further runs.
    if (parent.level === RUN_CHAIN_DEPTH_MAX) continue;
    for (let count = 0; count < 40; count += 1) {
      const slot = await acquireFreeNested(slots, appId, parent);
      if (!slot) continue;
      nested.push(slot);
      all.push(slot);
    }
  }
  return nested;
}

describe("the slots of a dispatcher", () => {
  for (const ordinary of [1, 2, 4, 16]) {
    it(`leave some for a fourth app whatever three apps use, with RUNNER_CONCURRENCY ${ordinary}`, () => {
      for (const acquireSlots of [acquireAll, acquireAllQueued]) {
        const slots = createSlots(ordinary);
        for (const hostile of [1, 2, 3]) acquireSlots(slots, hostile);
        for (const hostile of [1, 2, 3]) expect(slots.tryAcquire(hostile)).to.equal(null);
        const share = Math.max(1, Math.min(2, ordinary - 1));
        expect(acquireAll(slots, 4)).to.have.length.at.least(share);
      }
    });
  }

  it("are at least one for each of nine apps, and never more than four times RUNNER_CONCURRENCY in total", () => {
    const slots = createSlots(ORDINARY_SLOTS);
    const apps = Array.from({ length: 9 }, (_, index) => index + 1);
    for (const appId of apps) expect(acquireAll(slots, appId)).to.have.length.at.least(1);
    for (let appId = 10; appId < 100; appId += 1) acquireAll(slots, appId);
    const all = [...slots.getSlotCountByApp().values()].reduce((sum, count) => sum + count, 0);
    expect(all).to.equal(4 * ORDINARY_SLOTS);
    expect([...slots.getSlotCountByApp().values()].every((count) => count <= SLOTS_PER_APP_MAX)).to.equal(true);
  });

  it("are nested for at most a share of runs and one chain, even if every run of an app waits for forty others", async () => {
    const slots = createSlots(ORDINARY_SLOTS);
    const ordinary = acquireAll(slots, 1);
    expect(ordinary).to.have.length(SLOTS_PER_APP_MAX);
    expect(await acquireAllNested(slots, 1, ordinary)).to.have.length(SLOTS_PER_APP_MAX + RUN_CHAIN_DEPTH_MAX - 1);
    const other = slots.tryAcquire(2)!;
    expect(await acquireAllNested(slots, 2, [other])).to.have.length(SLOTS_PER_APP_MAX + RUN_CHAIN_DEPTH_MAX - 1);
  });

  it("let every chain of runs end, in whatever order its runs get slots", async () => {
    const chains = fc.array(fc.integer({ min: 1, max: RUN_CHAIN_DEPTH_MAX }), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(chains, async (depths) => {
        const slots = createSlots(2);
        const ordinary = slots.tryAcquire(1)!;
        let ended = 0;
        // Each run holds its slot until the next run of its chain has ended.
        const run = async (slot: Slot, left: number): Promise<void> => {
          if (left > 0) await run(await slots.acquireNested(1, slot), left - 1);
          slot.free();
          ended += 1;
        };
        await Promise.all(depths.map((depth) => slots.acquireNested(1, ordinary).then((slot) => run(slot, depth - 1))));
        ordinary.free();
        expect(slots.isAnySlotUsed()).to.equal(false);
        expect(ended).to.equal(depths.reduce((sum, depth) => sum + depth, 0));
      }),
    );
  });

  it("are fewer for one app the more are in use: RUNNER_CONCURRENCY, then two, then one", () => {
    const shares = (ordinary: number) => {
      const slots = createSlots(ordinary);
      const seen: number[] = [];
      for (let app = 1; slots.tryAcquire(app); app += 1) seen.push(slots.getSlotLimitOfApp());
      expect([slots.countFreeSlots(), seen.length]).to.deep.equal([0, slots.totalSlots]);
      return seen;
    };
    expect(shares(1)).to.deep.equal([1, 1, 1, 1]);
    expect(shares(2)).to.deep.equal([...Array(5).fill(2), ...Array(3).fill(1)]);
    expect(shares(4)).to.deep.equal([...Array(3).fill(4), ...Array(8).fill(2), ...Array(5).fill(1)]);
  });

  it("count for their app until they are released; a reserved one counts for every app", () => {
    const slots = createSlots(ORDINARY_SLOTS);
    expect([slots.getSlotLimitOfApp(), slots.countFreeSlots(), slots.canAcquire(1)]).to.deep.equal([4, 16, true]);
    const ordinary = Array.from({ length: 3 }, () => slots.tryAcquire(1, 1)!);
    expect([ordinary[0]!.level, slots.tryAcquire(1, 1), slots.isAnyAppAtLimit()]).to.deep.equal([0, null, false]);
    ordinary.push(slots.acquire(1));
    expect([slots.getSlotCountByApp().get(1), slots.isAnyAppAtLimit(), slots.canAcquire(1)]).to.deep.equal([
      4,
      true,
      false,
    ]);
    for (const [left, slot] of ordinary.reverse().entries()) {
      slot.free();
      expect(slots.getSlotCountByApp().get(1)).to.equal([3, 2, 1, undefined][left]);
    }
    expect([slots.countFreeSlots(), slots.tryAcquire(2)!.level]).to.deep.equal([16, 0]);
  });

  it("allow an app a run as if a reserved slot were free, but keep this slot for the claimed run", () => {
    const slots = createSlots(1);
    for (const app of [1, 2, 3]) slots.tryAcquire(app);
    expect([slots.tryAcquire(4, 1), slots.canAcquire(4), slots.canAcquire(1)]).to.deep.equal([null, true, false]);
    slots.acquire(4);
    expect([slots.canAcquire(4), slots.canAcquire(5)]).to.deep.equal([false, false]);
  });

  it("are nested for all runs of an app on the first level, and for one on each further level", async () => {
    const slots = createSlots(ORDINARY_SLOTS);
    const [ordinary] = acquireAll(slots, 1);
    const first = await Promise.all([1, 2, 3, 4, 5].map(() => acquireFreeNested(slots, 1, ordinary!)));
    expect(first.map((slot) => slot?.level)).to.deep.equal([1, 1, 1, 1, undefined]);
    const second = await Promise.all([first[0]!, first[1]!].map((parent) => acquireFreeNested(slots, 1, parent)));
    expect(second.map((slot) => slot?.level)).to.deep.equal([2, undefined]);
  });

  it("are not empty while any is in use, also if it is nested", async () => {
    for (const freedFirst of ["own", "nested"] as const) {
      const slots = createSlots(2);
      const ordinary = slots.tryAcquire(1)!;
      const nested = await slots.acquireNested(1, ordinary);
      expect(nested.level).to.equal(1);
      const [first, last] = freedFirst === "own" ? [ordinary, nested] : [nested, ordinary];
      expect(slots.isAnySlotUsed()).to.equal(true);
      first.free();
      expect(slots.isAnySlotUsed()).to.equal(true);
      last.free();
      expect(slots.isAnySlotUsed()).to.equal(false);
    }
  });

  it("report when one is free, and whether any is in use", async () => {
    let calls = 0;
    const slots = new Slots(1, () => (calls += 1));
    const acquired = [1, 2, 3, 4].map((appId) => slots.tryAcquire(appId)!);
    expect(slots.tryAcquire(5)).to.equal(null);
    acquired[0]!.free();
    acquired[0]!.free();
    expect(calls).to.equal(1);
    const nested = await slots.acquireNested(2, acquired[1]!);
    for (const slot of acquired) slot.free();
    expect(slots.getSlotCountByApp().size).to.equal(0);
    expect(slots.isAnySlotUsed()).to.equal(true);
    nested.free();
    expect(slots.isAnySlotUsed()).to.equal(false);
  });
});
