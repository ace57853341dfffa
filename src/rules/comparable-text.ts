/** Texts and numbers as filters compare them: case-blind, in memory and in SQL alike. Pure. */

/** The collation is named so that every database folds alike, however it was set up. */
export const UNICODE = 'COLLATE "und-x-icu"';

const FINAL_SIGMA = "ς";
const SIGMA = "σ";
/** What remains of "İ" in lower case. */
const DOTTED_I = "i\u0307";

/**
 * A text without case. Upper case comes first, because it expands "ß" and ligatures. The two replacements make a text and its parts fold
 * alike: a sigma is final only at the end of a word, and "İ" keeps its dot.
 */
export const foldCase = (text: string): string =>
  text.toUpperCase().toLowerCase().replaceAll(FINAL_SIGMA, SIGMA).replaceAll(DOTTED_I, "i");

/** SQL of the same. */
export const foldCaseSql = (sql: string): string =>
  `replace(replace(lower(upper(${sql} ${UNICODE})), '${FINAL_SIGMA}', '${SIGMA}'), '${DOTTED_I}', 'i')`;

/** True if the part stands anywhere in the text, case aside. */
export const holdsText = (whole: string, part: string): boolean => foldCase(whole).includes(foldCase(part));

/** SQL of the same. */
export const holdsTextSql = (whole: string, part: string): string =>
  `strpos(${foldCaseSql(whole)}, ${foldCaseSql(part)}) > 0`;

const EXPONENT = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/;

/** A number without an exponent, as PostgreSQL writes a numeric: 1e-7 is 0.0000001. */
export function decimalText(value: number): string {
  const found = EXPONENT.exec(String(value));
  if (!found) return String(value);
  const [, sign = "", whole = "", fraction = "", exponent = ""] = found;
  const shift = Number(exponent);
  // JavaScript writes an exponent from 21 on, and no number has as many digits behind its point.
  if (shift > 0) return sign + (whole + fraction).padEnd(1 + shift, "0");
  return `${sign}0.${"0".repeat(-shift - 1)}${whole}${fraction}`;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?[eE][+-]?\d{1,3}$/;

/** The texts that equal an operand: itself, and for a number with an exponent its decimal form. */
export function equalTexts(operand: string): string[] {
  return JSON_NUMBER.test(operand) ? [operand, decimalText(Number(operand))] : [operand];
}
