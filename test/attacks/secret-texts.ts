/** Generates secrets, and texts that contain secrets, parts of secrets or neither, in nested encodings. */
import { expect } from "chai";
import fc from "fast-check";
import { SecretScan } from "../../src/engine/secret-scan/scan.js";
import { findSecretsInSettingValue, type SettingSecret } from "../../src/rules/secrets.js";
import { findSecretsInText } from "./secret-scan-oracle.js";

export interface ScanCase {
  secrets: SettingSecret[];
  text: string;
  cut: boolean;
}

const ALPHABETS = [
  "A",
  "AB",
  "ABCDEFGH",
  "0123456789abcdef",
  "abXY01+/=-_",
  '%25\\u041n"',
  "äö€😀ab",
  "ab\n\rc",
  " .,:/?&=ab",
  "\0\u0007a%\\",
];

/** Generates words of at most `max` letters from one alphabet. Words from a small alphabet often share a prefix. */
const word = (max: number) =>
  fc
    .constantFrom(...ALPHABETS)
    .chain((letters) => fc.array(fc.constantFrom(...Array.from(letters)), { minLength: 1, maxLength: max }))
    .map((letters) => letters.join(""));

const hexUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
const encodeAfter = (before: string, encoding: BufferEncoding) => (text: string) =>
  Buffer.from(`${before}${text}yz`).toString(encoding);
const insertInMiddle = (inserted: string) => (text: string) =>
  text.slice(0, text.length >> 1) + inserted + text.slice(text.length >> 1);

const escapeMiddle = (text: string): string =>
  text.replace(/[ -~]/g, (character, at: number) =>
    at === text.length >> 1 ? `%${character.charCodeAt(0).toString(16)}` : character,
  );

/** Functions that encode or change a text. Some of them change a secret so that the text no longer contains it. */
const CHANGES: ((text: string) => string)[] = [
  (text) => text,
  (text) => JSON.stringify(text).slice(1, -1),
  (text) => encodeURIComponent(text.toWellFormed()),
  (text) => new URLSearchParams({ a: text }).toString(),
  ...["", "x", "xx"].flatMap((before) => [encodeAfter(before, "base64"), encodeAfter(before, "base64url")]),
  (text) => Buffer.from(text).toString("hex"),
  (text) => Buffer.from(text).toString("hex").toUpperCase(),
  (text) => Buffer.from(text).toString("hex").replaceAll(/../g, "%$&"),
  (text) => text.replaceAll(/[\s\S]/g, hexUnit),
  (text) => text.replaceAll(/.{5}/g, (five) => hexUnit(five) + five.slice(1)),
  (text) => text.replaceAll(/.{7}/g, "$&\r\n"),
  (text) => Array.from(text).reverse().join(""),
  ...["\\n", "%0A", "\n", "%", "\\", "-", "\n".repeat(900), "\\n".repeat(450)].map(insertInMiddle),
  escapeMiddle,
  (text) => "A".repeat(1_500) + text + "A".repeat(1_500),
  (text) => text.slice(1),
  (text) => text.slice(0, -1),
  (text) => text + text,
  (text) => `${text} deadbeefdeadbeefdeadbeef`,
  (text) => `${text}%${"25".repeat(7)}41`,
];

const TEXT_MAX_CHARACTERS = 4_000;

function applyChanges(text: string, changes: readonly number[]): string {
  let result = text;
  for (const change of changes) if (result.length < TEXT_MAX_CHARACTERS) result = CHANGES[change]!(result);
  return result;
}

const changes = fc.array(fc.nat(CHANGES.length - 1), { maxLength: 3 });
/** Generates one part of a text: the secret with the index `secret` or, if `secret` is null, `word`. `changes` are indexes of CHANGES. */
const part = fc.record({ secret: fc.option(fc.nat()), word: word(40), changes });

export const cases: fc.Arbitrary<ScanCase> = fc
  .record({
    values: fc.array(fc.tuple(word(30), word(30), fc.constantFrom(1, 1, 1, 40)), { minLength: 1, maxLength: 4 }),
    parts: fc.array(part, { minLength: 1, maxLength: 5 }),
    changes,
    cut: fc.boolean(),
  })
  .map(({ values, parts, changes: last, cut }) => {
    const secrets = values.flatMap(([a, b, times], n) => findSecretsInSettingValue(`_${n}`, `${a}${b.repeat(times)}`));
    const textOf = ({ secret, word: other }: { secret: number | null; word: string }): string =>
      secret === null || secrets.length === 0 ? other : secrets[secret % secrets.length]!.value;
    return {
      secrets,
      text: applyChanges(parts.map((piece) => applyChanges(textOf(piece), piece.changes)).join(""), last),
      cut,
    };
  })
  .filter(({ secrets }) => secrets.length > 0);

/** Expects for `count` texts that the scan and the oracle agree on whether a secret is found. Masking must change exactly these texts. */
export function expectSameVerdicts(count: number): void {
  const property = fc.property(cases, ({ secrets, text, cut }) => {
    const scan = new SecretScan(secrets);
    const expected = findSecretsInText(secrets, text, cut);
    const name = scan.find([{ text, cut }]);
    if (expected.size === 0) expect(name).to.equal(null);
    else expect(expected).to.include(name);
    expect(scan.mask({ text, cut }) !== text, "masked").to.equal(name !== null);
  });
  fc.assert(property, { numRuns: count });
}
