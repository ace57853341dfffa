/** Reads and limits the console lines of a run. Checks every field, because code of the run may send any text. */
import { type ConsoleLine, DEFAULT_SOURCE_NAME } from "../run.js";
import { correctFirstLineStackColumns } from "./action-script.js";
import { ERROR_OR_CONSOLE_TEXT_MAX_CHARACTERS, isProbablyTruncated, removeHarnessFrames } from "./answer.js";
import { CONSOLE_FULL_MESSAGE, CONSOLE_MAX_CHARACTERS, CONSOLE_MAX_LINES } from "./harness.js";

/** Maximum length of a console line as JSON, in which each character of the text may take six characters (`\u0000`). */
const PAYLOAD_MAX_CHARACTERS = 6 * ERROR_OR_CONSOLE_TEXT_MAX_CHARACTERS + 256;

function readLine(payload: string, sourceName: string): ConsoleLine | null {
  if (payload.length > PAYLOAD_MAX_CHARACTERS) return null;
  try {
    const { level, at, text } = JSON.parse(payload) as ConsoleLine;
    const line = {
      level: String(level),
      at: Number(at),
      text: correctFirstLineStackColumns(removeHarnessFrames(String(text)), sourceName),
    };
    return isProbablyTruncated(text) ? { ...line, cut: true } : line;
  } catch {
    return null;
  }
}

/** Returns a function that reads the JSON text of a console line, and prints the line if it is valid and below the limits of the run. */
export function createConsoleLineParser(
  print: (line: ConsoleLine) => void,
  sourceName = DEFAULT_SOURCE_NAME,
): (payload: string) => void {
  let lines = 0;
  let characters = 0;
  return (payload) => {
    if (lines > CONSOLE_MAX_LINES || characters > CONSOLE_MAX_CHARACTERS) return;
    const line = readLine(payload, sourceName);
    if (line === null) return;
    lines += 1;
    characters += line.text.length;
    const isFull = lines > CONSOLE_MAX_LINES || characters > CONSOLE_MAX_CHARACTERS;
    print(isFull ? { level: "warn", at: line.at, text: CONSOLE_FULL_MESSAGE } : line);
  };
}
