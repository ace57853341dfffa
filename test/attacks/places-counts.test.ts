/** Who gets a place of a runner, by counts alone: what apps that mean harm can hold, and what is left for others. */
import { expect } from "chai";
import fc from "fast-check";
import { CHAIN_DEPTH_MAX } from "../../src/limits.js";
import { createPlaces, type Place, type Places } from "../../src/operations/runs/places.js";

const ORDINARY = 4;
const MOST_OF_ONE = ORDINARY - 1;

/** All places that an app gets when nobody frees any. */
function takeAll(places: Places, appId: number): Place[] {
  const all: Place[] = [];
  for (let next = places.take(appId); next; next = places.take(appId)) all.push(next);
  return all;
}

/** The same by way of the queue: an app's own runs wait there alone. */
function takeAllQueued(places: Places, appId: number): void {
  let open = places.open();
  for (; open && (places.taken().get(appId) ?? 0) < open.share; open = places.open()) open.give(appId);
  open?.free();
}

/** Places beside others in every way that the app's runs can ask for them, each run for forty. */
function besideAll(places: Places, from: readonly Place[]): Place[] {
  const beside: Place[] = [];
  const all = [...from];
  for (const parent of all) {
    for (let count = 0; count < 40 && beside.length < 1_000; count += 1) {
      const one = places.beside(parent);
      if (!one) continue;
      beside.push(one);
      all.push(one);
    }
  }
  return beside;
}

describe("the places of a runner", () => {
  for (const ordinary of [1, 2, 4, 16]) {
    it(`are left for a fourth app whatever three apps hold, with RUNNER_CONCURRENCY ${ordinary}`, () => {
      for (const takeThem of [takeAll, takeAllQueued]) {
        const places = createPlaces(ordinary, () => {});
        for (const hostile of [1, 2, 3]) takeThem(places, hostile);
        for (const hostile of [1, 2, 3]) expect(places.take(hostile)).to.equal(null);
        const share = Math.max(1, Math.min(2, ordinary - 1));
        expect(takeAll(places, 4)).to.have.length.at.least(share);
      }
    });
  }

  it("are left for as many apps as there are three times the number beyond it", () => {
    const places = createPlaces(ORDINARY, () => {});
    const apps = Array.from({ length: 9 }, (_, index) => index + 1);
    for (const appId of apps) expect(takeAll(places, appId)).to.have.length.at.least(1);
    for (let appId = 10; appId < 100; appId += 1) takeAll(places, appId);
    const all = [...places.taken().values()].reduce((sum, count) => sum + count, 0);
    expect(all).to.equal(4 * ORDINARY);
    expect([...places.taken().values()].every((count) => count <= MOST_OF_ONE)).to.equal(true);
  });

  it("go beside a run that waits, one at a time", () => {
    const places = createPlaces(1, () => {});
    const parent = places.take(1)!;
    const child = places.beside(parent)!;
    expect(places.beside(parent)).to.equal(null);
    child.free();
    expect(places.beside(parent)).to.not.equal(null);
  });

  it("stay taken while something is left of what went beside them, so that leaving a run behind gains nothing", () => {
    const places = createPlaces(1, () => {});
    const parent = places.take(1)!;
    const child = places.beside(parent)!;
    const grandchild = places.beside(child)!;
    parent.free();
    child.free();
    expect(places.take(1)).to.equal(null);
    expect(places.beside(parent)).to.equal(null);
    grandchild.free();
    expect(places.take(1)).to.not.equal(null);
  });

  it("beside others are a bounded number for an app whose every run waits for forty others", () => {
    const places = createPlaces(ORDINARY, () => {});
    const own = takeAll(places, 1);
    expect(own).to.have.length(MOST_OF_ONE);
    const deepest = besideAll(places, own).length;
    // In truth a line ends where chains of causes do; here one grows for ever, and only one.
    expect([...new Set(own.map((place) => places.beside(place)))]).to.deep.equal([null]);
    expect(deepest).to.equal(1_000);
    const other = places.take(2)!;
    expect(places.beside(other)).to.not.equal(null);
  });

  it("hold no more, of what is beside others, than a share and one chain, and every chain comes to its end", () => {
    const steps = fc.array(fc.record({ tree: fc.nat(2), ends: fc.boolean() }), { maxLength: 300 });
    fc.assert(
      fc.property(steps, (all) => {
        const places = createPlaces(ORDINARY, () => {});
        const lines = takeAll(places, 1).map((place) => [place]);
        const beside = () => lines.reduce((sum, line) => sum + line.length - 1, 0);
        const grow = (line: Place[]) => {
          const one = line.length <= CHAIN_DEPTH_MAX ? places.beside(line.at(-1)!) : null;
          if (one) line.push(one);
          return one !== null;
        };
        const shrink = (line: Place[]) => line.length > 1 && line.pop()!.free();
        for (const { tree, ends } of all) {
          if (ends) shrink(lines[tree]!);
          else grow(lines[tree]!);
          expect(beside()).to.be.at.most(MOST_OF_ONE + CHAIN_DEPTH_MAX);
        }
        // Every run now waits for one more until the limit, and ends when it has been there.
        const done = new Set<Place[]>();
        for (let turns = 0; done.size < lines.length; turns += 1) {
          expect(turns).to.be.below(10 * CHAIN_DEPTH_MAX);
          for (const line of lines) {
            while (!done.has(line) && grow(line));
            if (line.length > CHAIN_DEPTH_MAX) done.add(line);
            if (done.has(line)) while (line.length > 1) shrink(line);
          }
        }
      }),
    );
  });

  it("call whoever waits for one when one is free, and say when none is taken", async () => {
    let calls = 0;
    const places = createPlaces(1, () => (calls += 1));
    const taken = [1, 2, 3, 4].map((appId) => places.take(appId)!);
    expect(places.take(5)).to.equal(null);
    expect(places.open()).to.equal(null);
    taken[0]!.free();
    taken[0]!.free();
    expect(calls).to.equal(1);
    const empty = places.empty();
    for (const place of taken) place.free();
    await empty;
    expect(places.taken().size).to.equal(0);
  });
});
