/** Part of the harness (the service's script that executes a run) for all modes: calls `execute`, and encodes the outcome as text. */

import type { Any } from "./any.js";
import type { HarnessLimits, InstallConsole } from "./harness-console.js";
import type { RunAnswerText } from "./messages.js";
import type { ValueFormatter } from "./value-formatter.js";

export interface HarnessFailure {
  cause: "script" | "result";
  name: string;
  message: string;
  stack: string;
  /** Position of a syntax error or top-level error of a package, if the stack does not contain it. */
  at: string;
}

export type HarnessCore = ReturnType<typeof createHarnessCore>;

/** The browser evaluates this function's source text. The function stores the globals it uses, because the action may replace them. */
export function createHarnessCore(limits: HarnessLimits, formatter: ValueFormatter, installConsole: InstallConsole) {
  const scope = globalThis as Any;
  const { apply, defineProperty, deleteProperty, getPrototypeOf, ownKeys } = Reflect;
  const OriginalPromise = Promise;
  const { then } = Promise.prototype;
  const { parse, stringify } = JSON;
  const { has } = Set.prototype;
  const protectedPrototypes = new Set<unknown>([Object.prototype, scope.EventTarget?.prototype]);
  const { read, format } = formatter;
  const { eval: evaluate } = scope;

  function createErrorAnswer(cause: string, thrown: Any, at: string): RunAnswerText {
    const isObject = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
    const name = (isObject && read(thrown, "name")) || "Error";
    const message = (isObject && read(thrown, "message")) || (isObject && read(thrown, "stack") ? "" : format(thrown));
    const stack = (isObject && read(thrown, "stack")) || (message === "" ? name : `${name}: ${message}`);
    return `error ${stringify({ __proto__: null, cause, name, message, stack, at })}`;
  }

  function createResultAnswer(value: Any): RunAnswerText {
    let json: string | undefined;
    try {
      json = stringify(value);
    } catch (error) {
      const reason = read(error, "message");
      return createErrorAnswer(
        "result",
        new TypeError(`The result of execute cannot be turned into JSON: ${reason}`),
        "",
      );
    }
    if (typeof json !== "string") return "undefined";
    // The service counts the bytes. A text with more characters than the limit is not sent to the service.
    if (json.length <= limits.resultMaxBytes) return `data ${json}`;
    const mb = limits.resultMaxBytes / 1024 / 1024;
    return createErrorAnswer("result", new RangeError(`The result of execute is larger than ${mb} MB`), "");
  }

  /** Makes a promise independent of changes that the action made to Promise.prototype. Returns the promise. */
  function protectPromise<T>(promise: Promise<T>): Promise<T> {
    // `__proto__: null` prevents the descriptor from inheriting members that the action added to Object.prototype.
    defineProperty(promise, "then", { __proto__: null, value: then } as Any);
    defineProperty(promise, "constructor", { __proto__: null, value: OriginalPromise } as Any);
    return promise;
  }

  /** `scripts` alternates names and sources. Evaluates the items before `endIndex`. Returns an error answer; null on success. */
  async function evaluateScripts(scripts: readonly string[], endIndex: number): Promise<string | null> {
    // The `await` shortens the stack: later stack traces contain only frames of the action, and none of the service.
    await undefined;
    for (let i = 0; i < endIndex; i += 2) {
      try {
        evaluate(scripts[i + 1]!);
      } catch (error) {
        return createErrorAnswer("script", error, scripts[i]!);
      }
    }
    return null;
  }

  async function callExecute(run: Any, payload: string, settings: string): Promise<string> {
    if (typeof run !== "function") {
      return createErrorAnswer("script", new TypeError("The code defines no function with the name execute"), "");
    }
    const context = { payload: parse(payload), settings: parse(settings) };
    try {
      return createResultAnswer(await run(context));
    } catch (error) {
      return createErrorAnswer("script", error, "");
    }
  }

  return {
    __proto__: null,
    read,
    createErrorAnswer,
    protectPromise,

    /** Deletes all globals that are not in `globals`. Never deletes the members of Object.prototype and EventTarget.prototype. */
    keepOnlyGlobals(globals: ReadonlySet<unknown>): void {
      for (let holder = scope; !apply(has, protectedPrototypes, [holder]); holder = getPrototypeOf(holder)) {
        const keys = ownKeys(holder);
        // A plain loop, because the action may have replaced the methods of arrays.
        for (let at = 0; at < keys.length; at += 1) {
          if (!apply(has, globals, [keys[at]])) deleteProperty(holder, keys[at]!);
        }
      }
    },

    /** `scripts` alternates names and sources. `loadAll` evaluates all but the last, the action. Returns the answer for the service. */
    async evaluateAndCall(
      payload: string,
      settings: string,
      scripts: readonly string[],
      loadAll: typeof evaluateScripts = evaluateScripts,
    ): Promise<string> {
      const last = scripts.length - 2;
      const failure = await protectPromise(loadAll(scripts, last));
      if (failure !== null) return failure;
      let run: Any;
      try {
        run = evaluate(scripts[last + 1])();
      } catch (error) {
        return createErrorAnswer("script", error, "");
      }
      return await protectPromise(callExecute(run, payload, settings));
    },

    installConsole,
  };
}
