/** Checks that the secret scan finds and masks each kind of secret in each encoding. */
import { expect } from "chai";
import { SecretScan } from "../../src/engine/secret-scan/scan.js";
import { findSecretsInSettingValue } from "../../src/rules/secrets.js";
import { sampleOf } from "../harness/samples.js";
import { PEM, VALUES } from "./secret-values.js";

type Encode = (text: string) => string;
const json: Encode = (text) => JSON.stringify(text).slice(1, -1);
const unicodeJson: Encode = (text) =>
  text.replaceAll(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
const url: Encode = encodeURIComponent;
const lowerUrl: Encode = (text) => url(text).replaceAll(/%../g, (code) => code.toLowerCase());
const everyByte: Encode = (text) => Buffer.from(text).toString("hex").replaceAll(/../g, "%$&");

const ENCODING_LAYERS: Record<string, Encode> = { json, unicodeJson, url, lowerUrl, everyByte };

function encodingNestings(): Record<string, Encode> {
  const found: Record<string, Encode> = {};
  for (const [a, first] of Object.entries(ENCODING_LAYERS)) {
    found[a] = first;
    for (const [b, second] of Object.entries({ json, url })) {
      found[`${a}, ${b}`] = (text) => second(first(text));
      for (const [c, third] of Object.entries({ json, url })) {
        found[`${a}, ${b}, ${c}`] = (text) => third(second(first(text)));
      }
    }
  }
  return found;
}

const shifted =
  (before: string, encoding: BufferEncoding): Encode =>
  (text) =>
    Buffer.from(`${before}${text}yz`).toString(encoding);

const replaceLineBreaks =
  (by: string): Encode =>
  (text) =>
    text.replaceAll(/\r\n|\r|\n/g, by);

const ENCODING_FORMS: Record<string, Encode> = {
  plain: (text) => text,
  ...encodingNestings(),
  "a form's field": (text) => new URLSearchParams({ a: text }).toString(),
  reversed: (text) => Array.from(text).reverse().join(""),
  "reversed by code units, in JSON": (text) => JSON.stringify(text.split("").reverse().join("")),
  "reversed, in JSON, in a URL": (text) => url(json(Array.from(text).reverse().join(""))),
  hex: (text) => Buffer.from(text).toString("hex"),
  "hex in capitals": (text) => Buffer.from(text).toString("hex").toUpperCase(),
  "hex, one digit further": (text) => `a${Buffer.from(text).toString("hex")}`,
  base64: shifted("", "base64"),
  "base64, shifted by one": shifted("x", "base64"),
  "base64, shifted by two": shifted("xx", "base64"),
  base64url: shifted("", "base64url"),
  "base64url, shifted by one": shifted("x", "base64url"),
  "base64url, shifted by two": shifted("xx", "base64url"),
  "hex, reversed": (text) => Buffer.from(text).toString("hex").split("").reverse().join(""),
  "base64, reversed": (text) => Buffer.from(text).toString("base64").split("").reverse().join(""),
  "base64url, reversed, in JSON": (text) => json(Buffer.from(text).toString("base64url").split("").reverse().join("")),
  "base64 in a URL": (text) => url(shifted("x", "base64")(text)),
  "base64, every digit escaped, before other digits": (text) =>
    ` ${unicodeJson(shifted("x", "base64")(text))} 0123456789abcdef`,
  "base64 in lines": (text) => shifted("x", "base64")(text).replaceAll(/.{1,76}/g, "$&\r\n"),
  "base64 of JSON": (text) => Buffer.from(JSON.stringify({ text })).toString("base64"),
  "CRLF between lines": replaceLineBreaks("\r\n"),
  "CR between lines": replaceLineBreaks("\r"),
  "joined lines": replaceLineBreaks(""),
  "lines joined by spaces": replaceLineBreaks(" "),
  "CRLF between lines, in JSON": (text) => json(replaceLineBreaks("\r\n")(text)),
  "CRLF between lines, in base64": (text) => shifted("x", "base64")(replaceLineBreaks("\r\n")(text)),
  "CRLF between lines, in hex": (text) => Buffer.from(replaceLineBreaks("\r\n")(text)).toString("hex"),
};

/** Texts before and after the secret. Some of them look like the beginning or the end of an escape. */
const SURROUNDINGS: [string, string][] = [
  ["before ", " after"],
  ["", ""],
  ["\\", "n"],
  ["5%", "41"],
  ["C:\\keys\\", "\\"],
];

/** Parts of a URL before the secret. */
const URL_BEGINNINGS = ["http://h.example/x?", "http://h.example/x?n=", "http://h.example/x#", "http://h.example/"];

/**
 * Returns the surroundings to test with a value. Short values get none that could be part of an escape: an escape would include the first
 * letters of the value, and the rest is too short to find. Long values get only one pair.
 */
const surroundingsFor = ({ length }: string) =>
  SURROUNDINGS.slice(0, length > 10_000 ? 1 : length < 12 ? 2 : SURROUNDINGS.length);

/** Returns all forms, but for a long value `npm test` tests only a fifth of them. */
const formsFor = ({ length }: string) => {
  const forms = Object.entries(ENCODING_FORMS);
  return length > 10_000 ? sampleOf(forms, 0, 5) : forms;
};

describe("secrets in every form", () => {
  for (const [kind, value] of Object.entries(VALUES)) {
    const scan = new SecretScan(findSecretsInSettingValue("_key", value));

    it(`finds and masks ${kind} in ${formsFor(value).length} forms, with text around it`, () => {
      for (const [at, [form, encode]] of formsFor(value).entries()) {
        const around = surroundingsFor(value);
        for (const [before, after] of around.length > 2 ? sampleOf(around, at, 2) : around) {
          const text = before + encode(value) + after;
          const where = `${form} between ${JSON.stringify(before)} and ${JSON.stringify(after)}`;
          expect(scan.find([{ text }]), where).to.equal("_key");
          expect(scan.findInJson(JSON.stringify({ deep: [text] })), `${where}, in a result`).to.equal("_key");
          expect(scan.find([{ text: scan.mask({ text }) }]), `${where}, masked`).to.equal(null);
        }
      }
    });
  }

  for (const [kind, value] of Object.entries(VALUES)) {
    const scan = new SecretScan(findSecretsInSettingValue("_key", value));

    it(`finds ${kind} in ${formsFor(value).length} forms in a URL, after its normalization`, () => {
      for (const [at, [form, encode]] of formsFor(value).entries()) {
        for (const beginning of sampleOf(URL_BEGINNINGS, at, 2)) {
          // With some values, the text is not a valid URL.
          const address = URL.parse(beginning + encode(value))?.href;
          if (address) expect(scan.findInUrl(address), `${form} behind ${beginning}`).to.equal("_key");
        }
      }
    });
  }

  it("finds the lines of a PEM one by one, in an array and in any order", () => {
    const scan = new SecretScan(findSecretsInSettingValue("_key", PEM));
    expect(scan.findInJson(JSON.stringify(PEM.split("\n").toReversed()))).to.equal("_key");
    expect(scan.findInJson(JSON.stringify(["-----BEGIN PRIVATE KEY-----", "q9Zk4w=="]))).to.equal(null);
  });

  it("finds the password of a URL alone, as written, as URL returns it and decoded", () => {
    const scan = new SecretScan(
      findSecretsInSettingValue("_url", "postgres://user:p%40ss%2Fword%20of%2016@db.example.com/app"),
    );
    const { password } = new URL("postgres://user:p%40ss%2Fword%20of%2016@db.example.com/app");
    for (const text of [password, decodeURIComponent(password)]) expect(scan.find([{ text }])).to.equal("_url");
  });
});
