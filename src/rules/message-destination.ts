/**
 * Reads the mail server and the SMS provider of an app from its protected settings `__smtp` and `__sms`. Errors contain the name of the
 * invalid field, but no secret.
 */
import addressparser from "nodemailer/lib/addressparser";
import { describeType, isObject } from "./describe-value.js";
import { isEmailAddress } from "./message-fields.js";
import { SMS_PROVIDERS } from "./message-input.js";

export interface SmtpDestination {
  host: string;
  port: number;
  secure: boolean;
  user: string | null;
  password: string | null;
  from: string;
  /** Name of the sender, as mail programs show it; null if there is none. */
  fromName: string | null;
}

export type SmsDestination =
  | { provider: "twilio"; sid: string; token: string; from: string; url: string }
  | { provider: "webhook"; url: string; secret: string };

const TWILIO_URL = "https://api.twilio.com";
const DEFAULT_SMTP_PORT = 587;
const SMTP_PORT_WITH_TLS = 465;
/** Maximum length of a sender in characters: the longest header line that mail allows (RFC 5322, section 2.1.1). */
const SENDER_MAX_CHARACTERS = 998;

/** Parses a sender: `ann@example.com` or `Ann <ann@example.com>`. Returns null for any other text. */
export function parseMailSender(text: string): { from: string; fromName: string | null } | null {
  if (text.length > SENDER_MAX_CHARACTERS || /\p{Cc}/u.test(text)) return null;
  const [sender, ...more] = addressparser(text);
  if (sender?.address === undefined || more.length > 0 || !isEmailAddress(sender.address)) return null;
  const { address: from, name } = sender;
  // addressparser also finds an address inside of other text. So the text must be an address, or end with `<address>`.
  const isWhole = text.trim() === from || text.trimEnd().endsWith(`<${from}>`);
  return isWhole ? { from, fromName: name || null } : null;
}

/** Error if the setting `__smtp` or `__sms` is invalid. The message contains no value that may be a secret. */
export class InvalidDestinationError extends Error {}

class SettingFields {
  constructor(
    private readonly key: string,
    private readonly value: Record<string, unknown>,
  ) {}

  createFault(
    field: string,
    expected: string,
    received: string = describeType(this.value[field]),
  ): InvalidDestinationError {
    return new InvalidDestinationError(`the setting ${this.key}.${field} must be ${expected} (got ${received})`);
  }

  requireText(field: string, expected = "a text with at least one character and no control characters"): string {
    const value = this.value[field];
    if (typeof value === "string" && value !== "" && !/\p{Cc}/u.test(value)) return value;
    throw this.createFault(field, expected);
  }

  readOptionalText(field: string): string | null {
    const value = this.value[field];
    return value === undefined || value === null || value === "" ? null : this.requireText(field);
  }

  readUrl(field: string, allowHttp: boolean, fallback?: string): string {
    const text =
      fallback !== undefined && this.value[field] === undefined ? fallback : this.requireText(field, "an https URL");
    const url = URL.parse(text);
    const hasScheme = url?.protocol === "https:" || (allowHttp && url?.protocol === "http:");
    if (hasScheme && url.username === "" && url.password === "") return url.href;
    throw this.createFault(field, "an https URL without credentials");
  }
}

/**
 * Reads the mail server from the value of the setting `__smtp`. Returns null if the setting is missing or names no host.
 * @param mailFrom sender if the setting has no sender, and its user is no e-mail address
 * @throws InvalidDestinationError
 */
export function parseSmtpDestination(value: unknown, mailFrom: string | null): SmtpDestination | null {
  if (value === undefined || value === null) return null;
  if (!isObject(value))
    throw new InvalidDestinationError(
      `the setting __smtp must be an object with the field "host" (got ${describeType(value)})`,
    );
  const fields = new SettingFields("__smtp", value);
  if (fields.readOptionalText("host") === null) return null;
  const { port: input, secure: secureOption } = value;
  if (secureOption !== undefined && secureOption !== null && typeof secureOption !== "boolean")
    throw fields.createFault("secure", "true or false");
  const port =
    input === undefined || input === null
      ? secureOption === true
        ? SMTP_PORT_WITH_TLS
        : DEFAULT_SMTP_PORT
      : Number(input);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    const received = typeof input === "number" ? String(input) : describeType(input);
    throw fields.createFault("port", "a port from 1 to 65535", received);
  }
  const host = fields.requireText("host", "a host name");
  if (!/^[A-Za-z0-9._:[\]-]{1,253}$/.test(host)) throw fields.createFault("host", "a host name");
  const user = fields.readOptionalText("user");
  const sender = parseMailSender(
    fields.readOptionalText("from") ?? (user !== null && isEmailAddress(user) ? user : (mailFrom ?? "")),
  );
  if (sender === null) throw fields.createFault("from", "an e-mail address, with or without a name");
  const secure = secureOption === true || (typeof secureOption !== "boolean" && port === SMTP_PORT_WITH_TLS);
  return {
    host,
    port,
    secure,
    user,
    password: fields.readOptionalText("password") ?? fields.readOptionalText("pass"),
    ...sender,
  };
}

/**
 * Reads the SMS provider from the value of the setting `__sms`. Returns null if there is no such setting.
 * @param allowHttp true if the provider may have an http URL (ALLOW_PRIVATE_NETWORK)
 * @throws InvalidDestinationError
 */
export function parseSmsDestination(value: unknown, allowHttp: boolean): SmsDestination | null {
  if (value === undefined || value === null) return null;
  if (!isObject(value))
    throw new InvalidDestinationError(
      `the setting __sms must be an object with the field "provider" (got ${describeType(value)})`,
    );
  const fields = new SettingFields("__sms", value);
  switch (value["provider"]) {
    case "twilio": {
      const sid = fields.requireText("sid");
      if (!/^[A-Za-z0-9]{1,64}$/.test(sid)) throw fields.createFault("sid", "letters and digits");
      const [token, from] = [fields.requireText("token"), fields.requireText("from")];
      return { provider: "twilio", sid, token, from, url: fields.readUrl("url", allowHttp, TWILIO_URL) };
    }
    case "webhook":
      return { provider: "webhook", url: fields.readUrl("url", allowHttp), secret: fields.requireText("secret") };
    default:
      throw fields.createFault("provider", SMS_PROVIDERS.join(" or "));
  }
}
