/** Tests which renderer the service regards as the sender of a flood, and when it regards the browser as short of processor time. */
import { expect } from "chai";
import {
  type CpuUsageSample,
  findFloodingRenderer,
  isBrowserStarved,
} from "../../../src/engine/browser/watch/floods.js";

const BROWSER = 1;
const WINDOW_MS = 150;

/** Processor time in milliseconds: in total, and in the kernel. */
type ProcessorTime = readonly [all: number, kernel: number];

const createSample = (at: number, usages: Record<number, ProcessorTime>): CpuUsageSample => ({
  at,
  usages: new Map(
    Object.entries(usages).map(([pid, [spent, kernel]]) => [
      Number(pid),
      {
        pid: Number(pid),
        isRenderer: Number(pid) !== BROWSER,
        isNetworkService: false,
        cpuMs: spent,
        kernelMs: kernel,
        residentBytes: 0,
        threads: 10,
        nice: 5,
      },
    ]),
  ),
});

/** Returns the sender of a flood, for these processor times within the window. Each process had used 1,000 ms before the window. */
function findSender(spent: Record<number, ProcessorTime>): number | null {
  const before = Object.fromEntries(Object.keys(spent).map((pid) => [pid, [1_000, 500] as const]));
  const after = Object.fromEntries(
    Object.entries(spent).map(([pid, [all, kernel]]) => [pid, [1_000 + all, 500 + kernel] as const]),
  );
  return findFloodingRenderer(createSample(0, before), createSample(WINDOW_MS, after));
}

describe("the sender of a flood", () => {
  it("is the renderer that uses the most kernel time while the browser's own processes work", () => {
    expect(findSender({ [BROWSER]: [140, 60], 2: [100, 30], 3: [100, 40], 4: [20, 0] })).to.equal(3);
  });

  it("is not found if renderers only compute, however much", () => {
    expect(findSender({ [BROWSER]: [140, 60], 2: [150, 0], 3: [150, 10] })).to.equal(null);
  });

  it("is not a renderer that computes far more than it sends", () => {
    expect(findSender({ [BROWSER]: [140, 60], 2: [300, 20] })).to.equal(null);
  });

  it("is not found if the machine has no time for the browser: the browser is late, not flooded", () => {
    expect(findSender({ [BROWSER]: [20, 10], 2: [100, 60] })).to.equal(null);
  });

  it("is not a renderer that did not exist at the first measurement", () => {
    const before = createSample(0, { [BROWSER]: [1_000, 500] });
    const after = createSample(WINDOW_MS, { [BROWSER]: [1_140, 560], 2: [100, 60] });
    expect(findFloodingRenderer(before, after)).to.equal(null);
  });
});

describe("a browser that does not answer", () => {
  const WAITED_MS = 5_000;
  const starves = (ran: number, isAnyRunnable: boolean) =>
    isBrowserStarved(
      createSample(0, { [BROWSER]: [70_000, 0] }),
      createSample(WAITED_MS, { [BROWSER]: [70_000 + ran, 0] }),
      () => isAnyRunnable,
    );

  it("is starved if a thread could run, and its threads got little processor time", () => {
    expect([starves(0, true), starves(1_200, true)]).to.deep.equal([true, true]);
  });

  it("is not starved if it is stopped or flooded", () => {
    expect([starves(0, false), starves(1_300, true)]).to.deep.equal([false, false]);
  });
});
