/**
 * Finds secret values in a text, in plain form or in common encodings. Does not find values that were split, encrypted,
 * compressed or encoded in another way.
 */
import { domainToUnicode } from "node:url";
import { Automaton, type PatternHit } from "./automaton.js";
import { decodeDigitLayers, findTrailingDigitsStart } from "./digits.js";
import { findIncompleteEscape, removeEscapes } from "./escapes.js";
import { findShortKeys, isWithinSpans, readShortStrings } from "./json-strings.js";
import { createPlainLayer, type Layer } from "./layers.js";
import { type MaskedBeginning, maskBeginning, type SecretRange, type StreamedText } from "./partial-text.js";
import {
  createHostPatterns,
  createHostTexts,
  createPatterns,
  createUrlPatterns,
  removeDroppedBytes,
} from "./patterns.js";
import { WHOLE_TEXT_SPANS } from "./spans.js";
import { viewAsInt32Words } from "./words.js";

export interface Secret {
  /** Name of the secret. Messages and masked texts contain this name instead of the value. */
  name: string;
  value: string;
  /** True if the value is so short that it counts only as a complete string, not as a part of a text. */
  whole: boolean;
}

/**
 * Text that is searched for secrets. `cut` is true if the text was truncated: then the beginning of a secret at the end
 * of the text counts too.
 */
export interface ScannedText {
  text: string;
  cut?: boolean;
}

const WHOLE_MAX_CHARACTERS = 64;
/** Minimum length of key names in JSON that are searched for secrets. Shorter names are ordinary words. */
const KEY_MIN_CHARACTERS = 16;
const QUOTED_TEXT = /"([^"\\]{1,64})"(\s*:)?/g;

/** Maximum number of nested levels of escapes that are removed from a text. */
const ESCAPE_LAYERS_MAX = 8;

interface TextLayer {
  layer: Layer;
  isDecoded: boolean;
}

/**
 * Yields the layers of a text: the text itself and its decoded forms. Each layer is valid until the next one, which may
 * use the same memory: allocating memory for each layer would take longer than the scan.
 */
function* createLayers(text: string, mapped: boolean, longest: number): Generator<TextLayer> {
  const plain = createPlainLayer(text, mapped);
  yield { layer: plain, isDecoded: false };
  let bare = plain;
  for (let times = 0; times < ESCAPE_LAYERS_MAX; times += 1) {
    const layer = removeEscapes(bare, bare !== plain);
    if (layer === null) break;
    bare = layer;
    yield { layer, isDecoded: false };
  }
  for (const layer of decodeDigitLayers(plain, WHOLE_TEXT_SPANS, longest)) yield { layer, isDecoded: true };
  // Also decodes digits outside of `newSpans`: characters before an encoded value may have formed an escape together
  // with the first digits of the value.
  for (const layer of decodeDigitLayers(bare, bare.changedSpans, longest)) yield { layer, isDecoded: true };
}

function createFinder(secrets: readonly Secret[], patternsOfOne: (value: string) => Uint8Array[]) {
  const names: string[] = [];
  const patterns: Uint8Array[] = [];
  for (const { name, value } of secrets) {
    for (const pattern of patternsOfOne(value)) {
      patterns.push(pattern);
      names.push(name);
    }
  }
  const automaton = new Automaton(patterns);
  return {
    automaton,
    name: (hit: PatternHit): string => names[hit.pattern]!,
    /**
     * Searches one layer (form of the text). Calls `onHit` for each occurrence that is new in this layer, until `onHit`
     * returns true.
     */
    scan: ({ bytes, newSpans }: Layer, onHit: (hit: PatternHit) => boolean): boolean =>
      automaton.scan(bytes, viewAsInt32Words(bytes), onHit, newSpans),
  };
}

export type SecretScan = ReturnType<typeof createSecretScan>;

export function createSecretScan(secrets: readonly Secret[]) {
  const whole = new Map(secrets.filter((secret) => secret.whole).map(({ name, value }) => [value, name]));
  const long = secrets.filter((secret) => !secret.whole);
  const finder = createFinder(long, createPatterns);
  let hostFinder: ReturnType<typeof createFinder> | null = null;
  let addressFinder: ReturnType<typeof createFinder> | null = null;

  function findLongSecret(text: string, cut = false): string | null {
    let secretName: string | null = null;
    const onHit = (hit: PatternHit): boolean => {
      secretName = finder.name(hit);
      return true;
    };
    for (const { layer } of createLayers(text, false, finder.automaton.longestPatternBytes)) {
      if (finder.scan(layer, onHit)) return secretName;
      const started = cut ? finder.automaton.findPatternBegunAtEnd(layer.bytes) : null;
      if (started) return finder.name(started);
    }
    return null;
  }

  function findSecretRanges(text: string, cut: boolean): SecretRange[] {
    const ranges: SecretRange[] = [];
    for (const { layer, isDecoded } of createLayers(text, true, finder.automaton.longestPatternBytes)) {
      const at = layer.textIndexes!;
      const onHit = (hit: PatternHit): boolean => {
        // The last byte of a secret may end within a base64 digit, so the mask includes this digit.
        const to = hit.end < at.length ? at[hit.end]! + (isDecoded ? 1 : 0) : text.length;
        ranges.push({ from: at[hit.start]!, to, name: finder.name(hit) });
        return false;
      };
      finder.scan(layer, onHit);
      const started = cut ? finder.automaton.findPatternBegunAtEnd(layer.bytes) : null;
      if (started) ranges.push({ from: at[started.start]!, to: text.length, name: finder.name(started) });
    }
    return ranges.sort((a, b) => a.from - b.from || b.to - a.to);
  }

  /**
   * Returns the index from which a text that is still being received may become a part of a secret. In any layer of the
   * text, a pattern, or digits that may encode a pattern, can begin at this index and reach the end. Ignores escapes at
   * the end of the text, which may be incomplete, so that following text only appends to the layers.
   */
  function findUndecidedStart(text: string): number {
    if (long.length === 0) return text.length;
    let from = findIncompleteEscape(text, text.length);
    for (const { layer, isDecoded } of createLayers(text.slice(0, from), true, finder.automaton.longestPatternBytes)) {
      if (isDecoded) break;
      const { bytes, textIndexes } = layer;
      const started = Math.min(
        bytes.length - finder.automaton.countBytesBegunAtEnd(bytes),
        findTrailingDigitsStart(bytes),
      );
      if (started < bytes.length) from = Math.min(from, textIndexes![started]!);
    }
    return from;
  }

  /** Returns `text` with each secret replaced by «name». */
  function maskText({ text, cut = false }: ScannedText): string {
    const name = whole.get(text);
    if (name !== undefined) return `«${name}»`;
    let masked = "";
    let from = 0;
    for (const range of findSecretRanges(text, cut)) {
      if (range.from >= from) masked += `${text.slice(from, range.from)}«${range.name}»`;
      from = Math.max(from, range.to);
    }
    masked += text.slice(from);
    if (whole.size === 0) return masked;
    return masked.replace(QUOTED_TEXT, (quoted, inner: string, colon?: string) =>
      colon === undefined && whole.has(inner) ? `"«${whole.get(inner)}»"` : quoted,
    );
  }

  /** Returns the name of a secret that the JSON text contains; null if there is none. Ignores short key names. */
  function findSecretBesideKeys(json: string): string | null {
    const keys = findShortKeys(json, KEY_MIN_CHARACTERS);
    let secretName: string | null = null;
    for (const { layer } of createLayers(json, true, finder.automaton.longestPatternBytes)) {
      const at = layer.textIndexes!;
      const onHit = (hit: PatternHit): boolean => {
        const isInKey = isWithinSpans(keys, at[hit.start]!, at[hit.end - 1]!);
        if (!isInKey) secretName = finder.name(hit);
        return !isInKey;
      };
      if (finder.scan(layer, onHit)) return secretName;
    }
    return null;
  }

  /** Returns the name of a secret that the JSON text contains, also in key names; null if there is none. */
  function findInJson(json: string): string | null {
    if (whole.size > 0) {
      for (const text of readShortStrings(json, WHOLE_MAX_CHARACTERS)) if (whole.has(text)) return whole.get(text)!;
    }
    return findLongSecret(json) === null ? null : findSecretBesideKeys(json);
  }

  function findInHost({ hostname }: URL): string | null {
    hostFinder ??= createFinder(long, createHostPatterns);
    let secretName: string | null = null;
    const onHit = (hit: PatternHit): boolean => {
      secretName = hostFinder!.name(hit);
      return true;
    };
    for (const text of [hostname, domainToUnicode(hostname)].flatMap(createHostTexts)) {
      if (hostFinder.scan(createPlainLayer(text, false), onHit)) return secretName;
    }
    return null;
  }

  /**
   * Returns the name of a secret that a URL contains in a changed form; null if there is none. The form differs if the
   * app did not encode the secret, or escaped it with backslashes.
   */
  function findAlteredSecret(url: string): string | null {
    const escaped = findLongSecret(url.replaceAll("/", "\\"));
    if (escaped !== null) return escaped;
    addressFinder ??= createFinder(long, createUrlPatterns);
    if (addressFinder.automaton.longestPatternBytes === 0) return null;
    let secretName: string | null = null;
    const onHit = (hit: PatternHit): boolean => {
      secretName = addressFinder!.name(hit);
      return true;
    };
    for (const { layer, isDecoded } of createLayers(url, false, finder.automaton.longestPatternBytes)) {
      if (isDecoded) return null;
      if (addressFinder.scan({ ...layer, bytes: removeDroppedBytes(layer.bytes), newSpans: WHOLE_TEXT_SPANS }, onHit))
        return secretName;
    }
    return null;
  }

  function maskedValue(value: unknown): unknown {
    if (typeof value === "string") return maskText({ text: value });
    if (typeof value === "number")
      return findLongSecret(String(value)) === null ? value : maskText({ text: String(value) });
    if (Array.isArray(value)) return value.map(maskedValue);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [maskedKey(key), maskedValue(inner)]));
  }

  const maskedKey = (key: string): string =>
    key.length < KEY_MIN_CHARACTERS || findLongSecret(key) === null ? key : maskText({ text: key });

  return {
    findInJson,
    mask: maskText,
    maskBeginning: (part: StreamedText): MaskedBeginning =>
      maskBeginning(
        part,
        findSecretRanges(part.text, false),
        whole,
        part.isEnd ? part.text.length : findUndecidedStart(part.text),
      ),
    bytes: finder.automaton.bytes,
    steps: (): number => finder.automaton.stepCount,

    /**
     * Returns the name of a secret that one of the texts contains; null if there is none. A short secret counts only as
     * a whole text.
     */
    find(texts: readonly ScannedText[]): string | null {
      for (const { text, cut } of texts) {
        const name = whole.get(text) ?? findLongSecret(text, cut);
        if (name !== null) return name;
      }
      return null;
    },

    /**
     * Returns the name of a secret that a URL contains; null if there is none. Ignores case in the host name. A short
     * secret counts only as the whole value of a parameter.
     */
    findInUrl(url: string): string | null {
      const parsed = URL.parse(url);
      const secretName = findLongSecret(url) ?? findAlteredSecret(url) ?? (parsed && findInHost(parsed));
      if (secretName !== null || parsed === null || whole.size === 0) return secretName;
      for (const value of parsed.searchParams.values()) if (whole.has(value)) return whole.get(value)!;
      return null;
    },

    /**
     * Masks all secrets in the JSON text of an object, also in key names. Returns the same text if it contains no
     * secret.
     */
    maskJson(json: string): string {
      if (findInJson(json) === null) return json;
      const masked = JSON.stringify(maskedValue(JSON.parse(json)));
      const left = findInJson(masked);
      // If a secret remains, it extends over several values, such as an array that was the text of a setting. So the
      // whole object is masked.
      return left === null ? masked : JSON.stringify({ masked: `«${left}»` });
    },
  };
}
