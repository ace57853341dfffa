/** Finds secret values in a text, plain or in common encodings; not if they were split, encrypted, compressed or encoded otherwise. */
import { domainToUnicode } from "node:url";
import { Automaton, type PatternMatch } from "./automaton.js";
import { decodeDigitLayers, findTrailingDigitsStart } from "./digits.js";
import { decodeEscapesOnce, findIncompleteEscape } from "./escapes.js";
import { findShortKeyRanges, isWithinOneSpan, readShortStringValues } from "./json-strings.js";
import { createInitialLayer, type DecodedLayer } from "./layers.js";
import { type MaskedTextStart, maskStartOfStreamedText, type SecretRange, type StreamedText } from "./partial-text.js";
import {
  createHostSecretPatterns,
  createSecretPatterns,
  createUrlSecretPatterns,
  listHostSearchTexts,
  removeBytesThatUrlsMayDrop,
} from "./patterns.js";
import { ENTIRE_TEXT_SPANS } from "./spans.js";
import { viewAsInt32Words } from "./words.js";

export interface Secret {
  /** Name of the secret. Messages and masked texts contain this name instead of the value. */
  name: string;
  value: string;
  /** True if the value is so short that it counts only as a complete string, not as a part of a text. */
  mustMatchWhole: boolean;
}

/** `cut` is true if the text was truncated: then the beginning of a secret at its end counts too. */
export interface ScannedText {
  text: string;
  cut?: boolean;
}

/** Maximum length of strings in JSON that are compared with short secrets. */
const SHORT_STRING_MAX_CHARACTERS = 64;
/** Minimum length of key names in JSON that are searched for secrets. Shorter names are ordinary words. */
const KEY_MIN_CHARACTERS = 16;
const QUOTED_TEXT_PATTERN = /"([^"\\]{1,64})"(\s*:)?/g;

const ESCAPE_LAYERS_MAX = 8;

interface TextLayer {
  layer: DecodedLayer;
  isDecoded: boolean;
}

/** Yields the text and its decoded forms. Each layer is valid until the next one: new memory for each would take longer than the scan. */
function* createLayers(text: string, withTextIndexes: boolean, longestPatternBytes: number): Generator<TextLayer> {
  const initialLayer = createInitialLayer(text, withTextIndexes);
  yield { layer: initialLayer, isDecoded: false };
  let unescapedLayer = initialLayer;
  for (let times = 0; times < ESCAPE_LAYERS_MAX; times += 1) {
    const layer = decodeEscapesOnce(unescapedLayer, unescapedLayer !== initialLayer);
    if (layer === null) break;
    unescapedLayer = layer;
    yield { layer, isDecoded: false };
  }
  for (const layer of decodeDigitLayers(initialLayer, ENTIRE_TEXT_SPANS, longestPatternBytes))
    yield { layer, isDecoded: true };
  // Characters before an encoded value may have formed an escape with its first digits. So this step decodes near all ranges that any layer
  // changed, not only near `newSpans`.
  for (const layer of decodeDigitLayers(unescapedLayer, unescapedLayer.changedSpans, longestPatternBytes))
    yield { layer, isDecoded: true };
}

function createFinder(secrets: readonly Secret[], createPatterns: (value: string) => Uint8Array[]) {
  const names: string[] = [];
  const patterns: Uint8Array[] = [];
  for (const { name, value } of secrets) {
    for (const pattern of createPatterns(value)) {
      patterns.push(pattern);
      names.push(name);
    }
  }
  const automaton = new Automaton(patterns);
  return {
    automaton,
    getSecretName: (hit: PatternMatch): string => names[hit.pattern]!,
    /** Calls `onHit` for each occurrence that is new in this layer (form of the text), until it returns true. */
    scan: ({ bytes, newSpans }: DecodedLayer, onHit: (hit: PatternMatch) => boolean): boolean =>
      automaton.scan(bytes, viewAsInt32Words(bytes), onHit, newSpans),
  };
}

export class SecretScan {
  private readonly wholeSecretNames = new Map(
    this.secrets.filter((secret) => secret.mustMatchWhole).map(({ name, value }) => [value, name]),
  );
  private readonly longSecrets = this.secrets.filter((secret) => !secret.mustMatchWhole);
  private readonly finder = createFinder(this.longSecrets, createSecretPatterns);
  private hostFinder: ReturnType<typeof createFinder> | null = null;
  private urlFinder: ReturnType<typeof createFinder> | null = null;
  readonly bytes = this.finder.automaton.bytes;

  constructor(private readonly secrets: readonly Secret[]) {}

  private findLongSecret(text: string, cut = false): string | null {
    let secretName: string | null = null;
    const onHit = (hit: PatternMatch): boolean => {
      secretName = this.finder.getSecretName(hit);
      return true;
    };
    for (const { layer } of createLayers(text, false, this.finder.automaton.longestPatternBytes)) {
      if (this.finder.scan(layer, onHit)) return secretName;
      const partialMatch = cut ? this.finder.automaton.findPatternBegunAtEnd(layer.bytes) : null;
      if (partialMatch) return this.finder.getSecretName(partialMatch);
    }
    return null;
  }

  private findSecretRanges(text: string, cut: boolean): SecretRange[] {
    const ranges: SecretRange[] = [];
    for (const { layer, isDecoded } of createLayers(text, true, this.finder.automaton.longestPatternBytes)) {
      const at = layer.textIndexes!;
      const onHit = (hit: PatternMatch): boolean => {
        // The last byte of a secret may end within a base64 digit, so the mask includes this digit.
        const to = hit.end < at.length ? at[hit.end]! + (isDecoded ? 1 : 0) : text.length;
        ranges.push({ from: at[hit.start]!, to, name: this.finder.getSecretName(hit) });
        return false;
      };
      this.finder.scan(layer, onHit);
      const partialMatch = cut ? this.finder.automaton.findPatternBegunAtEnd(layer.bytes) : null;
      if (partialMatch)
        ranges.push({ from: at[partialMatch.start]!, to: text.length, name: this.finder.getSecretName(partialMatch) });
    }
    return ranges.sort((a, b) => a.from - b.from || b.to - a.to);
  }

  /** Returns the index from which a text that is still being received may become part of a secret, plain or encoded. */
  private findUndecidedStart(text: string): number {
    if (this.longSecrets.length === 0) return text.length;
    let from = findIncompleteEscape(text, text.length);
    for (const { layer, isDecoded } of createLayers(
      text.slice(0, from),
      true,
      this.finder.automaton.longestPatternBytes,
    )) {
      if (isDecoded) break;
      const { bytes, textIndexes } = layer;
      const partialStart = Math.min(
        bytes.length - this.finder.automaton.countBytesBegunAtEnd(bytes),
        findTrailingDigitsStart(bytes),
      );
      if (partialStart < bytes.length) from = Math.min(from, textIndexes![partialStart]!);
    }
    return from;
  }

  private findSecretOutsideKeys(json: string): string | null {
    const keys = findShortKeyRanges(json, KEY_MIN_CHARACTERS);
    let secretName: string | null = null;
    for (const { layer } of createLayers(json, true, this.finder.automaton.longestPatternBytes)) {
      const at = layer.textIndexes!;
      const onHit = (hit: PatternMatch): boolean => {
        const isInKey = isWithinOneSpan(keys, at[hit.start]!, at[hit.end - 1]!);
        if (!isInKey) secretName = this.finder.getSecretName(hit);
        return !isInKey;
      };
      if (this.finder.scan(layer, onHit)) return secretName;
    }
    return null;
  }

  private findInHost({ hostname }: URL): string | null {
    this.hostFinder ??= createFinder(this.longSecrets, createHostSecretPatterns);
    let secretName: string | null = null;
    const onHit = (hit: PatternMatch): boolean => {
      secretName = this.hostFinder!.getSecretName(hit);
      return true;
    };
    for (const text of [hostname, domainToUnicode(hostname)].flatMap(listHostSearchTexts)) {
      if (this.hostFinder.scan(createInitialLayer(text, false), onHit)) return secretName;
    }
    return null;
  }

  /** Finds a secret of which a URL dropped or replaced characters, such as backslashes. Returns its name; null if there is none. */
  private findAlteredSecret(url: string): string | null {
    const backslashMatch = this.findLongSecret(url.replaceAll("/", "\\"));
    if (backslashMatch !== null) return backslashMatch;
    this.urlFinder ??= createFinder(this.longSecrets, createUrlSecretPatterns);
    if (this.urlFinder.automaton.longestPatternBytes === 0) return null;
    let secretName: string | null = null;
    const onHit = (hit: PatternMatch): boolean => {
      secretName = this.urlFinder!.getSecretName(hit);
      return true;
    };
    for (const { layer, isDecoded } of createLayers(url, false, this.finder.automaton.longestPatternBytes)) {
      if (isDecoded) return null;
      if (
        this.urlFinder.scan(
          { ...layer, bytes: removeBytesThatUrlsMayDrop(layer.bytes), newSpans: ENTIRE_TEXT_SPANS },
          onHit,
        )
      )
        return secretName;
    }
    return null;
  }

  private maskValue(value: unknown): unknown {
    if (typeof value === "string") return this.mask({ text: value });
    if (typeof value === "number")
      return this.findLongSecret(String(value)) === null ? value : this.mask({ text: String(value) });
    if (Array.isArray(value)) return value.map((value) => this.maskValue(value));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [this.maskKey(key), this.maskValue(inner)]));
  }

  private maskKey(key: string): string {
    return key.length < KEY_MIN_CHARACTERS || this.findLongSecret(key) === null ? key : this.mask({ text: key });
  }

  /** Returns the name of a secret in the JSON text; null if there is none. Ignores key names shorter than KEY_MIN_CHARACTERS. */
  findInJson(json: string): string | null {
    if (this.wholeSecretNames.size > 0) {
      for (const text of readShortStringValues(json, SHORT_STRING_MAX_CHARACTERS))
        if (this.wholeSecretNames.has(text)) return this.wholeSecretNames.get(text)!;
    }
    return this.findLongSecret(json) === null ? null : this.findSecretOutsideKeys(json);
  }

  mask({ text, cut = false }: ScannedText): string {
    const name = this.wholeSecretNames.get(text);
    if (name !== undefined) return `«${name}»`;
    let masked = "";
    let from = 0;
    for (const range of this.findSecretRanges(text, cut)) {
      if (range.from >= from) masked += `${text.slice(from, range.from)}«${range.name}»`;
      from = Math.max(from, range.to);
    }
    masked += text.slice(from);
    if (this.wholeSecretNames.size === 0) return masked;
    return masked.replace(QUOTED_TEXT_PATTERN, (quoted, inner: string, colon?: string) =>
      colon === undefined && this.wholeSecretNames.has(inner) ? `"«${this.wholeSecretNames.get(inner)}»"` : quoted,
    );
  }

  maskStartOfStreamedText(part: StreamedText): MaskedTextStart {
    return maskStartOfStreamedText(
      part,
      this.findSecretRanges(part.text, false),
      this.wholeSecretNames,
      part.isEnd ? part.text.length : this.findUndecidedStart(part.text),
    );
  }

  countSteps(): number {
    return this.finder.automaton.stepCount;
  }

  /** Returns the name of a secret in one of the texts; null if there is none. A short secret counts only as a whole text. */
  find(texts: readonly ScannedText[]): string | null {
    for (const { text, cut } of texts) {
      const name = this.wholeSecretNames.get(text) ?? this.findLongSecret(text, cut);
      if (name !== null) return name;
    }
    return null;
  }

  /**
   * Returns the name of a secret that a URL contains; null if there is none. Ignores case in the host name. A short secret counts only as
   * the whole value of a parameter.
   */
  findInUrl(url: string): string | null {
    const parsed = URL.parse(url);
    const secretName = this.findLongSecret(url) ?? this.findAlteredSecret(url) ?? (parsed && this.findInHost(parsed));
    if (secretName !== null || parsed === null || this.wholeSecretNames.size === 0) return secretName;
    for (const value of parsed.searchParams.values())
      if (this.wholeSecretNames.has(value)) return this.wholeSecretNames.get(value)!;
    return null;
  }

  /** Masks all secrets in the JSON text of an object, also in key names of at least KEY_MIN_CHARACTERS. */
  maskJson(json: string): string {
    if (this.findInJson(json) === null) return json;
    const masked = JSON.stringify(this.maskValue(JSON.parse(json)));
    const remainingSecret = this.findInJson(masked);
    // A remaining secret extends over several values: for example, it is the text of a whole array. So this masks the whole object.
    return remainingSecret === null ? masked : JSON.stringify({ masked: `«${remainingSecret}»` });
  }
}
