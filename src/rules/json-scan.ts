/**
 * Scans JSON text without creating objects: checks its validity and nesting depth, and finds the fields of an object. As objects, 6 MB of
 * `{}` would need hundreds of MB.
 */
import { JSON_MAX_DEPTH } from "../limits.js";
import { decodeJsonText } from "./json-text.js";

const [TAB, LINE_FEED, CARRIAGE_RETURN, SPACE, QUOTE, COMMA, MINUS, COLON] = [9, 10, 13, 32, 34, 44, 45, 58] as const;
const [ZERO, NINE, BACKSLASH, LETTER_U] = [48, 57, 92, 117] as const;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125] as const;

const JSON_NUMBER_PATTERN = /-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,400})?/y;
const FOUR_HEX_DIGITS_PATTERN = /^[0-9a-fA-F]{4}$/;
const ESCAPE_CHARACTERS = '"\\/bfnrt';
const JSON_WORDS = ["true", "false", "null"] as const;

/** Result of the skip functions, instead of a position, if the text is not valid JSON or nests too deeply. */
const INVALID_JSON = -1;

function skipWhitespace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== SPACE && code !== LINE_FEED && code !== CARRIAGE_RETURN && code !== TAB) return at;
    at += 1;
  }
}

function skipString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code < SPACE) return INVALID_JSON;
    if (code !== BACKSLASH) continue;
    at += 1;
    if (text.charCodeAt(at) === LETTER_U) {
      if (!FOUR_HEX_DIGITS_PATTERN.test(text.slice(at + 1, at + 5))) return INVALID_JSON;
      at += 4;
    } else if (at >= text.length || !ESCAPE_CHARACTERS.includes(text[at]!)) return INVALID_JSON;
  }
  return INVALID_JSON;
}

function skipNumber(text: string, from: number): number {
  JSON_NUMBER_PATTERN.lastIndex = from;
  return JSON_NUMBER_PATTERN.test(text) ? JSON_NUMBER_PATTERN.lastIndex : INVALID_JSON;
}

function skipScalar(text: string, index: number): number {
  const code = text.charCodeAt(index);
  if (code === QUOTE) return skipString(text, index);
  if (code === MINUS || (code >= ZERO && code <= NINE)) return skipNumber(text, index);
  const foundWord = JSON_WORDS.find((word) => text.startsWith(word, index));
  return foundWord ? index + foundWord.length : INVALID_JSON;
}

/** Skips the key of a field and the colon after it. Returns the position of the field's value. */
function skipKey(text: string, index: number): number {
  if (text.charCodeAt(index) !== QUOTE) return INVALID_JSON;
  const stringEnd = skipString(text, index);
  if (stringEnd === INVALID_JSON) return INVALID_JSON;
  const colonIndex = skipWhitespace(text, stringEnd);
  return text.charCodeAt(colonIndex) === COLON ? skipWhitespace(text, colonIndex + 1) : INVALID_JSON;
}

/** The objects and arrays that contain the current position, the innermost one last. */
class NestingStack {
  private readonly objectFlags: boolean[] = [];
  deepest = 0;

  open(isObject: boolean): void {
    this.objectFlags.push(isObject);
    this.deepest = Math.max(this.deepest, this.objectFlags.length);
  }

  get isObject(): boolean {
    return this.objectFlags.at(-1)!;
  }

  get isOpen(): boolean {
    return this.objectFlags.length > 0;
  }

  close(): void {
    this.objectFlags.pop();
  }
}

/** Enters the object or array at `from`. Returns the position of its first value; if there is none, the position after the end. */
function enterValue(text: string, from: number, nesting: NestingStack): { at: number; empty: boolean } {
  const isObject = text.charCodeAt(from) === OPEN_OBJECT;
  nesting.open(isObject);
  const at = skipWhitespace(text, from + 1);
  if (text.charCodeAt(at) !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
    return { at: isObject ? skipKey(text, at) : at, empty: false };
  }
  nesting.close();
  return { at: at + 1, empty: true };
}

/**
 * Returns the position of the value that follows the value which ends at `from`. If no value follows, `ended` is true, and `at` is the end;
 * for an invalid text, `at` is INVALID_JSON.
 */
function findNextValue(text: string, from: number, nesting: NestingStack): { at: number; ended: boolean } {
  let at = from;
  while (nesting.isOpen) {
    at = skipWhitespace(text, at);
    const code = text.charCodeAt(at);
    const { isObject } = nesting;
    if (code === COMMA) {
      const next = skipWhitespace(text, at + 1);
      return { at: isObject ? skipKey(text, next) : next, ended: false };
    }
    if (code !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) return { at: INVALID_JSON, ended: true };
    nesting.close();
    at += 1;
  }
  return { at, ended: true };
}

/** Returns the end position of the value at `from`; INVALID_JSON if the value is invalid or nests deeper than `levels`. */
function skipValue(text: string, from: number, nesting: NestingStack, levels: number): number {
  let at = from;
  while (at !== INVALID_JSON && nesting.deepest <= levels) {
    const code = text.charCodeAt(at);
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      const { at: firstValueAt, empty } = enterValue(text, at, nesting);
      at = firstValueAt;
      if (!empty) continue;
    } else at = skipScalar(text, at);
    if (at === INVALID_JSON) return INVALID_JSON;
    const { at: next, ended } = findNextValue(text, at, nesting);
    if (ended) return next;
    at = next;
  }
  return INVALID_JSON;
}

/**
 * Returns "deep" if the text nests deeper than `levels`, and "invalid" if it is not JSON or a number has over 400 digits. Otherwise returns
 * null.
 */
export function findJsonFault(text: string, levels: number): "invalid" | "deep" | null {
  const nesting = new NestingStack();
  const valueEnd = skipValue(text, skipWhitespace(text, 0), nesting, levels);
  if (nesting.deepest > levels) return "deep";
  return valueEnd !== INVALID_JSON && skipWhitespace(text, valueEnd) === text.length ? null : "invalid";
}

/** Checks the result of a run with `findJsonFault`. Has only one parameter, because a worker thread passes only one argument. */
export const findRunResultFault = (result: string | Uint8Array): ReturnType<typeof findJsonFault> =>
  findJsonFault(decodeJsonText(result), JSON_MAX_DEPTH);

/** Returns the JSON text of each field's value in an object, by the field's name. If a name occurs twice, the last one counts. */
export function readJsonFieldTexts(text: string): Map<string, string> {
  const fieldTexts = new Map<string, string>();
  let at = skipWhitespace(text, 0);
  if (text.charCodeAt(at) !== OPEN_OBJECT) return fieldTexts;
  at = skipWhitespace(text, at + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const key = JSON.parse(text.slice(at, skipString(text, at))) as string;
    const valueStart = skipKey(text, at);
    const valueEnd = skipValue(text, valueStart, new NestingStack(), Number.POSITIVE_INFINITY);
    if (valueEnd === INVALID_JSON) return fieldTexts;
    fieldTexts.set(key, text.slice(valueStart, valueEnd));
    at = skipWhitespace(text, valueEnd);
    if (text.charCodeAt(at) === COMMA) at = skipWhitespace(text, at + 1);
  }
  return fieldTexts;
}

export const readJsonFieldText = (text: string, name: string): string | undefined => readJsonFieldTexts(text).get(name);
