/**
 * Finds the secrets in an app's private and protected settings (contract, section 6). Texts need at least 8 characters, numbers 8 digits,
 * and parts of texts, such as strings in JSON, 16 characters. In private settings, a single short word is no secret. A protected text of
 * under 8 characters is masked only where it is a whole string.
 */

import { SECRETS_PER_APP_MAX, SECRETS_PER_APP_MAX_BYTES } from "../limits.js";
import { AI_SETTING_KEY } from "./ai/setting.js";
import { countCharacters, isObject } from "./describe-value.js";
import { getSettingTier, type SettingTier } from "./setting-tiers.js";

/** Secret value and the key of its setting. Has the same fields as the engine's type `Secret`; neither file imports the other. */
export interface SettingSecret {
  name: string;
  value: string;
  /** True if the service masks the secret only where it is a whole string, not inside of longer strings. */
  mustMatchWhole: boolean;
}

const SECRET_MIN_CHARACTERS = 8;
const NUMERIC_SECRET_MIN_DIGITS = 8;
const SECRET_PART_MIN_CHARACTERS = 16;

/** Matches a single word. In private settings, a word of under 16 letters is no secret: results may contain it by chance. */
const LETTERS_ONLY_PATTERN = /^\p{L}+$/u;

const LINE_BREAK_PATTERN = /[\r\n]+/;
const PEM_HEADER_PATTERN = /-----BEGIN [^-]+-----/;
const PEM_LINE_PATTERN = /^[A-Za-z0-9+/=]+$/;
const AUTHORITY_START = "://";
const AUTHORITY_END_PATTERN = /[\s/?#]/g;

/** Yields all strings and numbers in a value. Does not use recursion, because deep nesting would overflow the stack. */
function* listScalarLeaves(value: unknown): Generator<string | number> {
  const pendingValues = [value];
  while (pendingValues.length > 0) {
    const next = pendingValues.pop();
    if (typeof next === "string" || typeof next === "number") yield next;
    else if (typeof next === "object" && next !== null)
      for (const inner of Object.values(next)) pendingValues.push(inner);
  }
}

function parseJsonDocument(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decodePercentEncoding(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Yields the passwords in URLs: the text between the first colon after `://` and the last @ before the path. */
function* findUrlPasswords(text: string): Generator<string> {
  for (let at = text.indexOf(AUTHORITY_START); at !== -1; ) {
    const authorityStart = at + AUTHORITY_START.length;
    AUTHORITY_END_PATTERN.lastIndex = authorityStart;
    const authority = text.slice(authorityStart, AUTHORITY_END_PATTERN.exec(text)?.index);
    const [colonIndex, atSignIndex] = [authority.indexOf(":"), authority.lastIndexOf("@")];
    if (colonIndex !== -1 && colonIndex < atSignIndex) yield authority.slice(colonIndex + 1, atSignIndex);
    at = text.indexOf(AUTHORITY_START, authorityStart);
  }
}

/** Yields parts of a string that may be secrets: lines of a PEM key, passwords in URLs, strings of a JSON document and their parts. */
function* findSecretParts(text: string): Generator<string> {
  const pendingValues = [text];
  while (pendingValues.length > 0) {
    const next = pendingValues.pop()!;
    if (PEM_HEADER_PATTERN.test(next))
      yield* next.split(LINE_BREAK_PATTERN).filter((line) => PEM_LINE_PATTERN.test(line));
    for (const password of findUrlPasswords(next)) yield* [password, decodePercentEncoding(password)];
    for (const leaf of listScalarLeaves(parseJsonDocument(next))) {
      if (typeof leaf !== "string" || leaf.length < SECRET_PART_MIN_CHARACTERS) continue;
      yield leaf;
      pendingValues.push(leaf);
    }
  }
}

const hasMinimumLength = (text: string, min: number): boolean => {
  const trimmedText = text.trim().replaceAll(/[\r\n]/g, "");
  return trimmedText.length >= 2 * min || (trimmedText.length >= min && countCharacters(trimmedText) >= min);
};

const isSingleWord = (text: string): boolean =>
  text.length < 2 * SECRET_PART_MIN_CHARACTERS &&
  countCharacters(text) < SECRET_PART_MIN_CHARACTERS &&
  LETTERS_ONLY_PATTERN.test(text);

function* listSecrets(setting: unknown, tier: SettingTier): Generator<string> {
  for (const leaf of listScalarLeaves(setting)) {
    if (tier === "private" && typeof leaf === "string" && isSingleWord(leaf.trim())) continue;
    if (typeof leaf === "number") {
      const digits = String(Math.abs(leaf));
      if (digits.replaceAll(/\D/g, "").length >= NUMERIC_SECRET_MIN_DIGITS) yield digits;
    } else if (hasMinimumLength(leaf, SECRET_MIN_CHARACTERS)) {
      yield leaf;
      for (const part of findSecretParts(leaf)) if (hasMinimumLength(part, SECRET_PART_MIN_CHARACTERS)) yield part;
    }
  }
}

/** Returns the secrets in the value of a setting, without duplicates. Of the setting `__ai`, only the API key is a secret. */
export function findSecretsInSettingValue(name: string, settingValue: unknown): SettingSecret[] {
  const setting = name === AI_SETTING_KEY && isObject(settingValue) ? settingValue["key"] : settingValue;
  const secrets: SettingSecret[] = Array.from(new Set(listSecrets(setting, getSettingTier(name))), (value) => ({
    name,
    value,
    mustMatchWhole: false,
  }));
  const isShort = typeof setting === "string" && setting !== "" && !hasMinimumLength(setting, SECRET_MIN_CHARACTERS);
  if (isShort && getSettingTier(name) === "protected") secrets.push({ name, value: setting, mustMatchWhole: true });
  return secrets;
}

export function measureSecrets(secrets: readonly SettingSecret[]): { count: number; bytes: number } {
  const bytes = secrets.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0);
  return { count: secrets.length, bytes };
}

/** Returns an error message if an app has too many secrets, or too many bytes of them; otherwise null. */
export function findSecretLimitFault(secrets: readonly SettingSecret[]): string | null {
  const { count, bytes } = measureSecrets(secrets);
  if (count <= SECRETS_PER_APP_MAX && bytes <= SECRETS_PER_APP_MAX_BYTES) return null;
  return (
    `an app's private and protected settings can contain at most ${SECRETS_PER_APP_MAX} strings and long numbers` +
    ` with ${SECRETS_PER_APP_MAX_BYTES} bytes in total (got ${count} with ${bytes} bytes)`
  );
}
