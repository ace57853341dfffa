/** Replaces the console of a worker that the action starts. */
import type { HarnessCore } from "./core.js";

// biome-ignore lint/suspicious/noExplicitAny: globals of the browser have no types here
type Any = any;
declare const self: Any;

/** Evaluated by its source text, as `harnessCore`. Removes the binding from the global scope, so that the action cannot find it. */
export function childConsole(core: HarnessCore, bindingName: string): void {
  const print = self[bindingName];
  delete self[bindingName];
  core.installConsole(print);
}
