/**
 * What the platform has thrown, as errors of the realm's that name who asked. Runs inside the browser, in the realm, before the author's code
 * does.
 */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

export type RealmFaults = ReturnType<typeof realmFaults>;

/** As `harnessCore`: evaluated by its source text. Takes here all that it uses later, since the author may replace any of it. */
export function realmFaults() {
  const { DOMException, QuotaExceededError } = globalThis as Any;
  const { captureStackTrace } = Error as Any;
  const { apply, defineProperty } = Reflect;
  const { parse } = JSON;
  const { indexOf, slice } = String.prototype;
  const OwnTypeError = TypeError;
  const OwnSyntaxError = SyntaxError;
  const CLASSES: Any = { __proto__: null, TypeError, RangeError, SyntaxError, QuotaExceededError };

  /** What a failure that comes later has lost: who asked. */
  function setFrames(error: Any, kind: string, stack: unknown): void {
    if (typeof stack !== "string") return;
    const frames = apply(slice, stack, [apply(indexOf, `${stack}\n`, ["\n"])]);
    const value = `${kind}: ${error.message}${frames}`;
    defineProperty(error, "stack", { __proto__: null, value, configurable: true, writable: true } as Any);
  }

  return {
    /** `above`: the function above which its frames begin; `trace`: what has kept them, where it comes later. */
    faultOf(kind: string, message: string, name: string, hasStack: boolean, above: unknown, trace: Any): unknown {
      const isOfDom = kind === "DOMException";
      const error = isOfDom ? new DOMException(message, name) : new (CLASSES[kind] ?? OwnTypeError)(message);
      if (!hasStack) return error;
      if (trace === undefined) captureStackTrace(error, above);
      else setFrames(error, isOfDom ? name : kind, trace.stack);
      return error;
    },

    /** What the text comes to. The platform names the method where it has the whole text at once. */
    jsonOf(name: string, isWhole: boolean, text: string, trace: Any): unknown {
      try {
        return parse(text);
      } catch (error) {
        const { message } = error as Error;
        const fault = new OwnSyntaxError(isWhole ? `Failed to execute 'json' on '${name}': ${message}` : message);
        setFrames(fault, "SyntaxError", trace?.stack);
        throw fault;
      }
    },
  };
}
