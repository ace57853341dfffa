/** Compares texts and numbers in filters without regard to case. Comparison in memory and in SQL gives the same result. */

/** Collation for case folding. It is set explicitly, because databases have different default collations. */
export const UNICODE_COLLATION = 'COLLATE "und-x-icu"';

const FINAL_SIGMA = "ς";
const LOWER_SIGMA = "σ";
/** Lower case of "İ". */
const DOTTED_I = "i\u0307";

/**
 * Folds the case of a text. Converts to upper case first, which expands "ß" and ligatures. The two replacements make a
 * text and its parts fold in the same way: a sigma is final only at the end of a word, and "İ" keeps its dot.
 */
export const foldCase = (text: string): string =>
  text.toUpperCase().toLowerCase().replaceAll(FINAL_SIGMA, LOWER_SIGMA).replaceAll(DOTTED_I, "i");

/** Returns the SQL for `foldCase`. */
export const foldCaseSql = (sql: string): string =>
  `replace(replace(lower(upper(${sql} ${UNICODE_COLLATION})), '${FINAL_SIGMA}', '${LOWER_SIGMA}'), '${DOTTED_I}', 'i')`;

/** True if the text contains the part in any case. */
export const holdsText = (text: string, part: string): boolean => foldCase(text).includes(foldCase(part));

/** Returns the SQL for `holdsText`. */
export const holdsTextSql = (text: string, part: string): string =>
  `strpos(${foldCaseSql(text)}, ${foldCaseSql(part)}) > 0`;

const EXPONENT_SHAPE = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/;

/** Formats a number without an exponent, as PostgreSQL's type numeric does: 1e-7 becomes 0.0000001. */
export function decimalText(value: number): string {
  const exponentMatch = EXPONENT_SHAPE.exec(String(value));
  if (!exponentMatch) return String(value);
  const [, sign = "", whole = "", fraction = "", exponent = ""] = exponentMatch;
  const shift = Number(exponent);
  // JavaScript uses positive exponents only from 1e21, where no number has decimals.
  if (shift > 0) return sign + (whole + fraction).padEnd(1 + shift, "0");
  return `${sign}0.${"0".repeat(-shift - 1)}${whole}${fraction}`;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?[eE][+-]?\d{1,3}$/;

/** Returns the texts that count as equal to the operand: the operand, and the decimal form of a number with an exponent. */
export function equalTexts(operand: string): string[] {
  return JSON_NUMBER.test(operand) ? [operand, decimalText(Number(operand))] : [operand];
}
