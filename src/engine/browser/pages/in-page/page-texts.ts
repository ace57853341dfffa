/** Stores texts of scripts by content in a thread, as StoredTexts (stored-texts.ts) instructs it. Actions cannot reach this store. */

/**
 * A script in the form in which it is sent. `text` is null if the thread has stored its content; `isStored` is true if
 * the thread must store it now.
 */
export type SentScript = readonly [name: string, text: string | null, content: string, isStored: boolean];

export type TextsOf = ReturnType<typeof pageTexts>;

/** Its source text is evaluated in the browser, like `harnessCore`. Returns a function that returns the names and sources of sent scripts in turn. */
export function pageTexts() {
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
