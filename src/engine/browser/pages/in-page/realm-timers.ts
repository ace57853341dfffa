/**
 * Timers of a realm, whose work is its own and whose clock is the worker's, and microtasks that fail as they do there. Runs inside the browser,
 * in the realm, before the author's code does.
 */
import type { Stand } from "./lent-platform.js";
import type { RealmRows } from "./realm-rows.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
type Ask = (stand: Stand, verb: string, member: string, row: readonly Any[]) => Any;

export type RealmTimers = ReturnType<typeof realmTimers>;

/** As `harnessCore`: evaluated by its source text. Takes here all that it uses later, since the author may replace any of it. */
export function realmTimers() {
  const scope = globalThis as Any;
  const { apply, defineProperty } = Reflect;
  const OwnPromise = Promise;
  const OwnTypeError = TypeError;
  const { resolve: resolvedWith } = OwnPromise;
  const { then } = OwnPromise.prototype;

  function sized(made: Any, length: number): Any {
    defineProperty(made, "length", { __proto__: null, value: length } as Any);
    return made;
  }

  /** Timers, whose work is the realm's and whose clock is the worker's. */
  return (lender: Stand, ask: Ask, rows: RealmRows): Record<string, Any> => {
    // Bounded by now (code-of-text.ts).
    const { eval: evaluate } = scope;
    const start = (kind: string, values: readonly Any[]): number => {
      const work = values[0];
      const given: unknown[] = [];
      for (let at = 2; at < values.length; at += 1) rows.put(given, values[at]);
      const ring = (text?: string) => {
        try {
          if (text === undefined) apply(work, scope, given);
          else evaluate(text);
        } catch {
          // As in a worker: nobody hears of it.
        }
      };
      const isWork = typeof work === "function";
      const asked: unknown[] = [];
      if (values.length > 0) rows.put(asked, isWork ? undefined : work);
      if (values.length > 1) rows.put(asked, values[1]);
      return ask(lender, "timer", kind, rows.rowOf(asked, [ring, isWork]));
    };
    const stop = (kind: string, values: readonly Any[]): unknown => ask(lender, "stop", kind, rows.rowOf([values[0]]));
    const timer = (kind: string, length: number, work: (kind: string, values: readonly Any[]) => unknown): Any => {
      const { [kind]: made } = {
        [kind](this: unknown, ...values: Any[]): unknown {
          if (this !== undefined && this !== null && this !== scope) throw new OwnTypeError("Illegal invocation");
          return work(kind, values);
        },
      };
      return sized(made, length);
    };
    return {
      setTimeout: timer("setTimeout", 1, start),
      setInterval: timer("setInterval", 1, start),
      clearTimeout: timer("clearTimeout", 0, stop),
      clearInterval: timer("clearInterval", 0, stop),
      // A realm's own ends its page where the work throws.
      queueMicrotask(work: Any): void {
        if (typeof work !== "function") {
          throw new OwnTypeError(
            "Failed to execute 'queueMicrotask' on 'WorkerGlobalScope': parameter 1 is not of type 'Function'.",
          );
        }
        const soon = apply(resolvedWith, OwnPromise, []);
        defineProperty(soon, "constructor", { __proto__: null, value: undefined } as Any);
        const ring = () => {
          try {
            apply(work, undefined, []);
          } catch {
            // As in a worker: nobody hears of it.
          }
        };
        void apply(then, soon, [ring]);
      },
    };
  };
}
