/** Tests the network isolate if calls of the DevTools protocol or callbacks of a run fail. */
import { EventEmitter } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { createContext, runInContext } from "node:vm";
import { expect } from "chai";
import { createRealmPlatformInstaller } from "../../../src/engine/browser/pages/in-page/realm-platform.js";
import { Isolate } from "../../../src/engine/browser/pages/isolate.js";

/** Returns the reasons of all rejected promises that nothing has handled during `work`. */
async function recordUnhandledRejections(work: () => unknown): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const recordRejection = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", recordRejection);
  await work();
  await turn();
  process.off("unhandledRejection", recordRejection);
  return unhandled;
}

describe("a page with a network isolate", () => {
  it("reports that its browser ended while a worker started, and leaves no rejection unhandled", async () => {
    const closed = async () => Promise.reject(new Error("Target closed"));
    const worker = Object.assign(new EventEmitter(), { send: closed });
    const send = async () => ({ result: { value: true } });
    const session = Object.assign(new EventEmitter(), { connection: () => ({ session: () => worker }), send });
    const sandbox = new Isolate(
      { session, origin: "https://app-1.actions.internal", proxyPort: null } as never,
      "network-isolate",
    );
    const unhandled = await recordUnhandledRejections(async () => {
      const start = sandbox["startThread"]();
      session.emit("Target.attachedToTarget", { sessionId: "1" });
      expect(await start.catch((error: Error) => error.message)).to.equal("Target closed");
    });
    expect(unhandled).to.deep.equal([]);
  });

  it("fails if the page cannot start a worker, so that the page is not taken for one of a browser without isolates", async () => {
    const send = async () => ({ result: {}, exceptionDetails: { text: "Uncaught" } });
    const session = Object.assign(new EventEmitter(), { send });
    const sandbox = new Isolate(
      { session, origin: "https://app-1.actions.internal", proxyPort: null } as never,
      "isolate",
    );
    const failure = await sandbox["startThread"]().catch((error: Error) => error.message);
    expect(failure).to.equal("the page of an isolate cannot start a worker: Uncaught");
  });

  it("stores no rejected promise for a microtask that throws, and calls the next one", async () => {
    const calls: string[] = [];
    const context = createContext({ URLSearchParams, record: (call: string) => calls.push(call) });
    runInContext(`(${createRealmPlatformInstaller})(() => null)(null, "[]")`, context);
    const code = `queueMicrotask(() => { record("first"); throw "lost" }); queueMicrotask(() => record("second"))`;
    expect(await recordUnhandledRejections(() => runInContext(code, context))).to.deep.equal([]);
    expect(calls).to.deep.equal(["first", "second"]);
  });
});
