/** Prevents `import()` in code that an action creates from text in an isolate, because this call would crash the page. */
import type { Any } from "./any.js";

export type CodeFromTextRestriction = ReturnType<typeof createCodeFromTextRestriction>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createCodeFromTextRestriction() {
  const { apply, construct, defineProperty, getPrototypeOf, setPrototypeOf } = Reflect;
  const { exec } = RegExp.prototype;
  const { join } = Array.prototype;
  const scope = globalThis as Any;
  const { eval: evaluate, Function: OwnFunction } = scope;
  const Refusal = TypeError;
  const IMPORT = /import\s*[(./<-]/;

  return (refused: () => void): void => {
    const check = (text: string) => {
      if (apply(exec, IMPORT, [text]) === null) return;
      refused();
      throw new Refusal("import() is not supported in an isolate");
    };

    /** Converts each value to text only once. Otherwise the value could return another text after the check. */
    function checked(values: Any): string[] {
      const texts: string[] = [];
      for (let at = 0; at < values.length; at += 1) {
        const value = `${values[at]}`;
        defineProperty(texts, at, {
          __proto__: null,
          value,
          configurable: true,
          enumerable: true,
          writable: true,
        } as Any);
      }
      check(apply(join, texts, [","]));
      return texts;
    }

    function bounded(maker: Any): Any {
      const stand = new Proxy(maker, {
        __proto__: null,
        apply: (target: Any, self: unknown, values: Any) => apply(target, self, checked(values)),
        construct: (target: Any, values: Any, made: Any) => construct(target, checked(values), made),
      } as Any);
      defineProperty(maker.prototype, "constructor", { value: stand });
      return stand;
    }

    scope.Function = bounded(OwnFunction);
    for (const made of [async () => {}, function* () {}, async function* () {}]) {
      const maker = getPrototypeOf(made)!.constructor;
      setPrototypeOf(maker, scope.Function);
      bounded(maker);
    }
    scope.eval = {
      eval(text: unknown): unknown {
        if (typeof text === "string") check(text);
        return evaluate(text);
      },
    }.eval;
  };
}
