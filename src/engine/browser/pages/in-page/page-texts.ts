/** Caches the sources of scripts in a worker thread, so that the service sends them only once. Actions have no access to the cache. */

/** `content` is the key in the thread's cache; empty for a text that the thread must not cache. `text` is null if the cache has it. */
export type SentScript = readonly [name: string, text: string | null, content: string];

export type ScriptCache = ReturnType<typeof createScriptCache>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createScriptCache() {
  const texts = new Map<string, string>();
  return (scripts: readonly SentScript[]): string[] =>
    scripts.flatMap(([name, text, content]) => {
      if (text !== null && content !== "") texts.set(content, text);
      return [name, text ?? texts.get(content)!];
    });
}
