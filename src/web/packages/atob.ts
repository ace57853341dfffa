/** Replaces the global `atob` in packages that decode base64 while they load, because server runs without a browser page have no `atob`. */

const CHUNK_BYTES = 8_192;

/** Decodes base64. Returns a string with one character for each decoded byte. */
export function atob(text: string): string {
  const { fromBase64 } = Uint8Array as { fromBase64?: (text: string) => Uint8Array };
  // Server runs have Uint8Array.fromBase64. An older browser that lacks it has the global `atob`.
  if (!fromBase64) return globalThis.atob(text);
  const bytes = fromBase64.call(Uint8Array, text);
  let characters = "";
  for (let from = 0; from < bytes.length; from += CHUNK_BYTES)
    characters += String.fromCharCode(...bytes.subarray(from, from + CHUNK_BYTES));
  return characters;
}
