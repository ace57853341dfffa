/**
 * Keeps code that is made of text from asking for a module: a realm can load none, and its page ends where one is asked for. Code that says
 * so itself runs in a document (mode.ts). Runs inside the browser, before any other code does.
 */

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

export type CodeOfText = ReturnType<typeof codeOfText>;

/** As `harnessCore`: evaluated by its source text. A keyword is written in one way alone, and nothing else may stand before its address. */
export function codeOfText() {
  const { apply, construct, defineProperty, getPrototypeOf, setPrototypeOf } = Reflect;
  const { exec } = RegExp.prototype;
  const { join } = Array.prototype;
  const scope = globalThis as Any;
  const { eval: evaluate, Function: OwnFunction } = scope;
  const Refusal = TypeError;
  const IMPORT = /import\s*[(./<-]/;

  return (refused: () => void): void => {
    const judge = (text: string) => {
      if (apply(exec, IMPORT, [text]) === null) return;
      refused();
      throw new Refusal("import() is disallowed in code that needs the language alone");
    };

    /** What is asked for as text once stays what was judged. */
    function judged(values: Any): string[] {
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
      judge(apply(join, texts, [","]));
      return texts;
    }

    /** Stands for a maker of functions wherever that is found. */
    function bounded(maker: Any): Any {
      const stand = new Proxy(maker, {
        __proto__: null,
        apply: (target: Any, self: unknown, values: Any) => apply(target, self, judged(values)),
        construct: (target: Any, values: Any, made: Any) => construct(target, judged(values), made),
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
        if (typeof text === "string") judge(text);
        return evaluate(text);
      },
    }.eval;
  };
}
