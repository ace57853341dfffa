/** Secrets and texts that are slow to scan: shared prefixes, repetition, nested escapes, and large numbers. */

export const KB = 1024;
export const numbered = (count: number, before: string): string[] =>
  Array.from({ length: count }, (_, i) => before + String(i).padStart(7, "0"));

/** Returns a text that repeats no word of four letters as long as new ones exist. Such a text has very many different prefixes. */
function deBruijn(letters: string, length: number): string {
  let text = letters[0]!.repeat(3);
  const seen = new Set<string>();
  while (text.length < length) {
    const next = [...letters].toReversed().find((letter) => !seen.has(text.slice(-3) + letter)) ?? letters[0]!;
    seen.add(text.slice(-3) + next);
    text += next;
  }
  return text;
}

function random(bytes: number): Buffer {
  let state = 1;
  return Buffer.from(
    Array.from({ length: bytes }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return state >>> 24;
    }),
  );
}

export const SECRETS: Record<string, unknown> = {
  "9,000 strings AAAA0000…": numbered(9000, "AAAA"),
  "100 KB of A": "A".repeat(100 * KB),
  "440 strings of A, each longer than the last": Array.from({ length: 440 }, (_, i) => "A".repeat(i + 8)),
  "1,500 addresses": numbered(1500, "https://example.com/a/long/path/that/all/of/them/share?id="),
  "a de Bruijn text": deBruijn("ABCDEFGH", 100 * KB),
  "backslashes and quotes": '\\"'.repeat(25 * KB),
  "nested escapes": "%2525".repeat(20 * KB),
  "a document in a document": JSON.stringify({ a: JSON.stringify(numbered(3000, "inside-")) }),
  "lines of a PEM": `-----BEGIN X-----\n${numbered(2000, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC/+").join("\n")}\n-----END X-----`,
  "brackets without end": "[".repeat(100 * KB),
  "an address without end": "a".repeat(50 * KB) + "://".repeat(15 * KB),
};

export function textsOf(bytes: number): Record<string, string> {
  const fill = (unit: string) => unit.repeat(Math.ceil(bytes / unit.length)).slice(0, bytes);
  // An escape with the maximum number of layers. The scan must search each decoded layer.
  const nested = `%${"25".repeat(8)}41`;
  const nestedAtEnd = (text: string) => text.slice(nested.length) + nested;
  const noise = random(3 * KB).toString("base64");
  return {
    A: fill("A"),
    "A, and an escape of escapes": nestedAtEnd(fill("A")),
    "A, every fiftieth escaped twice": fill(`${"A".repeat(49)}%2541`),
    "beginnings of secrets": fill("AAAA000"),
    "beginnings of secrets, and an escape of escapes": nestedAtEnd(fill("AAAA000")),
    "the beginning of an address": fill("https://example.com/a/long/path/that/all/of/them/share?id"),
    "the beginning of an address, and an escape of escapes": nestedAtEnd(
      fill("https://example.com/a/long/path/that/all/of/them/share?id"),
    ),
    "the beginning of an address in base64": fill(
      Buffer.from("https://example.com/a/long/path/that/all/of/them/share?id").toString("base64"),
    ),
    "a de Bruijn text": fill(deBruijn("ABCDEFGHI", 10 * KB)),
    "hex digits": fill("0123456789abcdef"),
    backslashes: fill("\\"),
    quotes: fill('"'),
    "escapes of escapes": fill("%2525255c\\\\u0041"),
    objects: `[${fill("{},").slice(0, -1)}]`,
    words: fill("the quick brown fox jumps over the lazy dog "),
    umlauts: fill("äöü€"),
    "lines of base64": fill(`${"QUFBQTAw".repeat(9)}\n`),
    "line breaks in base64": fill("CgoKDQ0N"),
    "random base64": fill(noise),
    "random base64, and an escape of escapes": nestedAtEnd(fill(noise)),
    "random base64, escaped twice here and there": fill(noise.replace(/[\s\S]{199}/g, "$&%2541")),
    "random hex": fill(random(2 * KB).toString("hex")),
  };
}
