/** Harness (script that executes a run) of a document (empty page): runs the scripts and `execute`. Starts before the action's code. */
import type { Any } from "./any.js";
import type { HarnessCore } from "./core.js";
import type { DocumentMessage } from "./messages.js";
import type { HostServiceCalls, OpenService } from "./service-calls.js";

declare const self: Any;

/** Returns the harness; null if the document has history state of an earlier one. The browser evaluates this function's source text. */
export function createDocumentHarness(
  core: HarnessCore,
  hostCalls: HostServiceCalls,
  openService: OpenService,
  messageMaxCharacters: number,
): unknown {
  const window = self;
  const { document } = window;
  const { apply } = Reflect;
  const OriginalPromise = Promise;
  const { createElement } = document;
  const { appendChild, removeChild } = window.Node.prototype;
  const setText: Any = Reflect.getOwnPropertyDescriptor(window.HTMLScriptElement.prototype, "text")?.set;
  const setSource: Any = Reflect.getOwnPropertyDescriptor(window.HTMLScriptElement.prototype, "src")?.set;
  const addTargetListener = window.EventTarget.prototype.addEventListener;
  const getCurrentScript: Any = Reflect.getOwnPropertyDescriptor(window.Document.prototype, "currentScript")?.get;
  const { addEventListener, removeEventListener } = window;
  const { slice } = String.prototype;
  let head: Any = null;
  let answer = "";

  // A navigation does not clear `window.name` and Web Storage. leftovers.ts checks that all other kinds of storage are empty.
  if (window.name !== "") window.name = "";
  if (window.localStorage.length > 0) window.localStorage.clear();
  if (window.sessionStorage.length > 0) window.sessionStorage.clear();
  const { history, navigation } = window;
  const state = history.state ?? navigation.currentEntry.getState() ?? null;
  if (state !== null || history.scrollRestoration !== "auto") return null;

  /** Evaluates a script. Returns an error answer; null on success. */
  function evaluate(name: string, source: string): string | null {
    let failure: string | null = null;
    const onError = (event: Any) => {
      // Ignores errors of other scripts, which the evaluated script has added to the page.
      if (apply(getCurrentScript, document, []) !== script) return;
      failure = core.createErrorAnswer("script", event.error, `${name}:${event.lineno}:${event.colno}`);
      event.preventDefault();
    };
    const script = apply(createElement, document, ["script"]);
    apply(setText, script, [`${source}\n//# sourceURL=${name}`]);
    apply(addEventListener, window, ["error", onError, true]);
    apply(appendChild, head, [script]);
    apply(removeEventListener, window, ["error", onError, true]);
    apply(removeChild, head, [script]);
    return failure;
  }

  /** Loads a script from its URL and evaluates it. Resolves with an error answer; null on success. */
  function loadFromUrl(url: string): Promise<string | null> {
    return new OriginalPromise((resolve: Any) => {
      let failure: string | null = null;
      const createFailure = (reason: string) =>
        core.createErrorAnswer("script", new Error(`The dependency ${url} ${reason}`), "");
      const onError = (event: Any) => {
        if (event.target !== script && apply(getCurrentScript, document, []) !== script) return;
        const isMissing = event.target === script;
        failure = createFailure(isMissing ? "could not be loaded" : `failed: ${core.read(event, "message")}`);
        if (isMissing) finishLoad();
      };
      const finishLoad = () => {
        apply(removeEventListener, window, ["error", onError, true]);
        apply(removeChild, head, [script]);
        resolve(failure);
      };
      const script = apply(createElement, document, ["script"]);
      apply(addTargetListener, script, ["load", finishLoad]);
      apply(addEventListener, window, ["error", onError, true]);
      apply(setSource, script, [url]);
      apply(appendChild, head, [script]);
    });
  }

  /** `scripts` alternates names and sources, or `""` and URLs. Loads the items before `endIndex`. Returns an error answer or null. */
  async function loadAll(scripts: readonly string[], endIndex: number): Promise<string | null> {
    // The `await` shortens the stack: later stack traces contain no frames of the service, only those of the action.
    await undefined;
    // Reads `head` only now, because this script may have started before the document had a head.
    head = document.head;
    for (let i = 0; i < endIndex; i += 2) {
      const failure = scripts[i] === "" ? await loadFromUrl(scripts[i + 1]!) : evaluate(scripts[i]!, scripts[i + 1]!);
      if (failure !== null) return failure;
    }
    return null;
  }

  /** Returns the answer, or only the length of a long answer. */
  async function evaluateAndCall(scripts: Any, payload: string, settings: string): Promise<string | number> {
    answer = await core.protectPromise(core.evaluateAndCall(payload, settings, scripts, loadAll));
    return answer.length <= messageMaxCharacters ? answer : answer.length;
  }

  return {
    __proto__: null,
    receiveResponsePart: hostCalls.receiveResponsePart,
    readAnswerPart: (from: number, to: number): string => apply(slice, answer, [from, to]),
    /** Executes a run. `scripts` alternates names and sources, or `""` and URLs. First removes the DevTools binding from the globals. */
    run(bindingName: string, scripts: Any, payload: string, settings: string, base: string): Promise<string | number> {
      const print: (text: string) => void = window[bindingName];
      delete window[bindingName];
      core.installConsole(print);
      hostCalls.connect((text) => print(`service ${text}` satisfies DocumentMessage));
      // In a document, only requests to other services use this global. Requests to this service use the browser's network.
      if (base !== "") openService(base, settings, hostCalls.open);
      return core.protectPromise(evaluateAndCall(scripts, payload, settings));
    },
  };
}
