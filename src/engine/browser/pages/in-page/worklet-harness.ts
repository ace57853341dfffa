/**
 * Runs scripts and then `execute` in a worklet, whose globals it first cuts down to the ones given. Runs inside the browser, before the
 * author's code does.
 */
import type { HarnessCore } from "./core.js";
import type { StandInsOf } from "./stand-ins.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;

/**
 * As `harnessCore`: evaluated by its source text. A worklet is talked to by way of a processor, which never processes anything. Over its
 * port it says `c` and a console line, `a`, the milliseconds that the packages and the author's own code took and the answer of
 * `callExecute`, `x` where a stand-in was touched, and asked once more `b`: nothing of the run goes on. There is nothing in the scope by
 * which it could: no timer, no port, no event, no import, no memory that threads share.
 */
export function workletHarness(core: HarnessCore, standIn: StandInsOf, globals: readonly string[]): void {
  const { AudioWorkletProcessor, MessagePort, registerProcessor } = globalThis as Any;
  const { apply } = Reflect;
  const { postMessage } = MessagePort.prototype;
  const { now } = Date;

  class Run extends AudioWorkletProcessor {
    constructor() {
      super();
      const { port } = this as Any;
      const tell = (text: string) => apply(postMessage, port, [text]);
      core.installConsole((line) => tell(`c${line}`));
      core.keepOnly(globals);
      port.onmessage = async ({ data: [payload, settings, namesJson, navigatorJson, ...scripts] }: Any) => {
        port.onmessage = () => {
          core.drop(globals);
          tell("b");
        };
        if (namesJson !== null) standIn(namesJson, navigatorJson, () => tell("x"));
        const begun = now();
        let own = begun;
        const beforeOwn = () => {
          own = now();
        };
        const answer = await core.safe(core.evaluateAndCall(payload, settings, scripts, beforeOwn));
        tell(`a${own - begun} ${now() - own} ${answer}`);
      };
    }
  }
  registerProcessor("run", Run);
}
