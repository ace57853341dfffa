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
 * console line, `a` and the answer of `callExecute`; then, asked by `mute`, `m`: nothing is sent from here on; and asked once more, `b`:
 * nothing of the run is left but this thread's end. A list is a call of the service, or a part of its answer.
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

  let muted = false;

  /** What is asked for when the run is over would be the next run's. */
  function boundRequests(): void {
    const { fetch: send } = scope;
    const bound = {
      fetch(this: unknown, input: unknown, ...more: unknown[]): Promise<unknown> {
        if (muted) return OwnPromise.reject(new OwnError("Failed to fetch"));
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
    const hear = ({ data }: Any) => {
      if (isArray(data)) return calls.take(data);
      muted = true;
      calls.open(null);
      if (data === "mute") return tell("m");
      tell("b");
      apply(close, scope, []);
    };
    port.onmessage = async ({ data: [payload, settings, base, ...scripts] }: Any) => {
      port.onmessage = hear;
      if (base !== "") {
        calls.open(tell);
        const { call } = calls;
        defineProperty(scope, serviceGlobal, { value: { __proto__: null, base, call }, configurable: true });
      }
      tell(`a${await core.safe(core.evaluateAndCall(payload, settings, scripts))}`);
    };
    tell("r");
  };
}
