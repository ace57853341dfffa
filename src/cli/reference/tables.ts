/** Helpers for the Markdown of generated reference pages: tables, code in a table cell, and the note that names the source of a page. */

const escapeForCell = (text: string): string =>
  text
    .replaceAll("|", "\\|")
    .split("\n")
    .map((line) => line.trim())
    .join(" ")
    .trim();

export const formatInlineCode = (text: string): string => `\`${text}\``;

export function formatMarkdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const formatLine = (cells: readonly string[]) => `| ${cells.map(escapeForCell).join(" | ")} |`;
  return [formatLine(head), formatLine(head.map(() => "---")), ...rows.map(formatLine)].join("\n");
}

/**
 * Builds a generated reference page.
 * @param lead sentence that names the readers of the page
 * @param source code from which the page is generated
 */
export function buildReferencePage(title: string, lead: string, source: string, parts: readonly string[]): string {
  const generatedNote = `This page is generated from ${source}, by \`npm run reference\`.`;
  return `${[`# ${title}`, lead, generatedNote, ...parts].join("\n\n")}\n`;
}
