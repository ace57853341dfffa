/** Gives a worker that the author's code starts a console of the same make as the page's. Runs inside the browser. */
import type { HarnessCore } from "./core.js";

// biome-ignore lint/suspicious/noExplicitAny: values of unknown make, from globals of which this side has no types
type Any = any;
declare const self: Any;

/** As `harnessCore`: evaluated by its source text. Takes the way out off the global, so that the author cannot find it. */
export function childConsole(core: HarnessCore, bindingName: string): void {
  const print = self[bindingName];
  delete self[bindingName];
  core.installConsole(print);
}
