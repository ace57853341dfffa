/** Markdown of the generated reference pages: tables, code in a cell, and the line that says how a page is made. */

const inCell = (text: string): string =>
  text
    .replaceAll("|", "\\|")
    .split("\n")
    .map((line) => line.trim())
    .join(" ")
    .trim();

export const code = (text: string): string => `\`${text}\``;

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(inCell).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

/** A page: title, whom it is for, how it is made, and its parts. */
export function page(title: string, lead: string, source: string, parts: readonly string[]): string {
  const made = `\`npm run reference\` writes this page from ${source}.`;
  return `${[`# ${title}`, `${lead} ${made}`, ...parts].join("\n\n")}\n`;
}
