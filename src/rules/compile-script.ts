/** Converts an action's code to the script that a browser loads. Imports nothing, because the browser executes this file too. */

/** Name of the registry of actions in a page: `globalThis[Symbol.for(ACTION_REGISTRY_NAME)]` is a Map of `RegisteredAction` by action ID. */
export const ACTION_REGISTRY_NAME = "svc.actions";

/** Action that its script adds to the registry when a page executes the script. */
export interface RegisteredAction {
  name: string;
  /** Evaluates the author's code in its own scope, and returns the function `execute` of this code. */
  define(): (context: { payload: object; settings: object }) => Promise<unknown>;
}

/**
 * Builds the script of an action. The code starts in the script's first line, so that line numbers in errors are those of the code. Callers
 * must first check that the code parses as a script: other code could close the function around it.
 */
export function compileActionScript({ id, name, code }: { id: number; name: string; code: string }): string {
  const registry = `(globalThis[Symbol.for(${JSON.stringify(ACTION_REGISTRY_NAME)})]??=new Map)`;
  const file = `svc-action-${id}-${encodeURIComponent(name)}.js`;
  const scriptHead = `${registry}.set(${Number(id)},{name:${JSON.stringify(name)},define(){`;
  // The line break ends a comment in the code's last line. `#!` becomes `//`, because `#!` is valid only at the start of a script.
  return `${scriptHead}${code.replace(/^#!/, "//")}\nreturn execute;}});\n//# sourceURL=${file}\n`;
}
