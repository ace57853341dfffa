/** Splits the text of an action's file into its `config` block and its code, so that each part can be replaced separately. */

const IMPORT_LINE_TEXT = 'import { defineAction } from "svc";';
const CONFIG_START = "export const config = defineAction(";

/** Returns the index after the `)` that closes the last `(` before `from`; -1 if there is none. Ignores strings and comments. */
function findClosingIndex(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === '"' || character === "'" || character === "`") {
      for (at += 1; at < text.length && text[at] !== character; at += 1) if (text[at] === "\\") at += 1;
    } else if (text.startsWith("//", at)) {
      const lineEnd = text.indexOf("\n", at);
      if (lineEnd < 0) return -1;
      at = lineEnd;
    } else if (text.startsWith("/*", at)) {
      const commentEnd = text.indexOf("*/", at);
      if (commentEnd < 0) return -1;
      at = commentEnd + 1;
    } else if (character === "(") {
      depth += 1;
    } else if (character === ")") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

const IMPORT_LINE_PATTERN = /^import \{ defineAction \} from (?:"svc"|'svc');?\r?\n*/m;

/** Ranges of the file without the config block and its import. Each is [start, end), without `end` itself. */
function findCodeRanges(text: string): [number, number][] {
  const start = text.indexOf(CONFIG_START);
  const configEnd = start < 0 ? -1 : findClosingIndex(text, start + CONFIG_START.length);
  if (configEnd < 0) return [[0, text.length]];
  const importMatch = IMPORT_LINE_PATTERN.exec(text.slice(0, start));
  const importStart = importMatch?.index ?? 0;
  const separatorLength = /^;?(?:\r?\n){0,2}/.exec(text.slice(configEnd))![0].length;
  return [
    [0, importStart],
    [importStart + (importMatch?.[0].length ?? 0), start],
    [configEnd + separatorLength, text.length],
  ];
}

/** Returns the text of the file without the config block, and without the import that only this block needs. */
export const removeConfigBlock = (text: string): string =>
  findCodeRanges(text)
    .map(([from, to]) => text.slice(from, to))
    .join("");

/** Returns, for each line of the code without the config block, its line number in the file, counted from 1. */
export function getCodeLineNumbers(text: string): number[] {
  const lines: number[] = [];
  let isLineStart = true;
  for (const [from, to] of findCodeRanges(text)) {
    let line = text.slice(0, from).split("\n").length;
    for (let at = from; at < to; at += 1) {
      if (isLineStart) lines.push(line);
      isLineStart = text[at] === "\n";
      if (isLineStart) line += 1;
    }
  }
  return lines;
}

const toObjectLiteral = (config: Record<string, unknown>): string =>
  JSON.stringify(config, null, 2).replaceAll(/^( *)"([A-Za-z_$][\w$]*)":/gm, "$1$2:");

export const joinConfigAndCode = (config: Record<string, unknown>, body: string): string =>
  `${IMPORT_LINE_TEXT}\n\n${CONFIG_START}${toObjectLiteral(config)});\n\n${body.trimEnd()}\n`;
