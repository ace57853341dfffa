/**
 * Gives a page a fresh document with a harness in it: answered over the protocol, so that its origin exists nowhere. Knows no
 * run and keeps nothing.
 */
import type { CDPSession, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { RESULT_MAX_BYTES } from "../../../limits.js";
import { POLICY_HEADER } from "./document-policy.js";

/** Stands in a global scope until the harness has taken it away, before any line of the author's. */
export const CONSOLE_BINDING = "__svc_console";
/** Tag of a service call that a document sends over the same binding (in-page/messages.ts). Console lines are JSON objects. */
export const CALL_MARK = "service ";
const DOCUMENT = Buffer.from('<!doctype html><html><head><meta charset="utf-8"></head><body></body></html>').toString(
  "base64",
);

/** The network service that dies during a navigation leaves it without an end. As long as a renewal may take, so that only an opening repeats it. */
const NAVIGATE_AGAIN_MS = 1_000;

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
      clearInterval(timer);
      const loaded = new Promise<void>((done) => session.once("Page.loadEventFired", () => done()));
      resolve({ loaded });
    };
    session.on("Page.frameNavigated", onCommit);
    const send = () => session.send("Page.navigate", { url }).catch(() => clearInterval(timer));
    const timer = setInterval(() => runInBackground(send()), NAVIGATE_AGAIN_MS);
    runInBackground(send());
  });
}

/**
 * Puts the harness into the fresh document; the console's way out is bound to this document's own context alone.
 * @returns the id of the harness's object
 * @throws where the harness finds something of an earlier document
 */
export async function installHarness(session: CDPSession, expression: string): Promise<string> {
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
  await session.send("Runtime.addBinding", { name: CONSOLE_BINDING, executionContextId: await created });
  return objectId;
}

/** Calls a method of the harness's object and waits for what it settles to, however long that takes. @throws where it fails */
export async function callHarness(
  session: CDPSession,
  objectId: string,
  method: string,
  values: readonly unknown[],
): Promise<unknown> {
  const { result, exceptionDetails } = await session.send(
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
  if (exceptionDetails) throw new Error(`the harness failed: ${exceptionDetails.text}`);
  return result.value;
}

/** A text of one message: a longer one keeps the browser, whose one pipe carries the messages of all runs, from all others meanwhile. */
export const MESSAGE_CHARACTERS = 256 * 1024;
/** What a page may say that it has, whatever it is: a run's result, and a little. */
const TEXT_MAX_CHARACTERS = RESULT_MAX_BYTES + 1_024;

/** A text of that many characters which comes in parts, between which the messages of others pass; undefined where it is not that. */
export async function textInParts(
  length: number,
  partOf: (from: number, to: number) => Promise<unknown>,
): Promise<string | undefined> {
  if (!(length > MESSAGE_CHARACTERS && length <= TEXT_MAX_CHARACTERS)) return undefined;
  const parts: string[] = [];
  for (let from = 0; from < length; from += MESSAGE_CHARACTERS) {
    const to = Math.min(length, from + MESSAGE_CHARACTERS);
    const part = await partOf(from, to);
    if (typeof part !== "string" || part.length !== to - from) return undefined;
    parts.push(part);
  }
  return parts.join("");
}

/**
 * Evaluated in the page before any line of the author's, by which all that it needs may be replaced: keeps what the method settles to where
 * that is too long for one message, and answers its length.
 */
const KEEP_LONG = `function(max, ...values) {
  const { apply, defineProperty } = Reflect;
  const { slice } = String.prototype;
  const { then } = Promise.prototype;
  const OwnPromise = Promise;
  const settled = this.METHOD(...values);
  // Without one, then makes a promise of its own kind, whatever the author has put in the place of others.
  defineProperty(settled, "constructor", { value: undefined });
  // Not awaited: the author's stacks would show it.
  const answer = apply(then, settled, [
    (text) => {
      if (typeof text !== "string" || text.length <= max) return text;
      this.part = (from, to) => apply(slice, text, [from, to]);
      return text.length;
    },
  ]);
  defineProperty(answer, "then", { value: then });
  defineProperty(answer, "constructor", { value: OwnPromise });
  return answer;
}`;

/** As `callHarness`, of a method whose text may be long. */
export async function callForText(
  session: CDPSession,
  objectId: string,
  method: string,
  values: readonly unknown[],
): Promise<unknown> {
  const call = async (functionDeclaration: string, given: readonly unknown[]): Promise<unknown> => {
    const parameters = { objectId, functionDeclaration, awaitPromise: true, returnByValue: true };
    const { result } = await session.send(
      "Runtime.callFunctionOn",
      { ...parameters, arguments: given.map((value) => ({ value })) },
      { timeout: 0 },
    );
    return result.value;
  };
  const length = await call(KEEP_LONG.replace("METHOD", method), [MESSAGE_CHARACTERS, ...values]);
  if (typeof length !== "number") return length;
  return textInParts(length, (from, to) => call("function(from, to) { return this.part(from, to) }", [from, to]));
}
