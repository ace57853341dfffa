/** Tests the check of the settings that the service itself uses, at their save. Needs no service. */
import { expect } from "chai";
import { ActionError } from "../../src/errors.js";
import { checkServiceSettings } from "../../src/rules/service-settings.js";

const AI = { provider: "openai", key: "sk-canary" };
const MAIL = { host: "mail.example.com", from: "a@example.com" };
const SMS = { provider: "webhook", url: "https://sms.example.com/x", secret: "sms-canary" };

const faultOf = (setting: object, rules: { allowHttp?: boolean; mailFrom?: string } = {}): string | null => {
  try {
    checkServiceSettings(Object.entries(setting), { allowHttp: false, mailFrom: null, ...rules });
    return null;
  } catch (error) {
    if (!(error instanceof ActionError)) throw error;
    expect(error.status).to.equal("SETTINGS_INVALID");
    return error.message;
  }
};

describe("a setting that the service uses is checked at its save", () => {
  for (const [name, setting, expected] of [
    ["no key", { __ai: { provider: "openai" } }, "the setting __ai.key must be"],
    ["an empty key", { __ai: { ...AI, key: "" } }, "the setting __ai.key must be"],
    ["a key with a line break", { __ai: { ...AI, key: "canary\nx" } }, "the setting __ai.key must be"],
    ["another provider", { __ai: { ...AI, provider: "other" } }, "the setting __ai.provider must be"],
    ["a file as baseUrl", { __ai: { ...AI, baseUrl: "file:///etc/passwd" } }, "the setting __ai.baseUrl must be"],
    ["a user in baseUrl", { __ai: { ...AI, baseUrl: "https://canary@a.example/v1" } }, "__ai.baseUrl must be"],
    ["a password in baseUrl", { __ai: { ...AI, baseUrl: "https://:canary@a.example/v1" } }, "__ai.baseUrl must be"],
    ["a query in baseUrl", { __ai: { ...AI, baseUrl: "https://a.example/v1?k=canary" } }, "__ai.baseUrl must be"],
    ["no models", { __ai: { ...AI, models: [] } }, "the setting __ai.models must be"],
    ["a negative limit", { __ai: { ...AI, dailyTokens: -1 } }, "the setting __ai.dailyTokens must be"],
    ["logTexts as text", { __ai: { ...AI, logTexts: "yes" } }, "the setting __ai.logTexts must be"],
    [
      "an unknown field",
      { __ai: { ...AI, baseURL: "https://a.example" } },
      '__ai.baseURL is not a known field; the nearest known field is "baseUrl"',
    ],
    ["a text instead of an object", { __ai: "canary" }, "the setting __ai must be an object (got a string)"],
    ["no sender", { __smtp: { host: "mail.example.com" } }, "the setting __smtp.from must be"],
    ["a wrong port", { __smtp: { ...MAIL, port: "canary" } }, "the setting __smtp.port must be"],
    ["a text instead of a mail server", { __smtp: "smtp://canary" }, "the setting __smtp must be an object"],
    ["another provider of text messages", { __sms: { ...SMS, provider: "canary" } }, "the setting __sms.provider must"],
    ["http for text messages", { __sms: { ...SMS, url: "http://sms.example.com" } }, "the setting __sms.url must be"],
  ] as const) {
    it(`with ${name}`, () => {
      const fault = faultOf({ title: "Shop", ...setting });
      expect(fault).to.contain(expected).and.not.contain("canary");
    });
  }

  it("names the remedy for http, and accepts http if the operator allows private addresses", () => {
    const local = { __ai: { ...AI, baseUrl: "http://127.0.0.1:11434/v1" } };
    expect(faultOf(local)).to.equal(
      "the setting __ai.baseUrl must be an https URL without credentials and query, such as https://api.mistral.ai/v1 " +
        "(got http://127.0.0.1:11434/v1); for http and private addresses, the operator sets ALLOW_PRIVATE_NETWORK=1",
    );
    expect(faultOf(local, { allowHttp: true })).to.equal(null);
    expect(faultOf({ __sms: { ...SMS, url: "http://127.0.0.1/x" } }, { allowHttp: true })).to.equal(null);
  });

  it("accepts valid values, and any value under other names", () => {
    expect(faultOf({ __ai: { ...AI, baseUrl: "https://api.mistral.ai/v1", models: ["m"] }, __smtp: MAIL })).to.equal(
      null,
    );
    expect(faultOf({ __sms: SMS, __smtp: { secret: "only for reports" } })).to.equal(null);
    expect(faultOf({ __smtp: { host: "h" } }, { mailFrom: "ops@example.com" })).to.equal(null);
    expect(faultOf({ __other: { provider: 1 }, ai: 5, smtp: "x" })).to.equal(null);
  });
});
