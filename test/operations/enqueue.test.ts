/** Tests that a call is checked before it uses the queue. Fakes replace other modules, because only a full queue shows the order. */
import { expect } from "chai";
import type { ActionError } from "../../src/errors.js";
import { Enqueuer } from "../../src/operations/runs/enqueue.js";
import type { NewOnDemandRun } from "../../src/operations/runs/run-inserts.js";

const INACTIVE_ACTION = {
  ...{ name: "inactive", active: false, environment: "server", actionVersion: "v3" },
  ...{ triggers: [{ trigger: "manual" }], access: null, isPaused: false },
};

describe("a call while no slot is free", () => {
  const steps: string[] = [];

  /** Enqueues a call of an inactive action while the queue is full. Resolves to the status of its error. */
  async function statusOf(run: Pick<NewOnDemandRun, "routeMatch">): Promise<string> {
    steps.length = 0;
    const parts = {
      dispatcher: { tryAcquireSlot: () => null },
      db: {
        async query() {
          steps.push("check");
          return [INACTIVE_ACTION];
        },
      },
      queueLimits: {
        async reserveCapacity() {
          steps.push("queue");
          return false;
        },
        releaseCapacity: () => undefined,
      },
      traces: { currentTraceparent: () => null },
    };
    const enqueuer = new Enqueuer(parts as unknown as ConstructorParameters<typeof Enqueuer>[0]);
    const call = { appId: 1, payload: "{}", ref: { id: 1 }, trigger: "manual", access: {}, ...run } as NewOnDemandRun;
    return enqueuer.enqueueOnDemand(call).catch((error: ActionError) => error.status) as Promise<string>;
  }

  it("uses no part of the queue if its action cannot run", async () => {
    expect(await statusOf({})).to.equal("ACTION_INACTIVE");
    expect(steps).to.deep.equal(["check"]);
  });

  it("fails for its action and not for the full queue, also if it comes from a trigger that was found before", async () => {
    const routeMatch = { shapes: ["path"], shapesBeforeSecret: [], rowTexts: ["row"] };
    expect(await statusOf({ routeMatch })).to.equal("ACTION_INACTIVE");
    expect(steps).to.deep.equal(["queue", "check"]);
  });
});
