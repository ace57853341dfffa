/** Callers who wait in the process: turns, bounds, and who goes. */
import { expect } from "chai";
import { ActionError } from "../../src/errors.js";
import {
  CALLERS_WAITING_BYTES,
  CALLERS_WAITING_BYTES_PER_APP,
  CALLERS_WAITING_MAX,
  CALLERS_WAITING_PER_APP,
} from "../../src/limits.js";
import { createPlaces, type Place } from "../../src/operations/runs/places.js";
import { createWaitingCallers } from "../../src/operations/runs/waiting-callers.js";

const SMALL = 2;

/** Lets all that is settled go on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Callers before the places of a runner, all of which others have taken. */
function fullRunner(ordinary: number) {
  const places = createPlaces(ordinary, () => {});
  const taken: Place[] = [];
  for (let app = 100; places.free() > 0; app += 1) taken.push(places.take(app)!);
  const callers = createWaitingCallers();
  const served: number[] = [];
  const wait = (appId: number, gone?: AbortSignal) =>
    callers.wait(appId, SMALL, gone).then((place) => {
      served.push(appId);
      return place;
    });
  const serve = () => callers.serve(places.taken(), places.share(), places.take);
  return { places, taken, callers, served, wait, serve };
}

const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: ActionError) => error.status,
  );

describe("callers who wait for a place", () => {
  it("have it in turn by app, whoever asked how often", async () => {
    const { taken, served, wait, serve } = fullRunner(4);
    for (const app of [1, 1, 1, 1, 2, 3, 3]) void wait(app);
    for (const place of taken.slice(0, 3)) {
      place.free();
      expect(serve()).to.equal(true);
    }
    await settled();
    expect(served).to.deep.equal([1, 2, 3]);
    expect(serve()).to.equal(false);
  });

  it("of one app have it in the order in which they came, no more at once than the app may have", async () => {
    const { places, taken, callers, serve } = fullRunner(2);
    const order: number[] = [];
    const got: (Place | null)[] = [];
    for (let call = 0; call < 4; call += 1) {
      void callers.wait(1, SMALL).then((place) => {
        order.push(call);
        got.push(place);
      });
    }
    for (const place of taken) place.free();
    while (serve());
    await settled();
    expect(order).to.deep.equal([0]);
    expect(places.taken().get(1)).to.equal(1);
    got[0]!.free();
    while (serve());
    await settled();
    expect(order).to.deep.equal([0, 1]);
  });

  it("that have gone get none, and the next is served in their stead", async () => {
    const { taken, callers, wait, serve } = fullRunner(1);
    const [first, second] = [new AbortController(), new AbortController()];
    const waiting = [refusal(wait(1, first.signal)), wait(1, second.signal)];
    first.abort();
    expect(await waiting[0]).to.equal("REQUEST_INVALID");
    taken[0]!.free();
    expect(serve()).to.equal(true);
    expect(await waiting[1]).to.not.equal(null);
    second.abort();
    expect(callers.has(1)).to.equal(false);
    expect(await refusal(wait(1, AbortSignal.abort()))).to.equal("REQUEST_INVALID");
  });

  it("are sent to the queue when there is no more room for their app, by number and by bytes, and none for any", async () => {
    const { callers } = fullRunner(1);
    const wait = (appId: number, bytes = SMALL) => callers.wait(appId, bytes);
    for (let call = 0; call < CALLERS_WAITING_PER_APP; call += 1) void wait(1);
    expect(await wait(1)).to.equal(null);
    void wait(2, CALLERS_WAITING_BYTES_PER_APP - 1);
    expect(await wait(2)).to.equal(null);
    let count = CALLERS_WAITING_PER_APP + 1;
    for (let app = 3; count < CALLERS_WAITING_MAX; count += 1, app += 1) void wait(app);
    expect(await wait(2_000)).to.equal(null);
  });

  it("are sent to the queue when the bytes of all apps are used up", async () => {
    const { callers } = fullRunner(1);
    const apps = CALLERS_WAITING_BYTES / CALLERS_WAITING_BYTES_PER_APP;
    expect(Number.isInteger(apps) && apps < CALLERS_WAITING_MAX).to.equal(true);
    for (let app = 1; app <= apps; app += 1) void callers.wait(app, CALLERS_WAITING_BYTES_PER_APP);
    expect(await callers.wait(2_000, 1)).to.equal(null);
  });

  it("are sent to the queue in their order when their app gets no place for a second", async () => {
    const { callers } = fullRunner(1);
    const order: number[] = [];
    const waits = [0, 1, 2].map((call) =>
      callers.wait(1, SMALL).then((place) => {
        order.push(call);
        return place;
      }),
    );
    expect(await Promise.all(waits)).to.deep.equal([null, null, null]);
    expect(order).to.deep.equal([0, 1, 2]);
    expect(callers.has(1)).to.equal(false);
  });

  it("are refused when the process stops, and told that nothing was run", async () => {
    const { callers } = fullRunner(1);
    const waits = [1, 1, 2].map((app) => refusal(callers.wait(app, SMALL)));
    callers.refuseAll();
    expect(await Promise.all(waits)).to.deep.equal(["OVERLOADED", "OVERLOADED", "OVERLOADED"]);
  });
});
