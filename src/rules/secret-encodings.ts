/**
 * Returns encoded forms of a secret, such as hexadecimal. The service masks these forms too, because another server may send a secret back
 * in one of them.
 */

const BASE32_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** Minimum length of a secret whose encoded forms are masked. Forms of shorter secrets would also occur in unrelated text. */
const FORMS_MIN_CHARACTERS = 8;
const NUMBER_SEPARATORS = [",", ", ", " ", "", ";", "-"];

function toBase32(bytes: Buffer): string {
  let bits = 0;
  let heldBits = 0;
  let text = "";
  for (const byte of bytes) {
    heldBits = (heldBits << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += BASE32_DIGITS[(heldBits >>> (bits - 5)) & 31];
    heldBits &= 0xff;
  }
  return text;
}

const toRot13 = (text: string): string =>
  text.replace(/[a-z]/gi, (letter) => {
    const base = letter <= "Z" ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
  });

export function listSecretEncodings(value: string): string[] {
  if (value.length < FORMS_MIN_CHARACTERS) return [];
  const bytes = [...Buffer.from(value)];
  const listNumberForms = (radix: number, width: number, prefix = "") =>
    NUMBER_SEPARATORS.filter((separator) => separator !== "" || width > 0).map((separator) =>
      bytes.map((byte) => prefix + byte.toString(radix).padStart(width, "0")).join(separator),
    );
  const mapBytes = (write: (byte: number) => string) => bytes.map(write).join("");
  const forms = [
    ...[value.toLowerCase(), value.toUpperCase(), toRot13(value), [...value].reverse().join("")],
    ...[toBase32(Buffer.from(value)), toBase32(Buffer.from(value)).toLowerCase()],
    ...[
      ...listNumberForms(10, 0),
      ...listNumberForms(16, 2),
      ...listNumberForms(16, 2, "0x"),
      ...listNumberForms(2, 8),
      ...listNumberForms(8, 3),
    ],
    ...[
      mapBytes((byte) => `&#${byte};`),
      mapBytes((byte) => `&#x${byte.toString(16)};`),
      mapBytes((byte) => `&#x${byte.toString(16).toUpperCase()};`),
    ],
    ...[
      mapBytes((byte) => `&#${String(byte).padStart(3, "0")};`),
      mapBytes((byte) => `\\${byte.toString(8).padStart(3, "0")}`),
    ],
    ...[
      mapBytes((byte) => `=${byte.toString(16).toUpperCase().padStart(2, "0")}`),
      mapBytes((byte) => `\\x${byte.toString(16).padStart(2, "0")}`),
    ],
    ...["-", " ", ".", "\n", ",", "_"].map((separator) => [...value].join(separator)),
  ];
  return [...new Set(forms)].filter((form) => form !== value);
}
