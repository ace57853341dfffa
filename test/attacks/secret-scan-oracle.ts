/**
 * A slow and simple implementation of the secret scan, with which tests compare the real one. The two share only the patterns of a secret.
 */
import { createSecretPatterns } from "../../src/engine/secret-scan/patterns.js";

const SEPARATOR = 0xff;
/** Separator bytes between decoded groups of digits. `endsInPattern` skips fewer bytes, so it compares only the last group. */
const GROUP_SEPARATORS = Array<number>(6).fill(SEPARATOR);
const ESCAPE_DEPTH_MAX = 8;
const PATTERN_MIN_BYTES = 8;
const CUT_SLACK = 6;
const BASE64 = /[\w+/-]{11,}/g;
const HEX = /[\da-f]{16,}/gi;

const withoutBreaks = (bytes: number[]): number[] => bytes.filter((byte) => byte !== 10 && byte !== 13);

/** Appends a UTF-16 code unit as UTF-8. The second half of a surrogate pair replaces the first half's bytes by those of the pair. */
function appendCodeUnit(out: number[], unit: number): void {
  const [a, b, c] = out.slice(-3);
  const isLow = unit >= 0xdc00 && unit < 0xe000;
  if (isLow && out.length >= 3 && a === 0xed && b! >= 0xa0 && b! < 0xb0) {
    const high = 0xd000 | ((b! & 63) << 6) | (c! & 63);
    out.splice(-3, 3, ...Buffer.from(String.fromCharCode(high, unit)));
  } else if (unit >= 0xd800 && unit < 0xe000) {
    out.push(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 63), 0x80 | (unit & 63));
  } else out.push(...withoutBreaks([...Buffer.from(String.fromCharCode(unit))]));
}

const NAMED: Record<string, string> = { b: "\b", t: "\t", n: "\n", f: "\f", r: "\r", '"': '"', "\\": "\\", "/": "/" };
/** Matches an escape in a text whose characters stand for one byte each (Latin-1). */
const ESCAPE = /%([\da-f]{2})|\\(?:u([\da-f]{4})|x([\da-f]{2})|([btnfr"\\/]))/giy;

function decodeEscapes(bytes: number[]): number[] {
  const text = Buffer.from(bytes).toString("latin1");
  const out: number[] = [];
  for (let at = 0; at < text.length; ) {
    ESCAPE.lastIndex = at;
    const [all, percentDigits, unicodeDigits, hexDigits, name] = ESCAPE.exec(text) ?? [];
    // The letter of a backslash escape must be in lower case. Hexadecimal digits may also be in upper case.
    const isEscape = all !== undefined && !/^\\[A-Z]/.test(all);
    if (!isEscape) out.push(bytes[at]!);
    else if (percentDigits !== undefined) out.push(...withoutBreaks([Number.parseInt(percentDigits, 16)]));
    else if (name !== undefined) out.push(...withoutBreaks([NAMED[name]!.charCodeAt(0)]));
    else appendCodeUnit(out, Number.parseInt(unicodeDigits ?? hexDigits!, 16));
    at += isEscape ? all.length : 1;
  }
  return out;
}

function decodeDigits(digits: string, bits: number, toValue: (digit: string) => number): number[] {
  const all = Array.from(digits, (digit) => toValue(digit).toString(2).padStart(bits, "0")).join("");
  return Array.from({ length: Math.floor(all.length / 8) }, (_, n) => Number.parseInt(all.slice(n * 8, n * 8 + 8), 2));
}

const BASE64_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const base64Value = (digit: string): number => BASE64_DIGITS.indexOf({ "-": "+", _: "/" }[digit] ?? digit);

/** Decodes the groups of Base64 and hexadecimal digits. Returns each decoded text, once as it is and once with its escapes decoded. */
function decodeDigitGroups(bytes: number[]): number[][] {
  const text = Buffer.from(bytes).toString("latin1");
  const layers: number[][] = [];
  for (const [runs, shifts, bits, toValue] of [
    [text.match(BASE64) ?? [], 4, 6, base64Value],
    [text.match(HEX) ?? [], 2, 4, (digit: string) => Number.parseInt(digit, 16)],
  ] as const) {
    for (let shift = 0; shift < shifts && runs.length > 0; shift += 1) {
      const all = runs.map((run) => decodeDigits(run.slice(shift), bits, toValue));
      const joined = all
        .flatMap((run, n) => [...(n > 0 ? GROUP_SEPARATORS : []), ...withoutBreaks(run)])
        .concat(SEPARATOR);
      layers.push(joined, decodeEscapes(joined));
    }
  }
  return layers;
}

function layersOf(text: string): number[][] {
  const plain: number[] = [];
  for (let at = 0; at < text.length; at += 1) appendCodeUnit(plain, text.charCodeAt(at));
  const nested = [plain];
  while (nested.length <= ESCAPE_DEPTH_MAX) {
    const next = decodeEscapes(nested.at(-1)!);
    if (next.length === nested.at(-1)!.length) break;
    nested.push(next);
  }
  return [...nested, ...[...new Set([plain, nested.at(-1)!])].flatMap(decodeDigitGroups)];
}

/**
 * True if the layer ends with the beginning of the pattern (eight bytes or more), followed by up to five other bytes: a cut may have
 * removed the rest of the pattern.
 */
function endsInPattern(layer: Buffer, pattern: Uint8Array): boolean {
  for (let length = PATTERN_MIN_BYTES; length <= Math.min(pattern.length, layer.length); length += 1) {
    for (let behind = 0; behind < CUT_SLACK && behind + length <= layer.length; behind += 1) {
      const to = layer.length - behind;
      if (layer.subarray(to - length, to).equals(pattern.subarray(0, length))) return true;
    }
  }
  return false;
}

/**
 * Returns the names of the secrets that the text contains.
 * @param cut true if the text may have been cut off
 */
export function findSecretsInText(
  secrets: readonly { name: string; value: string }[],
  text: string,
  cut: boolean,
): Set<string> {
  const layers = layersOf(text).map((bytes) => Buffer.from(bytes));
  const holds = (pattern: Uint8Array) =>
    layers.some((layer) => layer.includes(Buffer.from(pattern)) || (cut && endsInPattern(layer, pattern)));
  return new Set(secrets.filter(({ value }) => createSecretPatterns(value).some(holds)).map(({ name }) => name));
}
