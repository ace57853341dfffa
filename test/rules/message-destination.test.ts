/** Tests destinations of mail and text messages in an app's settings: each value, and the field that each fault names. */
import { expect } from "chai";
import {
  InvalidDestinationError,
  parseMailSender,
  parseSmsDestination,
  parseSmtpDestination,
} from "../../src/rules/message-destination.js";

const senderOfLength = (length: number) => `${"x".repeat(length - 18)} <ann@example.com>`;

describe("a sender", () => {
  it("is an address, alone or in brackets after a name", () => {
    for (const [text, from, fromName] of [
      ["ann@example.com", "ann@example.com", null],
      [" ann@example.com ", "ann@example.com", null],
      ["Ann <ann@example.com>", "ann@example.com", "Ann"],
      ['"Ann, of the Shop" <ann@example.com>', "ann@example.com", "Ann, of the Shop"],
      ["<ann@example.com>", "ann@example.com", null],
      [senderOfLength(998), "ann@example.com", "x".repeat(980)],
    ] as const) {
      expect(parseMailSender(text), text).to.deep.equal({ from, fromName });
    }
  });

  it("cannot be anything else, and cannot contain a line break", () => {
    for (const text of [
      "",
      "Ann",
      "Ann ann@example.com",
      "a@example.com, b@example.com",
      "Ann <a@example.com> <b@example.com>",
      "Shop: ann@example.com;",
      "Ann\r\nBcc: x@example.com <ann@example.com>",
      "Ann <ann@-example.com>",
      "Ann <ann@example.com> x",
      "Ann <ann@example.com>, Ann <ann@example.com>",
      "Ann\u0007 <ann@example.com>",
      senderOfLength(999),
      `${" ".repeat(4_000)}<`,
      `${"(".repeat(900)}ann@example.com`,
    ]) {
      expect(parseMailSender(text), text).to.equal(null);
    }
  });
});

describe("a mail server of the settings", () => {
  const MAIL = { host: "mail.example.com", from: "shop@example.com" };

  it("needs a host, whatever else is set", () => {
    for (const value of [undefined, null, {}, { host: "" }, { host: null, port: 25 }])
      expect(parseSmtpDestination(value, "ops@example.com"), JSON.stringify(value)).to.equal(null);
  });

  it("gets port and encryption from each other", () => {
    for (const [fields, port, secure] of [
      [{}, 587, false],
      [{ secure: null }, 587, false],
      [{ secure: true }, 465, true],
      [{ secure: false }, 587, false],
      [{ port: null, secure: true }, 465, true],
      [{ port: 465 }, 465, true],
      [{ port: 465, secure: false }, 465, false],
      [{ port: "25" }, 25, false],
      [{ port: 1 }, 1, false],
      [{ port: 65_535 }, 65_535, false],
    ] as const)
      expect(parseSmtpDestination({ ...MAIL, ...fields }, null), JSON.stringify(fields)).to.include({ port, secure });
  });

  it("has its sender from `from`, a user that is an address, or the operator, in this order", () => {
    const senderOf = (value: object, mailFrom: string | null) =>
      parseSmtpDestination({ host: "h", ...value }, mailFrom)?.from;
    expect(senderOf({ from: "a@example.com", user: "b@example.com" }, "c@example.com")).to.equal("a@example.com");
    expect(senderOf({ user: "b@example.com" }, "c@example.com")).to.equal("b@example.com");
    expect(senderOf({ user: "bob" }, "c@example.com")).to.equal("c@example.com");
    expect(senderOf({}, "Ops <c@example.com>")).to.equal("c@example.com");
    expect(() => senderOf({ user: "bob" }, null)).to.throw(InvalidDestinationError, "the setting __smtp.from must be");
  });

  it("accepts the password under either name", () => {
    expect(parseSmtpDestination({ ...MAIL, password: "a", pass: "b" }, null)).to.include({ password: "a", user: null });
    expect(parseSmtpDestination({ ...MAIL, user: "u", pass: "b" }, null)).to.include({ password: "b", user: "u" });
    expect(parseSmtpDestination(MAIL, null)).to.include({ password: null, fromName: null });
  });

  it("is rejected with the invalid field, without its value", () => {
    for (const [value, field] of [
      [{ ...MAIL, port: 0 }, "port must be a port from 1 to 65535 (got 0)"],
      [{ ...MAIL, port: 65_536 }, "port must be"],
      [{ ...MAIL, port: 2.5 }, "port must be"],
      [{ ...MAIL, port: "secret-port" }, "port must be a port from 1 to 65535 (got a string)"],
      [{ ...MAIL, secure: "yes" }, "secure must be true or false"],
      [{ ...MAIL, host: 5 }, "host must be a text"],
      [{ ...MAIL, host: "a b" }, "host must be a host"],
      [{ ...MAIL, host: "a\u0000" }, "host must be a text"],
      [{ ...MAIL, host: "a".repeat(254) }, "host must be a host"],
      [{ ...MAIL, user: 7 }, "user must be a text"],
      [{ ...MAIL, password: ["x"] }, "password must be a text"],
      [{ ...MAIL, from: "nobody" }, "from must be an e-mail address"],
      ["smtp://secret", 'must be an object with the field "host" (got a string)'],
    ] as const)
      expect(() => parseSmtpDestination(value, null), JSON.stringify(value))
        .to.throw(InvalidDestinationError, `the setting __smtp`)
        .with.property("message")
        .that.contains(field)
        .and.does.not.contain("secret-port");
  });
});

describe("a provider of text messages of the settings", () => {
  const TWILIO_SETTING = { provider: "twilio", sid: "AC1", token: "t", from: "+49" };
  const WEBHOOK = { provider: "webhook", url: "https://sms.example.com/x", secret: "s" };

  it("is missing if nothing is set, and otherwise one of the two with their fields", () => {
    for (const value of [undefined, null]) expect(parseSmsDestination(value, false)).to.equal(null);
    expect(parseSmsDestination({ ...TWILIO_SETTING, more: 1 }, false)).to.deep.equal({
      ...TWILIO_SETTING,
      url: "https://api.twilio.com/",
    });
    expect(parseSmsDestination({ ...TWILIO_SETTING, url: "http://localhost:1/" }, true)).to.include({
      url: "http://localhost:1/",
    });
    expect(parseSmsDestination(WEBHOOK, false)).to.deep.equal(WEBHOOK);
  });

  it("is rejected with the invalid field", () => {
    for (const [value, field] of [
      ["twilio", 'must be an object with the field "provider" (got a string)'],
      [{}, "provider must be twilio or webhook (got nothing)"],
      [{ provider: "other" }, "provider must be"],
      [{ ...TWILIO_SETTING, sid: "" }, "sid must be a text"],
      [{ ...TWILIO_SETTING, sid: "AC/../x" }, "sid must be letters and digits"],
      [{ ...TWILIO_SETTING, sid: "A".repeat(65) }, "sid must be letters and digits"],
      [{ ...TWILIO_SETTING, token: undefined }, "token must be a text"],
      [{ ...TWILIO_SETTING, from: "" }, "from must be a text"],
      [{ ...TWILIO_SETTING, url: null }, "url must be an https URL"],
      [{ ...WEBHOOK, secret: 5 }, "control characters (got a number)"],
      ...["ftp://a", "http://a", "https://user@a", "https://:pw@a", "a"].map(
        (url) => [{ ...WEBHOOK, url }, "url must be an https URL without credentials"] as const,
      ),
    ] as const)
      expect(() => parseSmsDestination(value, false), JSON.stringify(value)).to.throw(InvalidDestinationError, field);
  });
});
