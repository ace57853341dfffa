/** Opens documents and installs the harness (the service's script). The service itself answers the document request, through DevTools. */
import type { CDPSession, Protocol } from "puppeteer";
import { runInBackground } from "../../../background.js";
import { RESULT_MAX_BYTES } from "../../../limits.js";
import { PERMISSIONS_POLICY_HEADER } from "./document-policy.js";

/** DevTools binding for console lines. The service's script in the page removes this global before any line of the action runs. */
export const CONSOLE_BINDING_NAME = "__svc_console";
/** Prefix of a request to the service, which uses the same binding as console lines. A console line is JSON, so it starts with `{`. */
export const SERVICE_CALL_PREFIX = "service ";
const DOCUMENT_BASE64 = Buffer.from(
  '<!doctype html><html><head><meta charset="utf-8"></head><body></body></html>',
).toString("base64");

/** A navigation is repeated after this time, because it never ends if Chromium's network process dies. */
const NAVIGATION_RETRY_MS = 1_000;

export function serveEmptyDocument(
  session: CDPSession,
  requestId: string,
  headers: readonly Protocol.Fetch.HeaderEntry[] = [],
): void {
  const responseHeaders = [
    { name: "Content-Type", value: "text/html; charset=utf-8" },
    PERMISSIONS_POLICY_HEADER,
    ...headers,
  ];
  // The command fails only if the page has closed, or has started another navigation.
  session
    .send("Fetch.fulfillRequest", { requestId, responseCode: 200, responseHeaders, body: DOCUMENT_BASE64 })
    .catch(() => {});
}

/** Resolves when the old document and its code are gone. `loaded` resolves when the new document has loaded. */
export function navigatePage(session: CDPSession, url: string): Promise<{ loaded: Promise<void> }> {
  return new Promise((resolve) => {
    const onCommit = (event: Protocol.Page.FrameNavigatedEvent) => {
      if (event.frame.parentId !== undefined || event.frame.url !== url) return;
      session.off("Page.frameNavigated", onCommit);
      clearInterval(timer);
      const loaded = new Promise<void>((done) => session.once("Page.loadEventFired", () => done()));
      resolve({ loaded });
    };
    session.on("Page.frameNavigated", onCommit);
    const navigate = () => session.send("Page.navigate", { url }).catch(() => clearInterval(timer));
    const timer = setInterval(() => runInBackground(navigate()), NAVIGATION_RETRY_MS);
    runInBackground(navigate());
  });
}

/** Returns the description of the error, which has its message. `text` is usually only "Uncaught". */
const describeException = ({ exception, text }: Protocol.Runtime.ExceptionDetails): string =>
  exception?.description ?? text;

/** Returns the ID of the harness object (the service's script). @throws Error if the script fails or finds data of an earlier document */
export async function installHarness(session: CDPSession, expression: string): Promise<string> {
  const contextId = new Promise<number>((resolve) => {
    session.once("Runtime.executionContextCreated", (event) => resolve(event.context.id));
  });
  const [harness] = await Promise.all([
    session.send("Runtime.evaluate", { expression }),
    session.send("Runtime.enable"),
    // With the Runtime domain enabled, the browser would send the values of each console call.
    session.send("Runtime.disable"),
  ]);
  const { objectId } = harness.result;
  if (objectId === undefined)
    throw new Error(
      `the service's own script, which prepares the page for a run, failed: ${harness.exceptionDetails ? describeException(harness.exceptionDetails) : "the page contains data of an earlier run"}`,
    );
  await session.send("Runtime.addBinding", { name: CONSOLE_BINDING_NAME, executionContextId: await contextId });
  return objectId;
}

/** Returns the memory that a page or worker uses, with the memory of objects outside of V8's heap. */
export async function readUsedMemoryBytes(session: CDPSession): Promise<number> {
  const usage = await session.send("Runtime.getHeapUsage");
  return usage.usedSize + usage.embedderHeapUsedSize + usage.backingStorageSize;
}

/** Calls a method of the harness (the service's script in the page) without a time limit. @throws Error if the method fails */
export async function callHarnessMethod(
  session: CDPSession,
  harnessId: string,
  method: string,
  values: readonly unknown[],
): Promise<unknown> {
  // Named parameters, because the action may have replaced the iterator of arrays, which `...` uses.
  const names = values.map((_, index) => `value${index}`).join();
  const { result, exceptionDetails } = await session.send(
    "Runtime.callFunctionOn",
    {
      objectId: harnessId,
      functionDeclaration: `function(${names}){return this.${method}(${names})}`,
      arguments: values.map((value) => ({ value })),
      awaitPromise: true,
      returnByValue: true,
    },
    { timeout: 0 },
  );
  if (exceptionDetails)
    throw new Error(
      `the service's own script in the page failed in its method ${method}: ${describeException(exceptionDetails)}`,
    );
  return result.value;
}

/** Longer messages would delay all other runs, because all runs share one connection to the browser. */
export const DEVTOOLS_MESSAGE_MAX_CHARACTERS = 256 * 1024;
const ANSWER_MAX_CHARACTERS = RESULT_MAX_BYTES + 1_024;

/** Returns a short `answer` unchanged. If `answer` is a length, reads a long answer in parts, as UTF-8; undefined if it is invalid. */
export async function readAnswer<T>(
  answer: T | number,
  readPart: (from: number, to: number) => Promise<unknown>,
): Promise<T | Buffer | undefined> {
  if (typeof answer !== "number") return answer;
  const length = answer;
  if (!(length > DEVTOOLS_MESSAGE_MAX_CHARACTERS && length <= ANSWER_MAX_CHARACTERS)) return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  /** First half of a surrogate pair whose second half is in the next part. */
  let firstHalf = "";
  // A text with too many bytes is too large for the result of a run, so its rest is not read.
  for (let from = 0; from < length && bytes < ANSWER_MAX_CHARACTERS; from += DEVTOOLS_MESSAGE_MAX_CHARACTERS) {
    const to = Math.min(length, from + DEVTOOLS_MESSAGE_MAX_CHARACTERS);
    const part = await readPart(from, to);
    if (typeof part !== "string" || part.length !== to - from) return undefined;
    const text = firstHalf + part;
    firstHalf = to < length ? (/[\ud800-\udbff]$/.exec(text)?.[0] ?? "") : "";
    chunks.push(Buffer.from(text.slice(0, text.length - firstHalf.length)));
    bytes += chunks.at(-1)!.length;
  }
  return Buffer.concat(chunks);
}
