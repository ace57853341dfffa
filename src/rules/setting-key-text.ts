/**
 * Converts a setting's key, which may be any JavaScript string, to a text that PostgreSQL can store, with at most four
 * bytes for each character.
 */

/*
 * Escapes characters that a text column cannot store. A backslash becomes two, NUL becomes a backslash and 0. A lone
 * surrogate becomes a backslash and the character 0x800 above it, in the private use area. With this, keys of 512
 * characters fit in an index.
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

export const storedKey = (key: string): string => key.replace(UNSTORABLE_CHARACTER, escapeCharacter);

export const spokenKey = (stored: string): string =>
  stored.replace(/\\([\s\S])/g, (_, inner: string) => unescapeCharacter(inner));
