/**
 * Converts the key of a setting, which can be any JavaScript string, to a text that PostgreSQL can store, and back. The
 * stored text needs at most four bytes for each character of the key.
 */

/*
 * A backslash is escaped as two, and NUL as a backslash and 0. A lone surrogate becomes a backslash and a character of
 * the private use area, 0x800 above it. This is short enough for keys of 512 characters to fit into an index.
 */
const ESCAPE_SHIFT = 0x800;
const UNSTORABLE_CHARACTER = /[\\\0]|\p{Surrogate}/gu;

function escapeCharacter(character: string): string {
  if (character === "\0") return "\\0";
  return character === "\\" ? "\\\\" : `\\${String.fromCharCode(character.charCodeAt(0) + ESCAPE_SHIFT)}`;
}

function unescapeCharacter(character: string): string {
  if (character === "0") return "\0";
  return character === "\\" ? "\\" : String.fromCharCode(character.charCodeAt(0) - ESCAPE_SHIFT);
}

export const escapeSettingKey = (key: string): string => key.replace(UNSTORABLE_CHARACTER, escapeCharacter);

export const unescapeSettingKey = (stored: string): string =>
  stored.replace(/\\([\s\S])/g, (_, inner: string) => unescapeCharacter(inner));
