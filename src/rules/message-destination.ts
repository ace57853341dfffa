/**
 * Reads the mail server and the SMS provider of an app from its protected settings `__smtp` and `__sms`. Errors contain
 * the name of the invalid field, never its value.
 */
import addressparser from "nodemailer/lib/addressparser";
import { isObject, kindOf } from "./described.js";
import { isEmailAddress } from "./message-fields.js";
import { SMS_PROVIDERS } from "./message-input.js";

export interface SmtpDestination {
  host: string;
  port: number;
  secure: boolean;
  user: string | null;
  password: string | null;
  /** The sender's address. */
  from: string;
  /** The sender's name. */
  fromName: string | null;
}

export type SmsDestination =
  | { provider: "twilio"; sid: string; token: string; from: string; url: string }
  | { provider: "webhook"; url: string; secret: string };

const TWILIO_URL = "https://api.twilio.com";
const SUBMISSION_PORT = 587;
const SUBMISSION_OVER_TLS = 465;
/** Maximum length of a header line (RFC 5322, section 2.1.1). */
const SENDER_MAX_CHARACTERS = 998;

/** Parses a sender: `ann@example.com` or `Ann <ann@example.com>`. Returns null for any other text. */
export function parseSender(text: string): { from: string; fromName: string | null } | null {
  if (text.length > SENDER_MAX_CHARACTERS || /\p{Cc}/u.test(text)) return null;
  const [sender, ...more] = addressparser(text);
  if (sender?.address === undefined || more.length > 0 || !isEmailAddress(sender.address)) return null;
  const { address: from, name } = sender;
  // The parser also finds an address within other text. The text must be just the address, or end with it in brackets.
  const isWhole = text.trim() === from || text.trimEnd().endsWith(`<${from}>`);
  return isWhole ? { from, fromName: name || null } : null;
}

/** Error for an invalid `__smtp` or `__sms` setting. */
export class DestinationFault extends Error {}

class Fields {
  constructor(
    private readonly key: string,
    private readonly value: Record<string, unknown>,
  ) {}

  fault(field: string, expected: string): DestinationFault {
    return new DestinationFault(
      `the setting ${this.key}.${field} must be ${expected} (got ${kindOf(this.value[field])})`,
    );
  }

  text(field: string, expected = "a text"): string {
    const value = this.value[field];
    if (typeof value === "string" && value !== "" && !/\p{Cc}/u.test(value)) return value;
    throw this.fault(field, expected);
  }

  optional(field: string): string | null {
    const value = this.value[field];
    return value === undefined || value === null || value === "" ? null : this.text(field);
  }

  url(field: string, fallback?: string): string {
    const text =
      fallback !== undefined && this.value[field] === undefined ? fallback : this.text(field, "an https URL");
    const url = URL.parse(text);
    const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
    if (isPlain) return url.href;
    throw this.fault(field, "an https URL without credentials");
  }
}

/**
 * Reads the mail server from the setting `__smtp`; null if there is none.
 * @param mailFrom default sender
 * @throws DestinationFault
 */
export function smtpDestination(value: unknown, mailFrom: string | null): SmtpDestination | null {
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw new DestinationFault(`the setting __smtp must be an object (got ${kindOf(value)})`);
  const fields = new Fields("__smtp", value);
  if (fields.optional("host") === null) return null;
  const { port: input, secure: secureOption } = value;
  if (secureOption !== undefined && secureOption !== null && typeof secureOption !== "boolean")
    throw fields.fault("secure", "true or false");
  const port =
    input === undefined || input === null
      ? secureOption === true
        ? SUBMISSION_OVER_TLS
        : SUBMISSION_PORT
      : Number(input);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw fields.fault("port", "a port from 1 to 65535");
  const host = fields.text("host", "a host name");
  if (!/^[A-Za-z0-9._:[\]-]{1,253}$/.test(host)) throw fields.fault("host", "a host name");
  const user = fields.optional("user");
  const sender = parseSender(
    fields.optional("from") ?? (user !== null && isEmailAddress(user) ? user : (mailFrom ?? "")),
  );
  if (sender === null) throw fields.fault("from", "an e-mail address, with or without a name");
  const secure = secureOption === true || (typeof secureOption !== "boolean" && port === SUBMISSION_OVER_TLS);
  return { host, port, secure, user, password: fields.optional("password") ?? fields.optional("pass"), ...sender };
}

/** Reads the SMS provider from the setting `__sms`; null if there is none. @throws DestinationFault */
export function smsDestination(value: unknown): SmsDestination | null {
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw new DestinationFault(`the setting __sms must be an object (got ${kindOf(value)})`);
  const fields = new Fields("__sms", value);
  switch (value["provider"]) {
    case "twilio": {
      const sid = fields.text("sid");
      if (!/^[A-Za-z0-9]{1,64}$/.test(sid)) throw fields.fault("sid", "letters and digits");
      const [token, from] = [fields.text("token"), fields.text("from")];
      return { provider: "twilio", sid, token, from, url: fields.url("url", TWILIO_URL) };
    }
    case "webhook":
      return { provider: "webhook", url: fields.url("url"), secret: fields.text("secret") };
    default:
      throw fields.fault("provider", SMS_PROVIDERS.join(" or "));
  }
}
