/**
 * Prevents `import()` in code that is created from text: a realm cannot load modules, and its page ends if one is imported. Code with an
 * `import()` of its own runs in a document (mode.ts). Runs before any other code.
 */

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;

export type CodeOfText = ReturnType<typeof codeOfText>;

/**
 * Replaces the functions that create code from text. Its source text is evaluated in the browser, like `harnessCore`. A keyword has no escaped form, so
 * the pattern finds every import.
 */
export function codeOfText() {
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

    /** Converts the values to texts once, so that the checked texts are the ones that are used. */
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

    /** Replaces a constructor of functions by one that checks the text first. */
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
