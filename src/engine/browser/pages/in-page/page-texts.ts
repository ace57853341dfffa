/** The texts that a page keeps by their content, as the host says (kept-texts.ts). Runs inside the browser, where no author's code does. */

type Sent = readonly [name: string, text: string | null, content: string, keep: boolean];

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
