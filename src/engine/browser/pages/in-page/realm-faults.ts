/** Creates errors in a run's realm (ShadowRealm) for errors of the web platform in the worker, with the stack of the realm's code. */
import type { Any } from "./any.js";

export type RealmErrorFactory = ReturnType<typeof createRealmErrorFactory>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createRealmErrorFactory() {
  const { DOMException, QuotaExceededError } = globalThis as Any;
  const { captureStackTrace } = Error as Any;
  const { apply, defineProperty } = Reflect;
  const { parse } = JSON;
  const { indexOf, slice } = String.prototype;
  const OwnTypeError = TypeError;
  const OwnSyntaxError = SyntaxError;
  const CLASSES: Any = { __proto__: null, TypeError, RangeError, SyntaxError, QuotaExceededError };

  /** For an error after the call has returned: sets the error's stack to frames that were recorded during the call. */
  function setFrames(error: Any, kind: string, stack: unknown): void {
    if (typeof stack !== "string") return;
    const frames = apply(slice, stack, [apply(indexOf, `${stack}\n`, ["\n"])]);
    const value = `${kind}: ${error.message}${frames}`;
    defineProperty(error, "stack", { __proto__: null, value, configurable: true, writable: true } as Any);
  }

  return {
    /** Creates an error without the frame of `caller` and all frames above it. `trace`: stack of a call that has already returned. */
    createError(description: string, caller: object, trace: Any): object {
      const { 0: kind, 1: message, 2: name, 3: hasStack } = parse(description);
      const isOfDom = kind === "DOMException";
      const error = isOfDom ? new DOMException(message, name) : new (CLASSES[kind] ?? OwnTypeError)(message);
      if (!hasStack) return error;
      if (trace === undefined) captureStackTrace(error, caller);
      else setFrames(error, isOfDom ? name : kind, trace.stack);
      return error;
    },

    /** Parses the text of a response body as JSON. @throws SyntaxError with the stack of `trace` */
    parseJson(text: string, trace: Any): unknown {
      try {
        return parse(text);
      } catch (error) {
        const fault = new OwnSyntaxError((error as Error).message);
        setFrames(fault, "SyntaxError", trace?.stack);
        throw fault;
      }
    },
  };
}
