/** Prevents `import()` in code that an action creates from text in an isolate, because this call would crash the page. */
import type { Any } from "./any.js";

export type CodeFromTextRestriction = ReturnType<typeof createCodeFromTextRestriction>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createCodeFromTextRestriction() {
  const { apply, construct, defineProperty, getPrototypeOf, setPrototypeOf } = Reflect;
  const { exec } = RegExp.prototype;
  const scope = globalThis as Any;
  const { eval: evaluate, Function: OwnFunction } = scope;
  const OwnTypeError = TypeError;
  const IMPORT = /import\s*[(./<-]/;

  return (onRefused: () => void): void => {
    const check = (text: string) => {
      if (apply(exec, IMPORT, [text]) === null) return;
      onRefused();
      throw new OwnTypeError("import() is not supported in an isolate");
    };

    /** Converts each value to text only once. Otherwise the value could return another text after the check. */
    function toCheckedTexts(values: Any): Any {
      // No array, because the action may have changed the prototypes of arrays.
      const texts: Any = { __proto__: null, length: values.length };
      let joined = "";
      for (let at = 0; at < values.length; at += 1) {
        texts[at] = `${values[at]}`;
        joined += `${texts[at]},`;
      }
      check(joined);
      return texts;
    }

    /** Returns a proxy of a constructor of functions, such as `Function`, which checks the text of the code. */
    function restrictConstructor(constructed: Any): Any {
      const restricted = new Proxy(constructed, {
        __proto__: null,
        apply: (target: Any, self: unknown, values: Any) => apply(target, self, toCheckedTexts(values)),
        construct: (target: Any, values: Any, newTarget: Any) => construct(target, toCheckedTexts(values), newTarget),
      } as Any);
      defineProperty(constructed.prototype, "constructor", { value: restricted });
      return restricted;
    }

    scope.Function = restrictConstructor(OwnFunction);
    for (const sampleFunction of [async () => {}, function* () {}, async function* () {}]) {
      const constructed = getPrototypeOf(sampleFunction)!.constructor;
      setPrototypeOf(constructed, scope.Function);
      restrictConstructor(constructed);
    }
    scope.eval = {
      eval(text: unknown): unknown {
        if (typeof text === "string") check(text);
        return evaluate(text);
      },
    }.eval;
  };
}
