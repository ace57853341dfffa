/**
 * Compares texts and numbers in filters. A function whose name ends in "Sql" returns SQL. This SQL has the same result as the function of
 * that name without "Sql".
 */

/** PostgreSQL collation for case folding. Queries name the collation, because databases have different default collations. */
export const UNICODE_COLLATION = 'COLLATE "und-x-icu"';

const FINAL_SIGMA = "ς";
const LOWER_SIGMA = "σ";
/** Lower-case form of the letter "İ": the letter i and a combining dot. */
const DOTTED_I = "i\u0307";

/**
 * Returns the same text for texts that differ only in case. Converts to upper case first, which expands "ß" and ligatures. Then replaces
 * the sigma that lower case writes at the end of a word, and the dotted i of "İ".
 */
export const foldCase = (text: string): string =>
  text.toUpperCase().toLowerCase().replaceAll(FINAL_SIGMA, LOWER_SIGMA).replaceAll(DOTTED_I, "i");

export const foldCaseSql = (sql: string): string =>
  `replace(replace(lower(upper(${sql} ${UNICODE_COLLATION})), '${FINAL_SIGMA}', '${LOWER_SIGMA}'), '${DOTTED_I}', 'i')`;

/** True if the text contains `part`, without regard to case. */
export const containsTextFolded = (text: string, part: string): boolean => foldCase(text).includes(foldCase(part));

export const containsTextFoldedSql = (text: string, part: string): string =>
  `strpos(${foldCaseSql(text)}, ${foldCaseSql(part)}) > 0`;

const EXPONENT_NOTATION_PATTERN = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/;

/** Formats a number without an exponent, as PostgreSQL's type numeric does: 1e-7 becomes 0.0000001. */
export function formatDecimal(value: number): string {
  const exponentMatch = EXPONENT_NOTATION_PATTERN.exec(String(value));
  if (!exponentMatch) return String(value);
  const [, sign = "", whole = "", fraction = "", exponent = ""] = exponentMatch;
  const shift = Number(exponent);
  // JavaScript writes a positive exponent only for numbers from 1e21 on. These have no decimals, so the result needs no decimal point.
  if (shift > 0) return sign + (whole + fraction).padEnd(1 + shift, "0");
  return `${sign}0.${"0".repeat(-shift - 1)}${whole}${fraction}`;
}

const JSON_NUMBER_WITH_EXPONENT_PATTERN = /^-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?[eE][+-]?\d{1,3}$/;

/** Returns the texts that a filter treats as equal to `operand`: `operand` itself and, for a number with an exponent, its decimal form. */
export function listEquivalentTexts(operand: string): string[] {
  return JSON_NUMBER_WITH_EXPONENT_PATTERN.test(operand) ? [operand, formatDecimal(Number(operand))] : [operand];
}
