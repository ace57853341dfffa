/** Validates fields of e-mails and text messages: addresses, headers, attachments. Each error contains the path of the invalid field. */

import { ActionError } from "../errors.js";
import { findUnstorableCharacter, isObject } from "./describe-value.js";
import { refuseField } from "./fields.js";

export const RECIPIENT_TYPES = ["to", "cc", "bcc"] as const;
export type RecipientType = (typeof RECIPIENT_TYPES)[number];

export interface EmailRecipient {
  email: string;
  name: string | null;
  type: RecipientType;
}

export const ATTACHMENT_ENCODINGS = ["base64", "utf8"] as const;

export interface MessageAttachment {
  type: string;
  name: string;
  content: string;
  encoding: (typeof ATTACHMENT_ENCODINGS)[number];
}

export const EMAIL_RECIPIENTS_MAX = 1_000;
export const EMAIL_ATTACHMENTS_MAX = 20;
const HEADERS_MAX = 50;
const LINE_MAX_CHARACTERS = 998;
const NAME_MAX_CHARACTERS = 255;
const EMAIL_MAX_CHARACTERS = 254;
const LOCAL_PART_MAX_CHARACTERS = 64;

const LOCAL_PART_PATTERN = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const HOST_LABEL_PATTERN = /^[A-Za-z0-9-]{1,63}$/;
const HEADER_NAME_PATTERN = /^[A-Za-z][A-Za-z0-9-]{0,63}$/;
/** Matches mail headers that callers cannot set, such as `From`, because the service sets them. */
const RESERVED_HEADER_PATTERN =
  /^(?:(?:content|dkim|arc|resent)-|(?:from|sender|to|cc|bcc|subject|date|message-id|mime-version|return-path|received|authentication-results)$)/i;
const MEDIA_TYPE_PATTERN = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/i;
const BASE64_TEXT_PATTERN = /^[A-Za-z0-9+/]*={0,2}$/;
/** Matches control characters. A line break in a header's value could add another header. */
const CONTROL_CHARACTER_PATTERN = /\p{Cc}|[\u2028\u2029]/u;

/** Returns the value if it is a text of at most `max` characters without control characters, such as line breaks. @throws REQUEST_INVALID */
export function requireSingleLineText(value: unknown, field: string, max = LINE_MAX_CHARACTERS): string {
  const isValid =
    typeof value === "string" &&
    value.length <= max &&
    !CONTROL_CHARACTER_PATTERN.test(value) &&
    findUnstorableCharacter(value) < 0;
  return isValid
    ? value
    : refuseField(field, `one line of at most ${max} characters, without control characters`, value);
}

/** Returns the value if it is one line of text; null if the field is absent. @throws ActionError REQUEST_INVALID */
export function parseOptionalSingleLineText(value: unknown, field: string, max = NAME_MAX_CHARACTERS): string | null {
  return value === undefined || value === null ? null : requireSingleLineText(value, field, max);
}

/** Returns the value if it is a text, of any length; null if the field is absent. @throws REQUEST_INVALID */
export function parseOptionalText(value: unknown, field: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && findUnstorableCharacter(value) < 0) return value;
  return refuseField(field, "a text", value);
}

const isHostLabel = (text: string): boolean =>
  HOST_LABEL_PATTERN.test(text) && !text.startsWith("-") && !text.endsWith("-");

/** True for a valid e-mail address whose domain contains a dot. An address such as `ann@example` is nearly always a typing error. */
export function isEmailAddress(text: string): boolean {
  const at = text.lastIndexOf("@");
  const [local, labels] = [text.slice(0, at), text.slice(at + 1).split(".")];
  const isShort = text.length <= EMAIL_MAX_CHARACTERS && local.length <= LOCAL_PART_MAX_CHARACTERS;
  return at > 0 && isShort && LOCAL_PART_PATTERN.test(local) && labels.length > 1 && labels.every(isHostLabel);
}

function readRecipient(value: unknown, field: string): EmailRecipient {
  if (!isObject(value)) return refuseField(field, "an object {email, name, type}", value);
  const { email, name, type = "to" } = value;
  if (typeof email !== "string" || !isEmailAddress(email)) {
    return refuseField(`${field}.email`, "an e-mail address such as ann@example.com", email);
  }
  if (!RECIPIENT_TYPES.some((allowed) => allowed === type)) refuseField(`${field}.type`, "to, cc or bcc", type);
  return { email, name: parseOptionalSingleLineText(name, `${field}.name`), type: type as RecipientType };
}

/** Removes repeated addresses. If an address occurs several times, keeps its recipient in `to`, otherwise the one in `cc`. */
function removeRepeatedAddresses(recipients: readonly EmailRecipient[]): EmailRecipient[] {
  const recipientByAddress = new Map<string, EmailRecipient>();
  const rank = ({ type }: EmailRecipient) => RECIPIENT_TYPES.indexOf(type);
  for (const recipient of recipients) {
    const address = recipient.email.toLowerCase();
    const known = recipientByAddress.get(address);
    if (!known || rank(recipient) < rank(known)) recipientByAddress.set(address, recipient);
  }
  return [...recipientByAddress.values()];
}

/** Parses the recipients of an e-mail, and removes repeated addresses. @throws ActionError REQUEST_INVALID */
export function parseEmailRecipients(value: unknown, field: string): EmailRecipient[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > EMAIL_RECIPIENTS_MAX) {
    return refuseField(field, `an array of 1 to ${EMAIL_RECIPIENTS_MAX} recipients {email, name, type}`, value);
  }
  return removeRepeatedAddresses(value.map((element, index) => readRecipient(element, `${field}[${index}]`)));
}

/** Converts headers to `[name, value]` pairs. Accepts an array of `{name, value}`, or an object with a value by name. */
function toHeaderEntries(value: unknown, field: string): [string, unknown][] {
  if (!Array.isArray(value))
    return isObject(value)
      ? Object.entries(value)
      : refuseField(field, "an object with a value for each header name, or an array of {name, value}", value);
  return value.map((element, index) => {
    const headerObject = isObject(element) ? element : {};
    return [requireSingleLineText(headerObject["name"], `${field}[${index}].name`), headerObject["value"]];
  });
}

/** Parses the headers that a caller adds to an e-mail: `{name: value}` or `[{name, value}]`. @throws REQUEST_INVALID */
export function parseEmailHeaders(value: unknown, field: string): Record<string, string> {
  if (value === undefined || value === null) return {};
  const input = toHeaderEntries(value, field);
  if (input.length > HEADERS_MAX)
    refuseField(field, `an object or an array with at most ${HEADERS_MAX} headers`, input.length);
  return Object.fromEntries(
    input.map(([name, text]) => {
      if (!HEADER_NAME_PATTERN.test(name))
        refuseField(`each name in ${field}`, "a letter, and then at most 63 letters, digits and dashes", name);
      if (RESERVED_HEADER_PATTERN.test(name))
        refuseField(`each name in ${field}`, "a header that the service does not set", name);
      return [name, requireSingleLineText(text, `${field}.${name}`)];
    }),
  );
}

function readAttachment(value: unknown, field: string): MessageAttachment {
  if (!isObject(value)) return refuseField(field, "an object {type, name, content, encoding}", value);
  const { type = "application/octet-stream", content, encoding = "utf8" } = value;
  const name = requireSingleLineText(value["name"], `${field}.name`, NAME_MAX_CHARACTERS);
  if (name === "" || /[\\/]/.test(name)) refuseField(`${field}.name`, "a file name without slashes", name);
  if (typeof type !== "string" || !MEDIA_TYPE_PATTERN.test(type))
    return refuseField(`${field}.type`, "a content type such as text/csv", type);
  if (!ATTACHMENT_ENCODINGS.some((allowed) => allowed === encoding))
    refuseField(`${field}.encoding`, "base64 or utf8", encoding);
  if (typeof content !== "string" || findUnstorableCharacter(content) >= 0)
    return refuseField(`${field}.content`, "a text", content);
  const bareText = encoding === "base64" ? content.replace(/[\r\n]/g, "") : content;
  if (encoding === "base64" && (bareText.length % 4 !== 0 || !BASE64_TEXT_PATTERN.test(bareText))) {
    throw new ActionError("REQUEST_INVALID", `${field}.content must be valid base64, because "encoding" is "base64"`);
  }
  return { type, name, content: bareText, encoding: encoding as MessageAttachment["encoding"] };
}

export function parseAttachments(value: unknown, field: string): MessageAttachment[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > EMAIL_ATTACHMENTS_MAX) {
    return refuseField(field, `an array of at most ${EMAIL_ATTACHMENTS_MAX} attachments`, value);
  }
  return value.map((element, index) => readAttachment(element, `${field}[${index}]`));
}

function normalizePhoneNumber(text: string): string | null {
  const bareText = text.length <= 40 ? text.replace(/[ ().-]/g, "") : "";
  return /^\+?[0-9]{3,15}$/.test(bareText) ? bareText : null;
}

export const isPhoneNumber = (text: string): boolean => normalizePhoneNumber(text) !== null;

/**
 * Returns a phone number without spaces, dashes, dots and brackets: only digits, with an optional plus at the start.
 * @throws ActionError REQUEST_INVALID
 */
export function parsePhoneNumber(value: unknown, field: string): string {
  const phoneNumber = typeof value === "string" ? normalizePhoneNumber(value) : null;
  return phoneNumber ?? refuseField(field, "a phone number such as +15550100", value);
}
