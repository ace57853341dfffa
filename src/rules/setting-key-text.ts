/** A setting's key as a text column holds it: any JavaScript string, in at most four bytes a character. */

/*
 * Text columns know neither NUL nor lone surrogates. Behind a backslash stand: a backslash for itself, 0 for NUL, and for a lone
 * surrogate the character of the private use area that lies 0x800 above it. So 512 characters fit in an index.
 */
const SHIFT = 0x800;
const UNSTORABLE = /[\\\0]|\p{Surrogate}/gu;

function escaped(character: string): string {
  if (character === "\0") return "\\0";
  return character === "\\" ? "\\\\" : `\\${String.fromCharCode(character.charCodeAt(0) + SHIFT)}`;
}

function unescaped(character: string): string {
  if (character === "0") return "\0";
  return character === "\\" ? "\\" : String.fromCharCode(character.charCodeAt(0) - SHIFT);
}

export const storedKey = (key: string): string => key.replace(UNSTORABLE, escaped);

export const spokenKey = (stored: string): string =>
  stored.replace(/\\([\s\S])/g, (_, inner: string) => unescaped(inner));
