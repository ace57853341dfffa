/**
 * Finds the secrets in an app's private and protected settings, each with the setting's key (contract, section 6).
 *
 * These values are secrets:
 * - Strings of 8 or more characters and numbers of 8 or more digits. Shorter ones ("eu", 443) occur by chance in results.
 * - A shorter string, if it is the whole value of a protected setting. It is masked only where it is a whole string.
 * - Parts of a structured value (such as JSON) from 16 characters. Shorter parts are often field names.
 *
 * A single word of letters under 16 characters in a private setting is not a secret.
 */

import { SECRETS_MAX_BYTES, SECRETS_MAX_COUNT } from "../limits.js";
import { AI_SETTING } from "./ai/setting.js";
import { countCharacters, isObject } from "./described.js";
import { type SettingTier, tierOf } from "./setting-tiers.js";

/** A secret and the key of its setting. The engine's type `Secret` has the same fields; neither file imports the other. */
export interface NamedSecret {
  name: string;
  value: string;
  /** True if the secret is masked only where it is a whole string. */
  whole: boolean;
}

const LONG_CHARACTERS = 8;
const LONG_DIGITS = 8;
const PART_CHARACTERS = 16;

/** Matches a word such as `production`, which may occur by chance in any result. */
const LETTERS_ONLY = /^\p{L}+$/u;

const LINE_BREAK = /[\r\n]+/;
const PEM = /-----BEGIN [^-]+-----/;
const PEM_LINE = /^[A-Za-z0-9+/=]+$/;
const AUTHORITY_START = "://";
const AUTHORITY_END = /[\s/?#]/g;

/** Yields all strings and numbers in a value. It is not recursive, because JSON in strings may nest without limit. */
function* scalarLeaves(value: unknown): Generator<string | number> {
  const pendingValues = [value];
  while (pendingValues.length > 0) {
    const next = pendingValues.pop();
    if (typeof next === "string" || typeof next === "number") yield next;
    else if (typeof next === "object" && next !== null)
      for (const inner of Object.values(next)) pendingValues.push(inner);
  }
}

function documentIn(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Yields the passwords of URLs in a text: the characters between the first colon and the last @ of the authority. */
function* passwordsIn(text: string): Generator<string> {
  for (let at = text.indexOf(AUTHORITY_START); at !== -1; ) {
    const authorityStart = at + AUTHORITY_START.length;
    AUTHORITY_END.lastIndex = authorityStart;
    const authority = text.slice(authorityStart, AUTHORITY_END.exec(text)?.index);
    const [user, host] = [authority.indexOf(":"), authority.lastIndexOf("@")];
    if (user !== -1 && user < host) yield authority.slice(user + 1, host);
    at = text.indexOf(AUTHORITY_START, authorityStart);
  }
}

/**
 * Yields the parts of a string that are secret by themselves: the lines of a PEM, the password of a URL, and the strings
 * of a JSON document with their own parts.
 */
function* partsOf(text: string): Generator<string> {
  const pendingValues = [text];
  while (pendingValues.length > 0) {
    const next = pendingValues.pop()!;
    if (PEM.test(next)) yield* next.split(LINE_BREAK).filter((line) => PEM_LINE.test(line));
    for (const password of passwordsIn(next)) yield* [password, decodeText(password)];
    for (const leaf of scalarLeaves(documentIn(next))) {
      if (typeof leaf !== "string" || leaf.length < PART_CHARACTERS) continue;
      yield leaf;
      pendingValues.push(leaf);
    }
  }
}

const isLong = (text: string, min: number): boolean => {
  const trimmedText = text.trim().replaceAll(/[\r\n]/g, "");
  return trimmedText.length >= 2 * min || (trimmedText.length >= min && countCharacters(trimmedText) >= min);
};

const isWord = (text: string): boolean =>
  text.length < 2 * PART_CHARACTERS && countCharacters(text) < PART_CHARACTERS && LETTERS_ONLY.test(text);

function* secretsIn(setting: unknown, tier: SettingTier): Generator<string> {
  for (const leaf of scalarLeaves(setting)) {
    if (tier === "private" && typeof leaf === "string" && isWord(leaf.trim())) continue;
    if (typeof leaf === "number") {
      const digits = String(Math.abs(leaf));
      if (digits.replaceAll(/\D/g, "").length >= LONG_DIGITS) yield digits;
    } else if (isLong(leaf, LONG_CHARACTERS)) {
      yield leaf;
      for (const part of partsOf(leaf)) if (isLong(part, PART_CHARACTERS)) yield part;
    }
  }
}

/**
 * Returns the secrets of a setting without repetition. In the setting `__ai`, only the API key is a secret, because
 * answers, errors and log events contain the model and the provider's URL.
 */
export function secretsOfSetting(name: string, input: unknown): NamedSecret[] {
  const setting = name === AI_SETTING && isObject(input) ? input["key"] : input;
  const secrets: NamedSecret[] = Array.from(new Set(secretsIn(setting, tierOf(name))), (value) => ({
    name,
    value,
    whole: false,
  }));
  const isShort = typeof setting === "string" && setting !== "" && !isLong(setting, LONG_CHARACTERS);
  if (isShort && tierOf(name) === "protected") secrets.push({ name, value: setting, whole: true });
  return secrets;
}

/** Returns the number of secrets and their total size in bytes. */
export function sizeOfSecrets(secrets: readonly NamedSecret[]): { count: number; bytes: number } {
  const bytes = secrets.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0);
  return { count: secrets.length, bytes };
}

/** Returns an error message if the secrets of an app exceed the limits; null if they do not. */
export function secretsFault(secrets: readonly NamedSecret[]): string | null {
  const { count, bytes } = sizeOfSecrets(secrets);
  if (count <= SECRETS_MAX_COUNT && bytes <= SECRETS_MAX_BYTES) return null;
  return (
    `an app's private and protected settings can contain at most ${SECRETS_MAX_COUNT} strings and long numbers` +
    ` with ${SECRETS_MAX_BYTES} bytes in total (got ${count} with ${bytes} bytes)`
  );
}
