/**
 * Converts an action's code to the script that a browser loads. The server and the browser execute this file, so it
 * imports nothing.
 */

/** Scripts register their actions in `globalThis[Symbol.for(REGISTRY_NAME)]`, which is a Map with action IDs as keys. */
export const REGISTRY_NAME = "svc.actions";

/** Value that the script of an action registers under the action's ID. */
export interface CompiledAction {
  name: string;
  /** Evaluates the author's code in a scope of its own. Returns the function `execute` that the code defines. */
  define(): (context: { payload: object; settings: object }) => Promise<unknown>;
}

/**
 * Builds the script. Line numbers of errors are those of the author's code, because the code starts in the script's first line. Pass only
 * code that parses as a script (specification, Code rules), because other code could close the wrapper.
 */
export function compileScript({ id, name, code }: { id: number; name: string; code: string }): string {
  const entry = `(globalThis[Symbol.for(${JSON.stringify(REGISTRY_NAME)})]??=new Map)`;
  const file = `svc-action-${id}-${encodeURIComponent(name)}.js`;
  const scriptHead = `${entry}.set(${Number(id)},{name:${JSON.stringify(name)},define(){`;
  // A last line with a comment needs a line break after it. `#!` becomes `//`, because it is valid only at the start of a script.
  return `${scriptHead}${code.replace(/^#!/, "//")}\nreturn execute;}});\n//# sourceURL=${file}\n`;
}
