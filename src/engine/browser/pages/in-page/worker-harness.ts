/**
 * Runs one source and its `execute` in a dedicated worker, whose globals it first cuts down to the ones given. Runs inside
 * the browser, before the author's code does.
 */
import type { HarnessCore } from "./core.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/**
 * As `harnessCore`: evaluated by its source text. Talks over the port that the worker's first message brings: `r` ready, `c` and a
 * console line, `a` and the answer of `callExecute`; then, asked again, `b`: nothing of the run is left but this thread's end.
 */
export function workerHarness(core: HarnessCore, globals: readonly string[]): void {
  const scope = self;
  const { apply, deleteProperty, getPrototypeOf, ownKeys } = Reflect;
  const { eval: evaluate, close } = scope;
  const { postMessage } = scope.MessagePort.prototype;
  const defined = "\n;typeof execute === 'undefined' ? undefined : execute\n//# sourceURL=";

  async function start(source: string, name: string, payload: string, settings: string): Promise<string> {
    // The caller's frames are gone after this, so that a stack holds the author's frames alone.
    await undefined;
    let run: Any;
    try {
      run = evaluate(source + defined + name);
    } catch (error) {
      return core.fail("script", error, "");
    }
    return await core.safe(core.callExecute(run, payload, settings));
  }

  /** Some stand on the global object, some on what it inherits from, up to what every listener inherits. */
  function removeOtherGlobals(): void {
    const kept = new Set<unknown>(globals);
    const end = scope.EventTarget.prototype;
    for (let holder = scope; holder !== end; holder = getPrototypeOf(holder)) {
      for (const key of ownKeys(holder)) if (!kept.has(key)) deleteProperty(holder, key);
    }
  }

  scope.onmessage = (greeting: Any) => {
    const [port] = greeting.ports;
    const tell = (text: string) => apply(postMessage, port, [text]);
    scope.onmessage = null;
    core.installConsole((line) => tell(`c${line}`));
    removeOtherGlobals();
    const leave = () => {
      tell("b");
      apply(close, scope, []);
    };
    port.onmessage = async ({ data: [source, name, payload, settings] }: Any) => {
      port.onmessage = leave;
      tell(`a${await core.safe(start(source, name, payload, settings))}`);
    };
    tell("r");
  };
}
