/**
 * Gives a page a fresh document with a harness in it: answered over the protocol, so that its origin exists nowhere. Knows no
 * run and keeps nothing.
 */
import type { CDPSession, Protocol } from "puppeteer";
import { POLICY_HEADER } from "./document-policy.js";

/** Stands in a global scope until the harness has taken it away, before any line of the author's. */
export const CONSOLE_BINDING = "__svc_console";
const DOCUMENT = Buffer.from('<!doctype html><html><head><meta charset="utf-8"></head><body></body></html>').toString(
  "base64",
);

/** Answers the request for a document of the page's own origin. */
export function answerDocument(
  session: CDPSession,
  requestId: string,
  headers: readonly Protocol.Fetch.HeaderEntry[] = [],
): void {
  const responseHeaders = [{ name: "Content-Type", value: "text/html; charset=utf-8" }, POLICY_HEADER, ...headers];
  session
    .send("Fetch.fulfillRequest", { requestId, responseCode: 200, responseHeaders, body: DOCUMENT })
    .catch(() => {});
}

/** Resolves when the navigation has committed; the old document and all that it ran are gone then. */
export function navigate(session: CDPSession, url: string): Promise<{ loaded: Promise<void> }> {
  return new Promise((resolve) => {
    const onCommit = (event: Protocol.Page.FrameNavigatedEvent) => {
      if (event.frame.parentId !== undefined || event.frame.url !== url) return;
      session.off("Page.frameNavigated", onCommit);
      const loaded = new Promise<void>((done) => session.once("Page.loadEventFired", () => done()));
      resolve({ loaded });
    };
    session.on("Page.frameNavigated", onCommit);
    session.send("Page.navigate", { url }).catch(() => {});
  });
}

/**
 * Puts the harness into the fresh document; the console's way out is bound to this document's own context alone.
 * @returns the id of the harness's object, and whether it found nothing of an earlier document
 */
export async function installHarness(
  session: CDPSession,
  expression: string,
): Promise<{ harnessId: string; untouched: boolean }> {
  const created = new Promise<number>((resolve) => {
    session.once("Runtime.executionContextCreated", (event) => resolve(event.context.id));
  });
  const [harness] = await Promise.all([
    session.send("Runtime.evaluate", { expression }),
    session.send("Runtime.enable"),
    // Left on, it would carry every console call with its values through the protocol.
    session.send("Runtime.disable"),
  ]);
  const { objectId } = harness.result;
  if (objectId === undefined) throw new Error(`the harness failed: ${harness.exceptionDetails?.text}`);
  const executionContextId = await created;
  const [, untouched] = await Promise.all([
    session.send("Runtime.addBinding", { name: CONSOLE_BINDING, executionContextId }),
    callHarness(session, objectId, "listen", [CONSOLE_BINDING]),
  ]);
  return { harnessId: objectId, untouched: untouched === true };
}

/** Calls a method of the harness's object and waits for what it settles to, however long that takes. */
export async function callHarness(
  session: CDPSession,
  objectId: string,
  method: string,
  values: readonly unknown[],
): Promise<unknown> {
  const { result } = await session.send(
    "Runtime.callFunctionOn",
    {
      objectId,
      functionDeclaration: `function(...a){return this.${method}(...a)}`,
      arguments: values.map((value) => ({ value })),
      awaitPromise: true,
      returnByValue: true,
    },
    { timeout: 0 },
  );
  return result.value;
}
