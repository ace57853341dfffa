/** The texts that a page or its thread of realms keeps by their content, as it is told. Runs inside the browser, where no author's code does. */

/** One script as it is sent: `text` null where that content is there; `keep` where it is to stay (kept-texts.ts). */
export type Sent = readonly [name: string, text: string | null, content: string, keep: boolean];

export type TakeTexts = ReturnType<typeof pageTexts>;

/** As `harnessCore`: evaluated by its source text. Answers what makes of sent scripts their names and sources in turn. */
export function pageTexts() {
  const texts = new Map<string, string>();
  return (forget: readonly string[], scripts: readonly Sent[]): string[] => {
    const flat = scripts.flatMap(([name, text, content, keep]) => {
      if (keep) texts.set(content, text!);
      return [name, text ?? texts.get(content)!];
    });
    for (const content of forget) texts.delete(content);
    return flat;
  };
}
