/** Converts positions in an action's built code, which stack traces contain, to positions in the author's source files. */
import { SourceMap } from "node:module";

/** Lines and columns count from 1. Returns null for code that the service added. */
type FindPosition = (line: number, column: number) => { file: string; line: number; column: number } | null;

const STACK_FRAME_PATTERN = /^\s+at /;

function createPositionFinder(map: string): FindPosition {
  const payload = JSON.parse(map) as ConstructorParameters<typeof SourceMap>[0];
  const sourceMap = new SourceMap(payload);
  return (line, column) => {
    const entry = sourceMap.findEntry(line - 1, column - 1);
    if (!("originalSource" in entry) || entry.generatedLine !== line - 1) return null;
    return { file: entry.originalSource, line: entry.originalLine + 1, column: entry.originalColumn + 1 };
  };
}

/**
 * Returns a function that replaces the positions in a stack trace by positions in the source files. It removes the trace's lines about code
 * that the service added.
 * @param name name of the built code in stack traces
 * @param map source map of the built code; null if the author wrote the code itself
 */
export function createSourcePositionMapper(name: string, map: string | null): (text: string) => string {
  if (map === null) return (text) => text;
  let findPosition: FindPosition | null = null;
  const positionPattern = new RegExp(`${name.replaceAll(/[.-]/g, "\\$&")}:(\\d{1,9}):(\\d{1,9})`, "g");
  return (text) => {
    if (!text.includes(`${name}:`)) return text;
    findPosition ??= createPositionFinder(map);
    const lines = text.split("\n").flatMap((line) => {
      let isAdded = false;
      const replacedLine = line.replace(positionPattern, (match, lineNumber: string, column: string) => {
        const sourcePosition = findPosition!(Number(lineNumber), Number(column));
        isAdded ||= sourcePosition === null;
        return sourcePosition ? `${sourcePosition.file}:${sourcePosition.line}:${sourcePosition.column}` : match;
      });
      return isAdded && STACK_FRAME_PATTERN.test(line) ? [] : [replacedLine];
    });
    return lines.join("\n");
  };
}
