/** Encodings in which a server may echo a value, other than those that the secret scan decodes. */

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** A shorter value would be found in unrelated text. */
const FORMS_MIN_CHARACTERS = 8;
const SEPARATORS = [",", ", ", " ", "", ";", "-"];

function base32(bytes: Buffer): string {
  let bits = 0;
  let held = 0;
  let text = "";
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += BASE32[(held >>> (bits - 5)) & 31];
    held &= 0xff;
  }
  return text;
}

const rot13 = (text: string): string =>
  text.replace(/[a-z]/gi, (letter) => {
    const base = letter <= "Z" ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
  });

/** Returns encoded forms of the value. */
export function echoForms(value: string): string[] {
  if (value.length < FORMS_MIN_CHARACTERS) return [];
  const bytes = [...Buffer.from(value)];
  const numbers = (radix: number, width: number, prefix = "") =>
    SEPARATORS.filter((separator) => separator !== "" || width > 0).map((separator) =>
      bytes.map((byte) => prefix + byte.toString(radix).padStart(width, "0")).join(separator),
    );
  const each = (write: (byte: number) => string) => bytes.map(write).join("");
  const forms = [
    ...[value.toLowerCase(), value.toUpperCase(), rot13(value), [...value].reverse().join("")],
    ...[base32(Buffer.from(value)), base32(Buffer.from(value)).toLowerCase()],
    ...[...numbers(10, 0), ...numbers(16, 2), ...numbers(16, 2, "0x"), ...numbers(2, 8), ...numbers(8, 3)],
    ...[
      each((byte) => `&#${byte};`),
      each((byte) => `&#x${byte.toString(16)};`),
      each((byte) => `&#x${byte.toString(16).toUpperCase()};`),
    ],
    ...[
      each((byte) => `&#${String(byte).padStart(3, "0")};`),
      each((byte) => `\\${byte.toString(8).padStart(3, "0")}`),
    ],
    ...[
      each((byte) => `=${byte.toString(16).toUpperCase().padStart(2, "0")}`),
      each((byte) => `\\x${byte.toString(16).padStart(2, "0")}`),
    ],
    ...["-", " ", ".", "\n", ",", "_"].map((separator) => [...value].join(separator)),
  ];
  return [...new Set(forms)].filter((form) => form !== value);
}
