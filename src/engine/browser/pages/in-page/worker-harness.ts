/**
 * Runs scripts and then `execute` in a dedicated worker, whose globals it first cuts down to the ones given. Runs inside
 * the browser, before the author's code does.
 */
import type { HarnessCore } from "./core.js";
import type { RunCalls } from "./service-calls.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Talks over the port that the worker's first message brings: `r` ready, `c` and a
 * console line, `a`, how often `fetch` was called and the answer of `callExecute`: from here on nothing is asked for; then, once told that
 * the run is over, `b`: nothing of it is left but this thread's end. A list is a call of the service, or a part of its answer.
 */
export function workerHarness(
  core: HarnessCore,
  calls: RunCalls,
  serviceGlobal: string,
  globals: readonly string[],
  ofNavigator: readonly string[],
): void {
  const scope = self;
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const OwnPromise = Promise;
  const OwnError = TypeError;
  const { close } = scope;
  const { isArray } = Array;
  const { postMessage } = scope.MessagePort.prototype;

  let asked = 0;
  let over = false;
  let letGo = async () => {};

  /**
   * Ends the bodies that a run has not begun to read: left to itself each is under way for 50 ms more, and the page waits for it. As
   * asynchronous functions, which throw nothing at their caller, whatever the author has put in the place of promises.
   */
  function boundBodies() {
    const { Response, ReadableStream, WeakRef: OwnRef } = scope;
    const { deref } = OwnRef.prototype;
    const { cancel } = ReadableStream.prototype;
    const { get: bodyOf } = getOwnPropertyDescriptor(Response.prototype, "body") as Any;
    const { get: isUsed } = getOwnPropertyDescriptor(Response.prototype, "bodyUsed") as Any;
    // Held weakly: a run may ask for thousands.
    const responses: Any[] = [];
    return {
      async note(response: Promise<object>): Promise<void> {
        try {
          responses[responses.length] = new OwnRef(await response);
        } catch {
          // The author's to handle.
        }
      },
      async letGo(): Promise<void> {
        for (let at = 0; at < responses.length; at += 1) {
          const response = apply(deref, responses[at], []);
          const body = response === undefined || apply(isUsed, response, []) ? null : apply(bodyOf, response, []);
          if (body !== null) apply(cancel, body, []);
        }
      },
    };
  }

  /** What is asked for when the run is over would be the next run's. */
  function boundRequests(): void {
    const { fetch: send } = scope;
    const bodies = boundBodies();
    letGo = bodies.letGo;
    const bound = {
      fetch(this: unknown, input: unknown, ...more: unknown[]): Promise<unknown> {
        if (over) return OwnPromise.reject(new OwnError("Failed to fetch"));
        asked += 1;
        const response = apply(send, this, [input, ...more]) as Promise<object>;
        void bodies.note(response);
        return response;
      },
    };
    for (let holder = scope; holder !== null; holder = getPrototypeOf(holder)) {
      if (getOwnPropertyDescriptor(holder, "fetch")) holder.fetch = bound.fetch;
    }
  }

  scope.onmessage = (greeting: Any) => {
    const [port] = greeting.ports;
    const tell = (text: unknown) => apply(postMessage, port, [text]);
    scope.onmessage = null;
    core.installConsole((line) => tell(`c${line}`));
    if (globals.includes("fetch")) boundRequests();
    core.keepOnly(globals, ofNavigator);
    const leave = () => {
      calls.open(null);
      tell("b");
      apply(close, scope, []);
    };
    port.onmessage = async ({ data }: Any) => {
      if (data === null) return leave();
      port.onmessage = ({ data }: Any) => (isArray(data) ? calls.take(data[0], data[1], data[2], data[3]) : leave());
      const [payload, settings, base, ...scripts] = data;
      if (base !== "") {
        calls.open((own, text) => tell([own, text]));
        const { call } = calls;
        defineProperty(scope, serviceGlobal, { value: { __proto__: null, base, call }, configurable: true });
      }
      const answer = await core.safe(core.evaluateAndCall(payload, settings, scripts));
      over = true;
      void letGo();
      tell(`a${asked} ${answer}`);
    };
    tell("r");
  };
}
