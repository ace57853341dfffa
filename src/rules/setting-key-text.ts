/** Converts the key of a setting, which can be any JavaScript string, to a text that PostgreSQL can store, and back. */

/* A backslash is stored as `\\`, and NUL as `\0`. A lone surrogate is stored as `\` and the character whose code is 0x800 higher. */
const SURROGATE_CODE_SHIFT = 0x800;
const UNSTORABLE_CHARACTER_PATTERN = /[\\\0]|\p{Surrogate}/gu;

function escapeCharacter(character: string): string {
  if (character === "\0") return "\\0";
  return character === "\\" ? "\\\\" : `\\${String.fromCharCode(character.charCodeAt(0) + SURROGATE_CODE_SHIFT)}`;
}

function unescapeCharacter(character: string): string {
  if (character === "0") return "\0";
  return character === "\\" ? "\\" : String.fromCharCode(character.charCodeAt(0) - SURROGATE_CODE_SHIFT);
}

export const escapeSettingKey = (key: string): string => key.replace(UNSTORABLE_CHARACTER_PATTERN, escapeCharacter);

export const unescapeSettingKey = (stored: string): string =>
  stored.replace(/\\([\s\S])/g, (_, inner: string) => unescapeCharacter(inner));
