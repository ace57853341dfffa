/** Turns an action's code into the script that a browser loads. Pure, without imports, so that both sides agree. */

/** Where such scripts leave their definitions: `globalThis[Symbol.for(REGISTRY)]`, a Map by action id. */
export const REGISTRY = "svc.actions";

/** What a script registers under its action's id. */
export interface CompiledAction {
  name: string;
  /** Evaluates the author's code in a scope of its own and gives its `execute`. */
  define(): (context: { payload: object; settings: object }) => Promise<unknown>;
}

/**
 * Line numbers of an error are those of the author's code: the code starts in the script's first line. Code that does
 * not parse as a script of its own must not come here (specification, Code rules): it could close the wrapper.
 */
export function compileScript({ id, name, code }: { id: number; name: string; code: string }): string {
  const entry = `(globalThis[Symbol.for(${JSON.stringify(REGISTRY)})]??=new Map)`;
  const file = `svc-action-${id}-${encodeURIComponent(name)}.js`;
  const head = `${entry}.set(${Number(id)},{name:${JSON.stringify(name)},define(){`;
  // The line break ends a comment in the last line of the code. A hashbang comment is allowed only at the start of a script.
  return `${head}${code.replace(/^#!/, "//")}\nreturn execute;}});\n//# sourceURL=${file}\n`;
}
