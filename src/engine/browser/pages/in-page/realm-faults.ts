/**
 * Converts errors of the platform to errors of the realm, with the stack frames of the code that has called the
 * platform. Runs in the realm before the action's code.
 */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;

export type RealmFaults = ReturnType<typeof realmFaults>;

/** Its source text is evaluated in the browser, like `harnessCore`. Stores all globals that it uses later, because the action may replace them. */
export function realmFaults() {
  const { DOMException, QuotaExceededError } = globalThis as Any;
  const { captureStackTrace } = Error as Any;
  const { apply, defineProperty } = Reflect;
  const { parse } = JSON;
  const { indexOf, slice } = String.prototype;
  const OwnTypeError = TypeError;
  const OwnSyntaxError = SyntaxError;
  const CLASSES: Any = { __proto__: null, TypeError, RangeError, SyntaxError, QuotaExceededError };

  /** Adds the frames of the call to an error that occurs later. */
  function setFrames(error: Any, kind: string, stack: unknown): void {
    if (typeof stack !== "string") return;
    const frames = apply(slice, stack, [apply(indexOf, `${stack}\n`, ["\n"])]);
    const value = `${kind}: ${error.message}${frames}`;
    defineProperty(error, "stack", { __proto__: null, value, configurable: true, writable: true } as Any);
  }

  return {
    /**
     * Creates an error.
     * @param caller the called function; frames above it are removed
     * @param trace frames of a call whose error occurs later
     */
    faultOf(kind: string, message: string, name: string, hasStack: boolean, caller: unknown, trace: Any): unknown {
      const isOfDom = kind === "DOMException";
      const error = isOfDom ? new DOMException(message, name) : new (CLASSES[kind] ?? OwnTypeError)(message);
      if (!hasStack) return error;
      if (trace === undefined) captureStackTrace(error, caller);
      else setFrames(error, isOfDom ? name : kind, trace.stack);
      return error;
    },

    /** Parses the text of a body as JSON. */
    jsonOf(text: string, trace: Any): unknown {
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
