/**
 * Runs scripts and then `execute` in a dedicated worker, whose globals it first cuts down to the ones given. Runs inside
 * the browser, before the author's code does.
 */
import type { HarnessCore } from "./core.js";
import type { WorkerCalls } from "./service-calls.js";

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
  calls: WorkerCalls,
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

  /** What is asked for when the run is over would be the next run's. */
  function boundRequests(): void {
    const { fetch: send } = scope;
    const bound = {
      fetch(this: unknown, input: unknown, ...more: unknown[]): Promise<unknown> {
        if (over) return OwnPromise.reject(new OwnError("Failed to fetch"));
        asked += 1;
        return apply(send, this, [input, ...more]);
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
      port.onmessage = ({ data }: Any) => (isArray(data) ? calls.take(data) : leave());
      const [payload, settings, base, ...scripts] = data;
      if (base !== "") {
        calls.open(tell);
        const { call } = calls;
        defineProperty(scope, serviceGlobal, { value: { __proto__: null, base, call }, configurable: true });
      }
      const answer = await core.safe(core.evaluateAndCall(payload, settings, scripts));
      over = true;
      tell(`a${asked} ${answer}`);
    };
    tell("r");
  };
}
