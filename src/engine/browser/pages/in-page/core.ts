/**
 * What stands before the author's code wherever it runs: calls `execute`, and turns every outcome and every console call
 * into one short text. Runs inside the browser; knows neither documents nor workers.
 */

import type { HarnessLimits, InstallConsole } from "./harness-console.js";
import type { AnswerText } from "./messages.js";
import type { ShownValues } from "./shown-values.js";

/** Content of an `error` answer. */
export interface HarnessFailure {
  cause: "script" | "result";
  name: string;
  message: string;
  stack: string;
  /** Where the parser or the top level failed, when the stack does not say. */
  at: string;
}

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

export type HarnessCore = ReturnType<typeof harnessCore>;

/**
 * Evaluated in the browser by its source text: it must not refer to anything outside itself but globals. Everything that
 * it uses later is taken here, since the author may replace any of it.
 */
export function harnessCore(limits: HarnessLimits, shown: ShownValues, installConsole: InstallConsole) {
  // The name under which every kind of global scope knows itself.
  const scope = globalThis as Any;
  const { apply, defineProperty, deleteProperty, getPrototypeOf, ownKeys } = Reflect;
  const OwnPromise = Promise;
  const { then } = Promise.prototype;
  const { parse, stringify } = JSON;
  const { includes } = Array.prototype;
  const { read, show } = shown;
  const { eval: evaluate } = scope;
  const encoder = new scope.TextEncoder();
  const { encode } = encoder;
  const byteLength: Any = Reflect.getOwnPropertyDescriptor(
    Reflect.getPrototypeOf(Uint8Array.prototype) as object,
    "byteLength",
  )?.get;

  function fail(cause: string, thrown: Any, at: string): AnswerText {
    const isObject = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
    const name = (isObject && read(thrown, "name")) || "Error";
    const message = (isObject && read(thrown, "message")) || (isObject && read(thrown, "stack") ? "" : show(thrown));
    const stack = (isObject && read(thrown, "stack")) || (message === "" ? name : `${name}: ${message}`);
    return `error ${stringify({ __proto__: null, cause, name, message, stack, at })}`;
  }

  function bytesOf(text: string): number {
    if (text.length * 3 <= limits.resultMaxBytes || text.length > limits.resultMaxBytes) return text.length;
    return apply(byteLength, apply(encode, encoder, [text]), []);
  }

  function answer(value: Any): AnswerText {
    let json: string | undefined;
    try {
      json = stringify(value);
    } catch (error) {
      const reason = read(error, "message");
      return fail("result", new TypeError(`The result of execute cannot be turned into JSON: ${reason}`), "");
    }
    if (typeof json !== "string") return "undefined";
    if (bytesOf(json) <= limits.resultMaxBytes) return `data ${json}`;
    const mb = limits.resultMaxBytes / 1024 / 1024;
    return fail("result", new RangeError(`The result of execute is larger than ${mb} MB`), "");
  }

  /** The promise, proof against whatever the author does to Promise.prototype. */
  function safe<T>(promise: Promise<T>): Promise<T> {
    // Without what an author may have given to all objects, which a description inherits.
    defineProperty(promise, "then", { __proto__: null, value: then } as Any);
    defineProperty(promise, "constructor", { __proto__: null, value: OwnPromise } as Any);
    return promise;
  }

  /** Evaluates the scripts (name and source in turn) up to `end` in the global scope. Returns null, or a failure as `callExecute`. */
  async function load(scripts: readonly string[], end: number): Promise<string | null> {
    // The caller's frames are gone after this, so that a stack holds the author's frames alone.
    await undefined;
    for (let i = 0; i < end; i += 2) {
      try {
        evaluate(scripts[i + 1]!);
      } catch (error) {
        return fail("script", error, scripts[i]!);
      }
    }
    return null;
  }

  /** Calls what the author's code defined. `payload` and `settings` are JSON. */
  async function callExecute(run: Any, payload: string, settings: string): Promise<string> {
    if (typeof run !== "function") {
      return fail("script", new TypeError("The code defines no function named execute"), "");
    }
    const context = { payload: parse(payload), settings: parse(settings) };
    try {
      return answer(await run(context));
    } catch (error) {
      return fail("script", error, "");
    }
  }

  return {
    __proto__: null,
    read,
    fail,
    safe,
    callExecute,

    /** Removes every other global, from the global object and from its prototypes. */
    keepOnly(globals: readonly string[]): void {
      const kept = new Set<unknown>(globals);
      const ends = [Object.prototype, scope.EventTarget?.prototype];
      for (let holder = scope; !ends.includes(holder); holder = getPrototypeOf(holder)) {
        for (const key of ownKeys(holder)) if (!kept.has(key)) deleteProperty(holder, key);
      }
    },

    /** Lets go of what a run has put into its global scope, which may be held for longer than the run lasts. */
    drop(globals: readonly string[]): void {
      const keys = ownKeys(scope);
      // By what the author cannot have replaced.
      for (let at = 0; at < keys.length; at += 1) {
        if (!apply(includes, globals, [keys[at]])) deleteProperty(scope, keys[at]!);
      }
    },

    /**
     * Evaluates the scripts (name and source in turn) in the global scope. The last one is the action's function (action-script.ts); calls the
     * `execute` that it returns.
     * @param loadAll evaluates the scripts before the last one
     * @param placeOf finds the position of a syntax error
     * @returns as `callExecute`
     */
    async evaluateAndCall(
      payload: string,
      settings: string,
      scripts: readonly string[],
      loadAll: typeof load = load,
      placeOf: (error: Any, name: string, source: string) => string = () => "",
    ): Promise<string> {
      const last = scripts.length - 2;
      const failure = await safe(loadAll(scripts, last));
      if (failure !== null) return failure;
      let run: Any;
      try {
        run = evaluate(scripts[last + 1])();
      } catch (error) {
        return fail("script", error, placeOf(error, scripts[last]!, scripts[last + 1]!));
      }
      return await safe(callExecute(run, payload, settings));
    },

    installConsole,
  };
}
