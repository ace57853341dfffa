/** Tests the error of a call while the queue is full. Fakes replace other modules, because filling the queue takes long. */
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
  async function statusOfCall(): Promise<string> {
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
      tracing: { getCurrentTraceparent: () => null },
    };
    const enqueuer = new Enqueuer(parts as unknown as ConstructorParameters<typeof Enqueuer>[0]);
    const call = { appId: 1, payload: "{}", ref: { id: 1 }, trigger: "manual", access: {} } as NewOnDemandRun;
    return enqueuer.enqueueOnDemand(call).catch((error: ActionError) => error.status) as Promise<string>;
  }

  it("fails for its action that cannot run, and not for the full queue", async () => {
    expect(await statusOfCall()).to.equal("ACTION_INACTIVE");
    expect(steps).to.deep.equal(["queue", "check"]);
  });
});
