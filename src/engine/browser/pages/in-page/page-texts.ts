/** Stores texts of scripts by content in a thread, on the instructions of StoredTexts (stored-texts.ts). Actions cannot reach it. */

/** Script as it is sent. `text` is null if the thread has its content; `isStored` is true if the thread must store it. */
export type SentScript = readonly [name: string, text: string | null, content: string, isStored: boolean];

export type TextsOf = ReturnType<typeof pageTexts>;

/** Evaluated by its source text, as `harnessCore`. Returns a function that returns the names and sources of sent scripts in turn. */
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
