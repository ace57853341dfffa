/**
 * Replaces the global `atob` in packages that decode texts while they load, because a realm of the language has none. Accepts base64 only.
 */

const CHUNK_BYTES = 8_192;

/** @returns one character per byte */
export function atob(text: string): string {
  const { fromBase64 } = Uint8Array as { fromBase64?: (text: string) => Uint8Array };
  // Browsers from before 2025 only have the global.
  if (!fromBase64) return globalThis.atob(text);
  const bytes = fromBase64.call(Uint8Array, text);
  let characters = "";
  for (let from = 0; from < bytes.length; from += CHUNK_BYTES)
    characters += String.fromCharCode(...bytes.subarray(from, from + CHUNK_BYTES));
  return characters;
}
