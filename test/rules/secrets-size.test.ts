import { expect } from "chai";
import { SECRETS_PER_APP_MAX, SECRETS_PER_APP_MAX_BYTES } from "../../src/limits.js";
import { findSecretLimitFault, findSecretsInSettingValue, measureSecrets } from "../../src/rules/secrets.js";

const secret = (value: string) => ({ name: "_a", value, mustMatchWhole: false });

describe("the secrets of an app", () => {
  it("are counted with their bytes", () => {
    expect(measureSecrets([])).to.deep.equal({ count: 0, bytes: 0 });
    expect(measureSecrets([secret("abc"), secret("ä")])).to.deep.equal({ count: 2, bytes: 5 });
  });

  it("are rejected above the number and above the bytes, and not at them", () => {
    const many = (count: number) => Array.from({ length: count }, () => secret("x"));
    expect(findSecretLimitFault(many(SECRETS_PER_APP_MAX))).to.equal(null);
    expect(findSecretLimitFault(many(SECRETS_PER_APP_MAX + 1))).to.contain(`got ${SECRETS_PER_APP_MAX + 1} with`);
    expect(findSecretLimitFault([secret("x".repeat(SECRETS_PER_APP_MAX_BYTES))])).to.equal(null);
    expect(findSecretLimitFault([secret("x".repeat(SECRETS_PER_APP_MAX_BYTES + 1))])).to.contain(
      `got 1 with ${SECRETS_PER_APP_MAX_BYTES + 1} bytes`,
    );
  });

  it("of a setting are long strings and numbers, parts that are secret by themselves, and short protected strings", () => {
    const values = (name: string, value: unknown) =>
      findSecretsInSettingValue(name, value).map((found) => [found.value, found.mustMatchWhole]);
    expect(values("_a", "abcdefg1")).to.deep.equal([["abcdefg1", false]]);
    expect(values("_a", "abcdef1")).to.deep.equal([]);
    expect(values("__a", "abcdef1")).to.deep.equal([["abcdef1", true]]);
    expect(values("__a", "")).to.deep.equal([]);
    expect(values("_a", 12_345_678)).to.deep.equal([["12345678", false]]);
    expect(values("_a", -1_234_567)).to.deep.equal([]);
    expect(values("_a", "production")).to.deep.equal([]);
    expect(values("__a", "production")).to.deep.equal([["production", false]]);
    expect(values("_a", "abcdefghijklmnop")).to.deep.equal([["abcdefghijklmnop", false]]);
    const address = "postgres://user:p%40ss-w0rd-long-enough@host/db";
    expect(values("_a", address)).to.deep.equal([
      [address, false],
      ["p%40ss-w0rd-long-enough", false],
      ["p@ss-w0rd-long-enough", false],
    ]);
    expect(values("_a", "https://host:80/a@b-is-no-password-here")).to.have.length(1);
    const json = JSON.stringify({ key: "sixteen-letters!", id: "short-one" });
    expect(values("_a", json)).to.deep.equal([
      [json, false],
      ["sixteen-letters!", false],
    ]);
    for (const alone of [
      '"a quoted text of many characters"',
      "https://someone-without-a-password@host.example/",
      "https://host:8888888888888888888888/path",
    ])
      expect(values("_a", alone), alone).to.deep.equal([[alone, false]]);
    // The text has four characters of two UTF-16 units each.
    expect(values("__a", "🔑🔒🔐🗝")).to.deep.equal([["🔑🔒🔐🗝", true]]);
    expect(values("__a", "🔑🔒🔐🗝🔑🔒🔐🗝")).to.deep.equal([["🔑🔒🔐🗝🔑🔒🔐🗝", false]]);
    expect(values("__mail", { key: "a-long-value-1", other: "a-long-value-2" }).sort()).to.deep.equal([
      ["a-long-value-1", false],
      ["a-long-value-2", false],
    ]);
    expect(values("__ai", { key: "sk-0123456789", url: "https://models.example" })).to.deep.equal([
      ["sk-0123456789", false],
    ]);
  });
});
