/** Converts CSV cells to values of a type, and detects the type of a column. Imports nothing, because Studio executes this file too. */

/** Types to which CSV cells can be converted. A date stays text (ISO 8601), because entries are JSON. */
export const CSV_CELL_TYPES = ["text", "number", "boolean", "date"] as const;
export type CsvCellType = (typeof CSV_CELL_TYPES)[number];
export type CsvCellValue = string | number | boolean | null;

export const CSV_CELL_TYPE_DESCRIPTIONS: Readonly<Record<CsvCellType, string>> = {
  text: "a text",
  number: "a number such as 1234.5",
  boolean: "true, false, yes, no, 1 or 0",
  date: "a date such as 2026-11-26, 2026-11-26T09:30Z or 26.11.2026",
};

const NUMBER_TEXT_PATTERN = /^[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const ISO_DATE_PATTERN = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/;
const DOTTED_DATE_PATTERN = /^(\d\d?)\.(\d\d?)\.(\d{4})$/;
const BOOLEAN_BY_WORD: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  "1": true,
  false: false,
  no: false,
  "0": false,
};
const BOOLEAN_WORDS = ["true", "false", "yes", "no"];

function parseNumber(text: string): number | undefined {
  const value = NUMBER_TEXT_PATTERN.test(text) ? Number(text) : Number.NaN;
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** Returns false for a day such as 30 February, which `Date` would change to a day in March. */
export function isCalendarDay(day: string): boolean {
  const time = Date.parse(`${day}T00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day);
}

/** Converts a date to ISO 8601, and a time to UTC. A time without a time zone counts as UTC. Returns undefined if the text is no date. */
function parseDate(text: string): string | undefined {
  const [, dayText, monthText, yearText] = DOTTED_DATE_PATTERN.exec(text) ?? [];
  const iso = yearText === undefined ? text : `${yearText}-${monthText!.padStart(2, "0")}-${dayText!.padStart(2, "0")}`;
  const [, day, clock, zone = "Z"] = ISO_DATE_PATTERN.exec(iso) ?? [];
  if (day === undefined || !isCalendarDay(day)) return undefined;
  if (clock === undefined) return day;
  const time = Date.parse(`${day}T${clock}${zone}`);
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}

/** Converts a cell to the type; undefined if this is not possible. A blank cell becomes null, except for the type `text`. */
export function convertCsvCell(cell: string, type: CsvCellType): CsvCellValue | undefined {
  if (type === "text") return cell;
  const text = cell.trim();
  if (text === "") return null;
  if (type === "number") return parseNumber(text);
  if (type === "date") return parseDate(text);
  const word = text.toLowerCase();
  return Object.hasOwn(BOOLEAN_BY_WORD, word) ? BOOLEAN_BY_WORD[word] : undefined;
}

/** Returns false if converting to a number and back would change the text, as for 00123, 1.10 and 0.12345678901234567890. */
const isExactNumber = (text: string): boolean => parseNumber(text) !== undefined && String(Number(text)) === text;

/** Returns false for a time without a time zone: it is probably a local time, but parseDate() would treat it as UTC. */
function isExactDate(text: string): boolean {
  const [, , clock, zone] = ISO_DATE_PATTERN.exec(text) ?? [];
  return parseDate(text) !== undefined && (clock === undefined || zone !== undefined);
}

/**
 * Suggests the type that fits all cells which are not blank; `text` if no other type fits. Numbers whose text would change, and times
 * without a time zone, also count as text.
 */
export function detectCsvCellType(cells: readonly string[]): CsvCellType {
  const texts = cells.map((cell) => cell.trim()).filter((text) => text !== "");
  if (texts.length === 0) return "text";
  if (texts.every((text) => BOOLEAN_WORDS.includes(text.toLowerCase()))) return "boolean";
  if (texts.every(isExactNumber)) return "number";
  return texts.every(isExactDate) ? "date" : "text";
}
