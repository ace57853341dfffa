/** Tests the document sandbox if calls of the DevTools protocol fail. */
import { EventEmitter } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { DocumentSandbox } from "../../../src/engine/browser/pages/document.js";

const ORIGIN = "https://app-1.actions.internal";

describe("a page with a document", () => {
  it("leaves no process if its browser ends while it is renewed", async () => {
    const session = Object.assign(new EventEmitter(), {
      async send(method: string) {
        if (method === "Page.navigate") session.emit("Page.frameNavigated", { frame: { url: `${ORIGIN}/` } });
        else throw new Error("Target closed");
      },
    });
    const proxyPort = { wasUsed: () => true, startRun: () => {} };
    const unhandledReasons: unknown[] = [];
    const recordReason = (reason: unknown) => unhandledReasons.push(reason);
    process.on("unhandledRejection", recordReason);
    const lostSignal = new AbortController().signal;
    const sandbox = new DocumentSandbox({
      session,
      connection: session,
      origin: ORIGIN,
      proxyPort,
      lostSignal,
    } as never);
    const failure = await sandbox.reset().catch((error: Error) => error.message);
    await turn();
    await turn();
    process.off("unhandledRejection", recordReason);
    expect(failure).to.equal("Target closed");
    expect(unhandledReasons).to.deep.equal([]);
  });
});
