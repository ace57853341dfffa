/** Tests for which values of a setting Studio warns that they look like secrets. */
import { expect } from "chai";
import { looksLikeSecret } from "../../src/web/studio/settings/looks-secret.js";

const SECRET_SETTINGS: [key: string, value: unknown][] = [
  ["smtpPassword", "x"],
  ["api-key", "x"],
  ["apiKey", 1],
  ["token", "x"],
  ["mail_token", "x"],
  ["mailToken", "x"],
  ["mail", { host: "a", credentials: { user: "b" } }],
  ["list", [{ client_secret: "x" }]],
  ["stripe", "sk_live_0123456789abcdef"],
  ["hub", "ghp_0123456789abcdefghij0123456789abcdef"],
  ["cloud", "AKIAABCDEFGHIJKLMNOP"],
  ["jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"],
  ["pem", "-----BEGIN RSA PRIVATE KEY-----\nMII"],
  ["database", "postgres://user:hunter2@db.example.com/app"],
  ["random", "aB3dE6gH9jK2mN5pQ8sT1vW4"],
];

const HARMLESS_SETTINGS: [key: string, value: unknown][] = [
  ["title", "Shop"],
  ["author", "Ada Lovelace"],
  ["tokenizer", "words"],
  ["keyboard", "qwerty"],
  ["authorName", "x"],
  ["homepage", "https://www.example.com/shop/index.html"],
  ["id", "5f3e8a1c-0b1d-4c7e-9a57-2f6d1e8b4c3a"],
  ["hash", "0123456789abcdef0123456789abcdef"],
  ["words", "a sentence that is longer than a token but holds spaces 1234"],
  ["sizes", { small: 1, large: [2, 3] }],
  ["nothing", null],
];

describe("a public setting", () => {
  it("looks like a secret by its key, by a key within it, or by its value", () => {
    for (const [key, value] of SECRET_SETTINGS) expect(looksLikeSecret(key, value), key).to.equal(true);
  });

  it("does not look like one otherwise", () => {
    for (const [key, value] of HARMLESS_SETTINGS) expect(looksLikeSecret(key, value), key).to.equal(false);
  });
});
