/** A setting's key as a text column holds it: any JavaScript string, in at most four bytes a character. */

/*
 * Text columns know neither NUL nor lone surrogates. Behind a backslash stand: a backslash for itself, 0 for NUL, and for a lone
 * surrogate the character of the private use area that lies 0x800 above it. So 512 characters fit in an index.
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
