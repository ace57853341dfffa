/**
 * Converts an action's code to the script that a browser loads. The server and the browser execute this file, so it
 * imports nothing.
 */

/**
 * Name of the registry of compiled actions. Scripts register their actions in `globalThis[Symbol.for(ACTION_REGISTRY_NAME)]`,
 * a Map with action IDs as keys.
 */
export const ACTION_REGISTRY_NAME = "svc.actions";

/** Object that the script of an action registers under the action's ID. */
export interface CompiledAction {
  name: string;
  /** Evaluates the author's code in its own scope. Returns the function `execute` that the code defines. */
  define(): (context: { payload: object; settings: object }) => Promise<unknown>;
}

/**
 * Builds the script of an action. The author's code starts in the first line of the script, so line numbers in errors
 * are those of the author's code. Callers must pass only code that parses as a script (specification, Code rules),
 * because other code could close the function around it.
 */
export function compileActionScript({ id, name, code }: { id: number; name: string; code: string }): string {
  const entry = `(globalThis[Symbol.for(${JSON.stringify(ACTION_REGISTRY_NAME)})]??=new Map)`;
  const file = `svc-action-${id}-${encodeURIComponent(name)}.js`;
  const scriptHead = `${entry}.set(${Number(id)},{name:${JSON.stringify(name)},define(){`;
  // The line break after the code is needed because the code's last line may be a comment. `#!` becomes `//`, because
  // it is valid only at the start of a script.
  return `${scriptHead}${code.replace(/^#!/, "//")}\nreturn execute;}});\n//# sourceURL=${file}\n`;
}
