/**
 * Stands in for the global `atob` in packages that decode texts of their own as they load: a realm of the language has none. Takes what is
 * base64 alone, and encodes nothing.
 */

const CHUNK_BYTES = 8_192;

/** @returns one character a byte */
export function atob(text: string): string {
  const { fromBase64 } = Uint8Array as { fromBase64?: (text: string) => Uint8Array };
  // Browsers of before 2025 have the global alone.
  if (!fromBase64) return globalThis.atob(text);
  const bytes = fromBase64.call(Uint8Array, text);
  let characters = "";
  for (let from = 0; from < bytes.length; from += CHUNK_BYTES)
    characters += String.fromCharCode(...bytes.subarray(from, from + CHUNK_BYTES));
  return characters;
}
