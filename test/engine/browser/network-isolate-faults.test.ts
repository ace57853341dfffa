/** The network isolate while the protocol fails. */
import { EventEmitter } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { NetworkIsolate } from "../../../src/engine/browser/pages/network-isolate.js";

describe("a page with a network isolate", () => {
  it("ends no process where its browser goes as the worker is looked at", async () => {
    const gone = async () => Promise.reject(new Error("Target closed"));
    const worker = Object.assign(new EventEmitter(), { send: gone });
    const session = Object.assign(new EventEmitter(), { connection: () => ({ session: () => worker }), send: gone });
    const unheard: unknown[] = [];
    const hear = (reason: unknown) => unheard.push(reason);
    process.on("unhandledRejection", hear);
    const sandbox = new NetworkIsolate({ session, origin: "https://app-1.actions.internal", lane: null } as never);
    session.emit("Target.attachedToTarget", { sessionId: "1" });
    await turn();
    await turn();
    process.off("unhandledRejection", hear);
    sandbox.stop();
    expect(unheard).to.deep.equal([]);
  });
});
