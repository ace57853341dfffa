/** Turns an action's code into the script that a browser loads. Has no imports, because server and browser run it. */

/** Where these scripts store their definitions: `globalThis[Symbol.for(REGISTRY_NAME)]`, a Map by action id. */
export const REGISTRY_NAME = "svc.actions";

/** The value that a script registers under its action's id. */
export interface CompiledAction {
  name: string;
  /** Evaluates the author's code in its own scope and returns its `execute`. */
  define(): (context: { payload: object; settings: object }) => Promise<unknown>;
}

/**
 * Line numbers of errors are those of the author's code: the code starts in the script's first line. Only pass code
 * that parses as a script (specification, Code rules): other code could close the wrapper.
 */
export function compileScript({ id, name, code }: { id: number; name: string; code: string }): string {
  const entry = `(globalThis[Symbol.for(${JSON.stringify(REGISTRY_NAME)})]??=new Map)`;
  const file = `svc-action-${id}-${encodeURIComponent(name)}.js`;
  const scriptHead = `${entry}.set(${Number(id)},{name:${JSON.stringify(name)},define(){`;
  // The line break ends a comment in the last line of the code. A hashbang comment is allowed only at the start of a script.
  return `${scriptHead}${code.replace(/^#!/, "//")}\nreturn execute;}});\n//# sourceURL=${file}\n`;
}
