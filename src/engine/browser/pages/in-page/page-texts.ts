/** Caches the sources of scripts in a worker thread, so that the service sends them only once. Actions have no access to the cache. */

/** `content` is the key in the thread's cache. `text` is null if the cache has it. `isStored`: the thread must cache it. */
export type SentScript = readonly [name: string, text: string | null, content: string, isStored: boolean];

export type ScriptCache = ReturnType<typeof createScriptCache>;

/** The browser evaluates this function's source text, so it can use only globals and its own code. */
export function createScriptCache() {
  const texts = new Map<string, string>();
  return (removed: readonly string[], scripts: readonly SentScript[]): string[] => {
    const flat = scripts.flatMap(([name, text, content, isStored]) => {
      if (isStored) texts.set(content, text!);
      return [name, text ?? texts.get(content)!];
    });
    for (const content of removed) texts.delete(content);
    return flat;
  };
}
