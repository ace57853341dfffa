/** Reads JSON text where it lies: whether it is JSON, how deep it nests, where a member's value stands. Makes no object of it: two million `{}` are 6 MB as text and hundreds as objects. */
import { JSON_MAX_DEPTH } from "../limits.js";

const [TAB, LINE_FEED, RETURN, BLANK, QUOTE, COMMA, MINUS, COLON] = [9, 10, 13, 32, 34, 44, 45, 58] as const;
const [ZERO, NINE, BACKSLASH, U] = [48, 57, 92, 117] as const;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125] as const;

const NUMBER = /-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,400})?/y;
const HEX = /^[0-9a-fA-F]{4}$/;
const ESCAPES = '"\\/bfnrt';
const WORDS = ["true", "false", "null"] as const;

/** No position: what stands there is no JSON. */
const NOWHERE = -1;

function skipBlank(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== BLANK && code !== LINE_FEED && code !== RETURN && code !== TAB) return at;
    at += 1;
  }
}

/** From an opening quote to behind the closing one. */
function skipString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code < BLANK) return NOWHERE;
    if (code !== BACKSLASH) continue;
    at += 1;
    if (text.charCodeAt(at) === U) {
      if (!HEX.test(text.slice(at + 1, at + 5))) return NOWHERE;
      at += 4;
    } else if (at >= text.length || !ESCAPES.includes(text[at]!)) return NOWHERE;
  }
  return NOWHERE;
}

function skipNumber(text: string, from: number): number {
  NUMBER.lastIndex = from;
  return NUMBER.test(text) ? NUMBER.lastIndex : NOWHERE;
}

function skipScalar(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code === QUOTE) return skipString(text, at);
  if (code === MINUS || (code >= ZERO && code <= NINE)) return skipNumber(text, at);
  const word = WORDS.find((one) => text.startsWith(one, at));
  return word ? at + word.length : NOWHERE;
}

/** From a key's quote to where its value begins. */
function skipKey(text: string, at: number): number {
  if (text.charCodeAt(at) !== QUOTE) return NOWHERE;
  const end = skipString(text, at);
  if (end === NOWHERE) return NOWHERE;
  const colon = skipBlank(text, end);
  return text.charCodeAt(colon) === COLON ? skipBlank(text, colon + 1) : NOWHERE;
}

/** The containers that are open at one place, the innermost last. */
class Nesting {
  private readonly objects: boolean[] = [];
  deepest = 0;

  open(isObject: boolean): void {
    this.objects.push(isObject);
    this.deepest = Math.max(this.deepest, this.objects.length);
  }

  get isObject(): boolean {
    return this.objects.at(-1)!;
  }

  get isOpen(): boolean {
    return this.objects.length > 0;
  }

  close(): void {
    this.objects.pop();
  }
}

/** Behind an opening bracket: where the first value begins, or behind the bracket that closes at once. */
function enter(text: string, from: number, nesting: Nesting): { at: number; empty: boolean } {
  const isObject = text.charCodeAt(from) === OPEN_OBJECT;
  nesting.open(isObject);
  const at = skipBlank(text, from + 1);
  if (text.charCodeAt(at) !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
    return { at: isObject ? skipKey(text, at) : at, empty: false };
  }
  nesting.close();
  return { at: at + 1, empty: true };
}

/** Behind a value: where the next one begins, or the end when nothing is open any more. */
function leave(text: string, from: number, nesting: Nesting): { at: number; ended: boolean } {
  let at = from;
  while (nesting.isOpen) {
    at = skipBlank(text, at);
    const code = text.charCodeAt(at);
    const { isObject } = nesting;
    if (code === COMMA) {
      const next = skipBlank(text, at + 1);
      return { at: isObject ? skipKey(text, next) : next, ended: false };
    }
    if (code !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) return { at: NOWHERE, ended: true };
    nesting.close();
    at += 1;
  }
  return { at, ended: true };
}

/** Where the value that begins at `from` ends; NOWHERE when it is no JSON or nests deeper than `levels`. */
function skipValue(text: string, from: number, nesting: Nesting, levels: number): number {
  let at = from;
  while (at !== NOWHERE && nesting.deepest <= levels) {
    const code = text.charCodeAt(at);
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      const { at: inside, empty } = enter(text, at, nesting);
      at = inside;
      if (!empty) continue;
    } else at = skipScalar(text, at);
    if (at === NOWHERE) return NOWHERE;
    const { at: next, ended } = leave(text, at, nesting);
    if (ended) return next;
    at = next;
  }
  return NOWHERE;
}

/** Fault of an untrusted text: not JSON, or nested deeper than `levels`; null if there is none. */
export function jsonFault(text: string, levels: number): "invalid" | "deep" | null {
  const nesting = new Nesting();
  const end = skipValue(text, skipBlank(text, 0), nesting, levels);
  if (nesting.deepest > levels) return "deep";
  return end !== NOWHERE && skipBlank(text, end) === text.length ? null : "invalid";
}

/** `jsonFault` of a run's result, by one argument: what a thread can be asked. */
export const resultFault = (text: string): ReturnType<typeof jsonFault> => jsonFault(text, JSON_MAX_DEPTH);

/** The texts of an object's members, of two with one name the last, as JSON.parse has it. `text` is JSON. */
export function memberTexts(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let at = skipBlank(text, 0);
  if (text.charCodeAt(at) !== OPEN_OBJECT) return found;
  at = skipBlank(text, at + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const key = JSON.parse(text.slice(at, skipString(text, at))) as string;
    const from = skipKey(text, at);
    const end = skipValue(text, from, new Nesting(), Number.POSITIVE_INFINITY);
    if (end === NOWHERE) return found;
    found.set(key, text.slice(from, end));
    at = skipBlank(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipBlank(text, at + 1);
  }
  return found;
}

/** The text of one member; undefined where there is none. */
export const memberText = (text: string, name: string): string | undefined => memberTexts(text).get(name);
