/**
 * The code that stands in a page before the author's does: it captures what it needs, calls `execute`, and turns every
 * outcome into one short text. Runs inside the browser and knows nothing of this process.
 */

/** The name under which the harness's own frames appear in a stack; they are removed before anyone sees them. */
export const HARNESS_NAME = "svc-harness.js";

export interface HarnessLimits {
  resultMaxBytes: number;
  textMaxCharacters: number;
  consoleMaxLines: number;
  consoleMaxCharacters: number;
}

/** What `run` answers: `u` no data, `d` and the JSON of the data, or `e` and the JSON of a HarnessFailure. */
export interface HarnessFailure {
  cause: "script" | "result";
  name: string;
  message: string;
  stack: string;
  /** Where the parser or the top level failed, when the stack does not say. */
  at: string;
}

// biome-ignore lint/suspicious/noExplicitAny: the page's globals, of which this side has no types
declare const self: any;
// biome-ignore lint/suspicious/noExplicitAny: bound by the author's code, in the page's global scope
declare const execute: any;

/**
 * Evaluated in the page by its source text: it must not refer to anything outside itself but the page's globals.
 * Everything that it uses later is taken here, since the author may replace any of it.
 */
function harness(limits: HarnessLimits): unknown {
  // biome-ignore lint/suspicious/noExplicitAny: values of unknown make
  type Any = any;
  const window = self;
  const { document } = window;
  const { apply, defineProperty } = Reflect;
  const { parse, stringify } = JSON;
  const PagePromise = Promise;
  const { then } = Promise.prototype;
  const { slice } = String.prototype;
  const { isArray } = Array;
  const { now } = Date;
  const toText = String;
  const encoder = new window.TextEncoder();
  const { encode } = encoder;
  const byteLength: Any = Reflect.getOwnPropertyDescriptor(
    Reflect.getPrototypeOf(Uint8Array.prototype) as object,
    "byteLength",
  )?.get;
  const { createElement } = document;
  const { appendChild, removeChild } = window.Node.prototype;
  const setText: Any = Reflect.getOwnPropertyDescriptor(window.HTMLScriptElement.prototype, "text")?.set;
  const setSource: Any = Reflect.getOwnPropertyDescriptor(window.HTMLScriptElement.prototype, "src")?.set;
  const addTargetListener = window.EventTarget.prototype.addEventListener;
  const currentScript: Any = Reflect.getOwnPropertyDescriptor(window.Document.prototype, "currentScript")?.get;
  const { addEventListener, removeEventListener } = window;
  let head: Any = null;
  let print: Any = null;

  // These outlive a navigation; nothing of an earlier run may be found. The host looks for every other kind of storage.
  if (window.name !== "") window.name = "";
  if (window.localStorage.length > 0) window.localStorage.clear();
  if (window.sessionStorage.length > 0) window.sessionStorage.clear();

  const cap = (text: string, max: number): string => (text.length <= max ? text : apply(slice, text, [0, max]));

  function read(value: Any, key: string): string {
    try {
      const found = value[key];
      return typeof found === "string" ? cap(found, limits.textMaxCharacters) : "";
    } catch {
      return "";
    }
  }

  function show(value: Any): string {
    try {
      if (typeof value === "object" && value !== null) {
        const json = stringify(value);
        if (typeof json === "string" && json !== "{}") return cap(json, limits.textMaxCharacters);
      }
      return cap(toText(value), limits.textMaxCharacters);
    } catch {
      return "a value that cannot be shown";
    }
  }

  function fail(cause: string, thrown: Any, at: string): string {
    const isObject = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
    const name = (isObject && read(thrown, "name")) || "Error";
    const message = (isObject && read(thrown, "message")) || (isObject && read(thrown, "stack") ? "" : show(thrown));
    const stack = (isObject && read(thrown, "stack")) || (message === "" ? name : `${name}: ${message}`);
    return `e${stringify({ __proto__: null, cause, name, message, stack, at })}`;
  }

  function bytesOf(text: string): number {
    if (text.length * 3 <= limits.resultMaxBytes || text.length > limits.resultMaxBytes) return text.length;
    return apply(byteLength, apply(encode, encoder, [text]), []);
  }

  function answer(value: Any): string {
    let json: string | undefined;
    try {
      json = stringify(value);
    } catch (error) {
      const reason = read(error, "message");
      return fail("result", new TypeError(`The result of execute cannot be turned into JSON: ${reason}`), "");
    }
    if (typeof json !== "string") return "u";
    if (bytesOf(json) <= limits.resultMaxBytes) return `d${json}`;
    const mb = limits.resultMaxBytes / 1024 / 1024;
    return fail("result", new RangeError(`The result of execute is larger than ${mb} MB`), "");
  }

  /** Runs a text as a classic script in the page's global scope. Answers null, or what went wrong as `fail` says it. */
  function evaluate(name: string, source: string): string | null {
    let failed: string | null = null;
    const onError = (event: Any) => {
      // Another script's failure, put into the page by this one, is not this one's.
      if (apply(currentScript, document, []) !== script) return;
      failed = fail("script", event.error, `${name}:${event.lineno}:${event.colno}`);
      event.preventDefault();
    };
    const script = apply(createElement, document, ["script"]);
    apply(setText, script, [`${source}\n//# sourceURL=${name}`]);
    apply(addEventListener, window, ["error", onError, true]);
    apply(appendChild, head, [script]);
    apply(removeEventListener, window, ["error", onError, true]);
    apply(removeChild, head, [script]);
    return failed;
  }

  /** Loads a script from an address. Answers null, or what went wrong as `fail` says it. */
  function load(url: string): Promise<string | null> {
    return new PagePromise((resolve: Any) => {
      let failed: string | null = null;
      const because = (reason: string) => fail("script", new Error(`The dependency ${url} ${reason}`), "");
      const onError = (event: Any) => {
        if (event.target !== script && apply(currentScript, document, []) !== script) return;
        failed =
          event.target === script ? because("could not be loaded") : because(`failed: ${read(event, "message")}`);
        if (event.target === script) end();
      };
      const end = () => {
        apply(removeEventListener, window, ["error", onError, true]);
        apply(removeChild, head, [script]);
        resolve(failed);
      };
      const script = apply(createElement, document, ["script"]);
      apply(addTargetListener, script, ["load", end]);
      apply(addEventListener, window, ["error", onError, true]);
      apply(setSource, script, [url]);
      apply(appendChild, head, [script]);
    });
  }

  async function start(scripts: Any, payload: string, settings: string): Promise<string> {
    // The caller's frames are gone after this, so that a stack holds the author's frames alone.
    await undefined;
    // Not earlier: the harness may stand before the document's first element does.
    head = document.head;
    for (let i = 0; i < scripts.length; i += 2) {
      const failed = scripts[i] === "" ? await load(scripts[i + 1]) : evaluate(scripts[i], scripts[i + 1]);
      if (failed !== null) return failed;
    }
    let run: Any;
    try {
      run = execute;
    } catch {
      run = null;
    }
    if (typeof run !== "function")
      return fail("script", new TypeError("The code defines no function named execute"), "");
    const context = { payload: parse(payload), settings: parse(settings) };
    try {
      return answer(await run(context));
    } catch (error) {
      return fail("script", error, "");
    }
  }

  function installConsole(): void {
    let lines = 0;
    let characters = 0;
    const write = (level: string, values: Any) => {
      if (lines > limits.consoleMaxLines || characters > limits.consoleMaxCharacters) return;
      let text = "";
      for (let i = 0; i < values.length && text.length < limits.textMaxCharacters; i += 1) {
        const value = values[i];
        const stack = typeof value === "object" && value !== null && !isArray(value) ? read(value, "stack") : "";
        text += (i === 0 ? "" : " ") + (stack || show(value));
      }
      text = cap(text, limits.textMaxCharacters);
      lines += 1;
      characters += text.length;
      const full = lines > limits.consoleMaxLines || characters > limits.consoleMaxCharacters;
      const line = full ? "The console is full: what follows is not kept" : text;
      print(stringify({ __proto__: null, level: full ? "warn" : level, at: now(), text: line }));
    };
    const levels = ["debug", "info", "log", "warn", "error", "trace", "dir", "table"];
    for (const key of Reflect.ownKeys(window.console) as string[]) {
      if (typeof window.console[key] !== "function") continue;
      const level = levels.includes(key) ? key : null;
      const method = level === null ? () => {} : (...values: Any[]) => write(level, values);
      window.console[key] = method;
    }
    window.console.assert = (...values: Any[]) => {
      if (!values[0]) write("error", ["Assertion failed", ...values.slice(1)]);
    };
    window.console.group = (...values: Any[]) => write("log", values);
  }

  return {
    __proto__: null,
    /** Takes the way out for console lines off the page's global, so that the author cannot find it. */
    listen(bindingName: string): void {
      print = window[bindingName];
      delete window[bindingName];
      installConsole();
    },
    run(scripts: Any, payload: string, settings: string): Promise<string> {
      const outcome = start(scripts, payload, settings);
      // Whatever the author does to Promise.prototype, this one answers.
      defineProperty(outcome, "then", { value: then });
      defineProperty(outcome, "constructor", { value: PagePromise });
      return outcome;
    },
  };
}

/** The harness as a script whose value is the object that the host talks to; nothing else in the page can reach it. */
export function harnessSource(limits: HarnessLimits): string {
  return `(${harness.toString()})(${JSON.stringify(limits)})\n//# sourceURL=${HARNESS_NAME}`;
}
