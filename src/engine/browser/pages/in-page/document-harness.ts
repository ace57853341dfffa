/** Runs scripts and then `execute` in a document of their own. Runs inside the browser, before the author's code does. */
import type { HarnessCore } from "./core.js";
import type { DocumentMessage } from "./messages.js";
import type { HostCalls, RunCalls } from "./service-calls.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Answers the object that the host talks to; null where the document has something of the
 * one before it, whose place in the history it takes when both have one address.
 */
export function documentHarness(
  core: HarnessCore,
  hostCalls: HostCalls,
  runCalls: RunCalls,
  serviceGlobal: string,
): unknown {
  const window = self;
  const { document } = window;
  const { apply, defineProperty } = Reflect;
  const PagePromise = Promise;
  const OwnSyntaxError = SyntaxError;
  const { createElement } = document;
  const { appendChild, removeChild } = window.Node.prototype;
  const setText: Any = Reflect.getOwnPropertyDescriptor(window.HTMLScriptElement.prototype, "text")?.set;
  const setSource: Any = Reflect.getOwnPropertyDescriptor(window.HTMLScriptElement.prototype, "src")?.set;
  const addTargetListener = window.EventTarget.prototype.addEventListener;
  const currentScript: Any = Reflect.getOwnPropertyDescriptor(window.Document.prototype, "currentScript")?.get;
  const { addEventListener, removeEventListener } = window;
  let head: Any = null;

  // These outlive a navigation; nothing of an earlier run may be found. The host looks for every other kind of storage.
  if (window.name !== "") window.name = "";
  if (window.localStorage.length > 0) window.localStorage.clear();
  if (window.sessionStorage.length > 0) window.sessionStorage.clear();
  const { history, navigation } = window;
  const state = history.state ?? navigation.currentEntry.getState() ?? null;
  if (state !== null || history.scrollRestoration !== "auto") return null;

  /** Runs a text as a classic script in the page's global scope. Answers null, or what went wrong as `fail` says it. */
  function evaluate(name: string, source: string): string | null {
    let failed: string | null = null;
    const onError = (event: Any) => {
      // Another script's failure, put into the page by this one, is not this one's.
      if (apply(currentScript, document, []) !== script) return;
      failed = core.fail("script", event.error, `${name}:${event.lineno}:${event.colno}`);
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
      const because = (reason: string) => core.fail("script", new Error(`The dependency ${url} ${reason}`), "");
      const onError = (event: Any) => {
        if (event.target !== script && apply(currentScript, document, []) !== script) return;
        const missing = event.target === script;
        failed = because(missing ? "could not be loaded" : `failed: ${core.read(event, "message")}`);
        if (missing) end();
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

  /** Loads or evaluates names, or `""`, and sources or addresses, in turn, up to `end`. Answers a failure as `callExecute` does, or null. */
  async function loadAll(scripts: readonly string[], end: number): Promise<string | null> {
    // The caller's frames are gone after this, so that a stack holds the author's frames alone.
    await undefined;
    // Not earlier: the harness may stand before the document's first element does.
    head = document.head;
    for (let i = 0; i < end; i += 2) {
      const failed = scripts[i] === "" ? await load(scripts[i + 1]!) : evaluate(scripts[i]!, scripts[i + 1]!);
      if (failed !== null) return failed;
    }
    return null;
  }

  /** Position of a syntax error in the author's function, which `eval` does not tell: the text as a script is parsed, and defines nothing. */
  function placeOf(error: Any, name: string, source: string): string {
    if (!(error instanceof OwnSyntaxError)) return "";
    let place = "";
    const onError = (event: Any) => {
      if (apply(currentScript, document, []) !== script) return;
      place = `${name}:${event.lineno}:${event.colno}`;
      event.preventDefault();
    };
    const script = apply(createElement, document, ["script"]);
    apply(setText, script, [source]);
    apply(addEventListener, window, ["error", onError, true]);
    apply(appendChild, head, [script]);
    apply(removeEventListener, window, ["error", onError, true]);
    apply(removeChild, head, [script]);
    return place;
  }

  /** Gives the run's library its way to other services. Calls of the service itself take the network. */
  function openService(base: string, settings: string, send: (message: DocumentMessage) => void): void {
    const { call, open, request, take } = runCalls;
    hostCalls.listen((text) => send(`service ${text}`));
    open((own, text) => hostCalls.take((head, part, last) => take(own, head, part, last), text));
    const value = { __proto__: null, base, call, request, settings };
    defineProperty(window, serviceGlobal, { value, configurable: true });
  }

  return {
    __proto__: null,
    /** A part of the answer to the request of that number. */
    answer: hostCalls.answer,
    /**
     * Removes the binding for console lines from the page's global, so that the author cannot find it. `scripts`: name and source, or `""` and
     * address, in turn; the last is the author's function.
     */
    run(bindingName: string, scripts: Any, payload: string, settings: string, base: string): Promise<string> {
      const print = window[bindingName];
      delete window[bindingName];
      core.installConsole(print);
      if (base !== "") openService(base, settings, print);
      return core.safe(core.evaluateAndCall(payload, settings, scripts, loadAll, placeOf));
    },
  };
}
