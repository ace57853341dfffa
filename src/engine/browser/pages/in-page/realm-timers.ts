/** Timers of a realm (ShadowRealm of a run), which use timers of the worker, and a `queueMicrotask` that ignores errors. */
import type { Any } from "./any.js";
import type { WorkerObjectHandle } from "./host-platform.js";
import type { RealmValueEncoder } from "./realm-rows.js";

type CallHost = (handle: WorkerObjectHandle, verb: string, member: string, row: readonly Any[]) => Any;

export type RealmTimers = ReturnType<typeof createRealmTimers>;

/** The browser evaluates this function's source text. The function stores the globals it uses, because the action may replace them. */
export function createRealmTimers() {
  const scope = globalThis as Any;
  const { apply, defineProperty } = Reflect;
  const OwnPromise = Promise;
  const OwnTypeError = TypeError;
  const { resolve: resolvedWith } = OwnPromise;
  const { then } = OwnPromise.prototype;

  const createErrorIgnoringCallback = (work: Any, self: unknown, parameters: readonly unknown[]) => (): void => {
    try {
      apply(work, self, parameters);
    } catch {
      // Ignores errors of the callback, as a worker does.
    }
  };

  return (hostScope: WorkerObjectHandle, callHost: CallHost, rows: RealmValueEncoder): Record<string, Any> => {
    const start = (kind: string, values: readonly Any[]): number => {
      const work = values[0];
      const parameters: unknown[] = [];
      for (let at = 2; at < values.length; at += 1) rows.append(parameters, values[at]);
      // A timer with a text instead of a function does nothing, because a timer of the worker cannot evaluate text in the realm.
      const isFunction = typeof work === "function";
      const handleTimer = isFunction ? createErrorIgnoringCallback(work, scope, parameters) : () => {};
      const converted: unknown[] = [];
      // A timer without a function converts its first argument to text, as a worker does. The conversion may throw.
      if (values.length > 0) rows.append(converted, isFunction ? undefined : `${work}`);
      if (values.length > 1) rows.append(converted, values[1]);
      return callHost(hostScope, "timer", kind, rows.encodeValues(converted, [handleTimer]));
    };
    const stop = (kind: string, values: readonly Any[]): unknown =>
      callHost(hostScope, "stop", kind, ["primitive", +values[0]]);
    const createTimerFunction = (
      kind: string,
      length: number,
      work: (kind: string, values: readonly Any[]) => unknown,
    ): Any => {
      const { [kind]: timerFunction } = {
        [kind](this: unknown, ...values: Any[]): unknown {
          if (this !== undefined && this !== null && this !== scope) throw new OwnTypeError("Illegal invocation");
          return work(kind, values);
        },
      };
      return rows.setLength(timerFunction, length);
    };
    return {
      setTimeout: createTimerFunction("setTimeout", 1, start),
      setInterval: createTimerFunction("setInterval", 1, start),
      clearTimeout: createTimerFunction("clearTimeout", 0, stop),
      clearInterval: createTimerFunction("clearInterval", 0, stop),
      // The realm's own `queueMicrotask` would crash the page if `work` throws.
      queueMicrotask(work: Any): void {
        if (typeof work !== "function") {
          throw new OwnTypeError(
            "Failed to execute 'queueMicrotask' on 'WorkerGlobalScope': parameter 1 is not of type 'Function'.",
          );
        }
        const soon = apply(resolvedWith, OwnPromise, []);
        defineProperty(soon, "constructor", { __proto__: null, value: undefined } as Any);
        void apply(then, soon, [createErrorIgnoringCallback(work, undefined, [])]);
      },
    };
  };
}
