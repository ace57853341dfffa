/**
 * Reads what the threads of one run print, trusting nothing in it, and holds all of it together to the limits that each thread
 * holds itself to. Knows neither pages nor workers.
 */
import { type ConsoleLine, DEFAULT_SOURCE_NAME } from "../run.js";
import { withoutHead } from "./action-script.js";
import { TEXT_MAX_CHARACTERS, wasCut, withoutHarness } from "./answer.js";
import { CONSOLE_FULL, CONSOLE_MAX_CHARACTERS, CONSOLE_MAX_LINES } from "./harness.js";

/** What JSON may make of the longest text that a thread sends: six characters of each, and a little beside it. */
const PAYLOAD_MAX_CHARACTERS = 6 * TEXT_MAX_CHARACTERS + 256;

function readLine(payload: string, sourceName: string): ConsoleLine | null {
  if (payload.length > PAYLOAD_MAX_CHARACTERS) return null;
  try {
    const { level, at, text } = JSON.parse(payload) as ConsoleLine;
    const line = { level: String(level), at: Number(at), text: withoutHead(withoutHarness(String(text)), sourceName) };
    return wasCut(text) ? { ...line, cut: true } : line;
  } catch {
    return null;
  }
}

/** @returns what takes a thread's line as the JSON of a ConsoleLine */
export function createLineReader(
  tell: (line: ConsoleLine) => void,
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
    const full = lines > CONSOLE_MAX_LINES || characters > CONSOLE_MAX_CHARACTERS;
    tell(full ? { level: "warn", at: line.at, text: CONSOLE_FULL } : line);
  };
}
