import { expect } from "chai";
import { createSecretScan } from "../../src/engine/secret-scan.js";
import { secretsOf } from "../../src/rules/secrets.js";

const SECRET = 'k3y/+ü"\\ of many?parts=1&2';
const scan = createSecretScan([{ name: "_key", value: SECRET }]);
const bytes = Buffer.from(SECRET);
const encoded = encodeURIComponent(SECRET);

const FORMS: Record<string, string> = {
  plain: SECRET,
  JSON: JSON.stringify({ a: SECRET }),
  "JSON in JSON": JSON.stringify(JSON.stringify({ a: SECRET })),
  URL: encoded,
  "URL, lower case": encoded.replace(/%[0-9A-F]{2}/g, (match) => match.toLowerCase()),
  "URL twice": encodeURIComponent(encoded),
  "URL form": new URLSearchParams({ a: SECRET }).toString(),
  "URL, every byte": bytes.toString("hex").replace(/../g, "%$&"),
  hex: bytes.toString("hex"),
  "hex, upper case": bytes.toString("hex").toUpperCase(),
  reversed: Array.from(SECRET).reverse().join(""),
  base64: bytes.toString("base64"),
  "base64, shifted by one": Buffer.from(`x${SECRET}y`).toString("base64"),
  "base64, shifted by two": Buffer.from(`xx${SECRET}yy`).toString("base64"),
  base64url: bytes.toString("base64url"),
  "base64url, shifted by one": Buffer.from(`x${SECRET}`).toString("base64url"),
  "base64url, shifted by two": Buffer.from(`xx${SECRET}`).toString("base64url"),
};

describe("the secret scan", () => {
  for (const [form, text] of Object.entries(FORMS)) {
    it(`finds and masks a secret in the form ${form}, wherever it stands`, () => {
      const around = `before ${text} after`;
      expect(scan.find(around)).to.equal("_key");
      const masked = scan.mask(around);
      expect(masked).to.include("«_key»");
      expect(scan.find(masked)).to.equal(null);
    });
  }

  it("finds nothing in text that holds no secret", () => {
    expect(scan.find("k3y/+ü of few parts, nothing else; ".repeat(1000))).to.equal(null);
    expect(scan.mask("nothing here")).to.equal("nothing here");
  });

  it("counts a value of fewer than 8 characters only where it is the whole text, or a whole string of JSON", () => {
    const short = createSecretScan([{ name: "_pin", value: "1234" }]);
    expect(short.find("1234")).to.equal("_pin");
    expect(short.find("12345")).to.equal(null);
    expect(short.findInJson('{"a":["1234"]}')).to.equal("_pin");
    expect(short.findInJson('{"a":"0 1234"}')).to.equal(null);
    expect(short.mask("1234")).to.equal("«_pin»");
  });

  it("takes the strings and long numbers of underscore settings for secrets, and no flag, count or short part", () => {
    const settings = {
      _flag: true,
      _count: 12,
      _pin: "1234",
      _account: 1234567890,
      __deep: { mode: "test", key: "abcdefgh" },
    };
    expect(secretsOf(settings)).to.deep.equal([
      { name: "_pin", value: "1234" },
      { name: "_account", value: "1234567890" },
      { name: "__deep", value: "abcdefgh" },
    ]);
  });
});
