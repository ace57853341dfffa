/** Stores the texts of scripts by content in a thread, as StoredTexts (stored-texts.ts) tells it. Runs where no code of actions runs. */

/** One script: `text` is null if its content is stored; `isStored` if it is to be stored. */
export type Sent = readonly [name: string, text: string | null, content: string, isStored: boolean];

export type TakeTexts = ReturnType<typeof pageTexts>;

/** Evaluated by its source text, as `harnessCore`. Returns a function that returns the names and sources of sent scripts in turn. */
export function pageTexts() {
  const texts = new Map<string, string>();
  return (removed: readonly string[], scripts: readonly Sent[]): string[] => {
    const flat = scripts.flatMap(([name, text, content, isStored]) => {
      if (isStored) texts.set(content, text!);
      return [name, text ?? texts.get(content)!];
    });
    for (const content of removed) texts.delete(content);
    return flat;
  };
}
