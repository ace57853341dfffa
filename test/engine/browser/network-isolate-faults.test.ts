/** Tests the network isolate if calls of the DevTools protocol fail. */
import { EventEmitter } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { Isolate } from "../../../src/engine/browser/pages/isolate.js";

describe("a page with a network isolate", () => {
  it("reports that its browser ended while a worker started, and leaves no rejection unhandled", async () => {
    const closed = async () => Promise.reject(new Error("Target closed"));
    const worker = Object.assign(new EventEmitter(), { send: closed });
    const send = async () => ({ result: {} });
    const session = Object.assign(new EventEmitter(), { connection: () => ({ session: () => worker }), send });
    const unhandled: unknown[] = [];
    const recordRejection = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", recordRejection);
    const sandbox = new Isolate(
      { session, origin: "https://app-1.actions.internal", proxyPort: null } as never,
      "network-isolate",
    );
    const start = sandbox["startThread"]();
    session.emit("Target.attachedToTarget", { sessionId: "1" });
    expect(await start.catch((error: Error) => error.message)).to.equal("Target closed");
    await turn();
    process.off("unhandledRejection", recordRejection);
    sandbox.stop();
    expect(unhandled).to.deep.equal([]);
  });
});
