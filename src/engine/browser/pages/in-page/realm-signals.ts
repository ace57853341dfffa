/** Replaces methods of EventTarget and AbortSignal in a ShadowRealm, where a listener that throws would crash the page. */
import type { Any } from "./any.js";
import type { WorkerObjectHandle } from "./host-platform.js";

export type RealmAbortSignals = ReturnType<typeof createRealmAbortSignals>;

/** The browser evaluates this function's source text. The function stores the globals it uses, because the action may replace them. */
export function createRealmAbortSignals() {
  const scope = globalThis as Any;
  const { apply, defineProperty, deleteProperty, getOwnPropertyDescriptor } = Reflect;
  const { AbortController, AbortSignal, DOMException, EventTarget } = scope;
  const { abort } = AbortController.prototype;
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  const OwnTypeError = TypeError;
  const { isFinite: isNumber, MAX_SAFE_INTEGER } = Number;
  const { trunc } = Math;
  const { get: getOf, set: setOf } = WeakMap.prototype;
  const findGetter = (holder: Any, name: string): Any => getOwnPropertyDescriptor(holder, name)!.get;
  const readSignal = findGetter(AbortController.prototype, "signal");
  const isAborted = findGetter(AbortSignal.prototype, "aborted");
  const readReason = findGetter(AbortSignal.prototype, "reason");
  const onAbort = getOwnPropertyDescriptor(AbortSignal.prototype, "onabort")!;
  const wrappers = new WeakMap<object, object>();
  const handlers = new WeakMap<object, unknown>();

  const isObject = (value: unknown): boolean =>
    (typeof value === "object" && value !== null) || typeof value === "function";

  /** Returns a function that calls the listener and ignores errors. The same listener always gets the same function. */
  function wrapListener(listener: Any): unknown {
    if (!isObject(listener)) return listener;
    const wrapped = apply(getOf, wrappers, [listener]);
    if (wrapped !== undefined) return wrapped;
    function wrapper(this: unknown, event: unknown): unknown {
      try {
        if (typeof listener === "function") return apply(listener, this, [event]);
        return apply(listener.handleEvent, listener, [event]);
      } catch {
        return undefined;
      }
    }
    apply(setOf, wrappers, [listener, wrapper]);
    return wrapper;
  }

  function wrapListeners(name: string, call: Any): void {
    const { [name]: method } = {
      [name](this: unknown, ...values: Any[]): unknown {
        // An index instead of destructuring, because the action may have replaced the iterator of arrays.
        if (values.length > 1) values[1] = wrapListener(values[1]);
        return apply(call, this, values);
      },
    };
    defineProperty(method!, "length", { __proto__: null, value: 2 } as Any);
    EventTarget.prototype[name] = method;
  }

  function wrapAllListeners(): void {
    wrapListeners("addEventListener", addEventListener);
    wrapListeners("removeEventListener", removeEventListener);
    // `when` creates observables. These report the errors of their callbacks, which would crash the page.
    deleteProperty(EventTarget.prototype, "when");
    const holder = {
      get onabort(): unknown {
        apply(isAborted, this, []);
        return apply(getOf, handlers, [this]) ?? null;
      },
      set onabort(handler: unknown) {
        apply(onAbort.set as Any, this, [typeof handler === "function" ? wrapListener(handler) : handler]);
        apply(setOf, handlers, [this, isObject(handler) ? handler : null]);
      },
    };
    const { get, set } = getOwnPropertyDescriptor(holder, "onabort")!;
    defineProperty(AbortSignal.prototype, "onabort", { __proto__: null, get, set } as Any);
  }

  function toMs(value: unknown): number {
    const ms = trunc(Number(value));
    if (isNumber(ms) && ms >= 0 && ms <= MAX_SAFE_INTEGER) return ms;
    const problem = isNumber(ms) ? "outside the 'unsigned long long' value range" : "not of type 'unsigned long long'";
    throw new OwnTypeError(`Failed to execute 'timeout' on 'AbortSignal': Value is ${problem}.`);
  }

  function createTimeout(hostScope: WorkerObjectHandle): Any {
    const { timeout } = {
      timeout(...values: Any[]): unknown {
        if (values.length === 0) {
          throw new OwnTypeError(
            "Failed to execute 'timeout' on 'AbortSignal': 1 argument required, but only 0 present.",
          );
        }
        const ms = toMs(values[0]);
        const controller = new AbortController();
        const abortLate = () => apply(abort, controller, [new DOMException("signal timed out", "TimeoutError")]);
        apply(hostScope, undefined, [
          "timer",
          "setTimeout",
          () => {},
          () => abortLate(),
          "primitive",
          undefined,
          "primitive",
          ms,
        ]);
        return apply(readSignal, controller, []);
      },
    };
    defineProperty(timeout, "length", { __proto__: null, value: 1 } as Any);
    return timeout;
  }

  return {
    isObject,
    findGetter,
    onAbort(signal: object, work: (reason: unknown) => void): void {
      // The listener must be a function of the realm. A function of the worker as a listener would crash the page.
      const report = () => work(apply(readReason, signal, []));
      if (apply(isAborted, signal, [])) report();
      else apply(addEventListener, signal, ["abort", report]);
    },
    /** Returns a new signal. Calls `connect` with the function that aborts the signal. */
    create(connect: (abortWith: (reason: unknown) => void) => void): object {
      const controller = new AbortController();
      connect((reason) => apply(abort, controller, [reason]));
      return apply(readSignal, controller, []);
    },
    install(hostScope: WorkerObjectHandle): void {
      wrapAllListeners();
      const value = createTimeout(hostScope);
      defineProperty(AbortSignal, "timeout", {
        __proto__: null,
        value,
        configurable: true,
        enumerable: true,
        writable: true,
      } as Any);
    },
  };
}
