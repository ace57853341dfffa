/**
 * Validates e-mails and text messages in requests (specification of packages, Communicate), and fills in the placeholders in their texts.
 */

import { ActionError } from "../errors.js";
import { describeValue, isObject } from "./describe-value.js";
import { parseWithErrorPrefix, refuseField } from "./fields.js";
import {
  type EmailRecipient,
  type MessageAttachment,
  parseAttachments,
  parseEmailHeaders,
  parseEmailRecipients,
  parseOptionalSingleLineText,
  parseOptionalText,
  parsePhoneNumber,
  requireSingleLineText,
} from "./message-fields.js";
import { fillMessageTemplate } from "./message-template.js";
import { createFlatShape, refuseUnknownFields, type Shape } from "./unknown-fields.js";

export interface Email {
  kind: "email";
  to: EmailRecipient[];
  subject: string;
  fromName: string | null;
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
  attachments: MessageAttachment[];
}

export const SMS_PROVIDERS = ["twilio", "webhook"] as const;
export type SmsProvider = (typeof SMS_PROVIDERS)[number];

export interface Sms {
  kind: "sms";
  to: string;
  body: string;
  from: string | null;
  /** Provider that must send the message; null for the provider of the app's setting `__sms`. */
  provider: SmsProvider | null;
}

const EMAIL_SHAPE: Shape = {
  fields: {
    ...createFlatShape(["subject", "from_name", "fromName", "html", "text", "headers", "data"]).fields,
    to: [createFlatShape(["email", "name", "type"])],
    attachments: [createFlatShape(["type", "name", "content", "encoding"])],
  },
};
const SMS_TEXT_SHAPE = createFlatShape(["to", "body", "from"]);
const SMS_SHAPE = createFlatShape([...Object.keys(SMS_TEXT_SHAPE.fields), "provider"]);

export const MESSAGES_PER_BATCH_MAX = 1_000;
const SMS_MAX_CHARACTERS = 1_600;

function requireObject(value: unknown, name: string): Record<string, unknown> {
  if (isObject(value)) return value;
  refuseField(name, "an object", value);
}

const readData = (value: unknown): Record<string, unknown> | null =>
  value === undefined || value === null ? null : requireObject(value, "data");

/**
 * Parses an e-mail: `{options, data}`, or an object with the fields of `options` and `data`.
 * @param path path of the message in the request's body, for errors
 * @throws REQUEST_INVALID
 */
export function parseEmail(body: unknown, path = ""): Email {
  const input = requireObject(body, "the message");
  const options = isObject(input["options"]) ? input["options"] : input;
  const data = readData(input["data"]);
  const optionsPathPrefix = options === input ? "" : "options.";
  const to = parseEmailRecipients(options["to"], `${optionsPathPrefix}to`);
  const subjectPath = `${optionsPathPrefix}subject`;
  const subject = requireSingleLineText(
    fillMessageTemplate(requireSingleLineText(options["subject"] ?? "", subjectPath), data, subjectPath, {
      html: false,
    }),
    subjectPath,
  );
  const html = parseOptionalText(options["html"], `${optionsPathPrefix}html`);
  const text = parseOptionalText(options["text"], `${optionsPathPrefix}text`);
  if (html === null && text === null)
    throw new ActionError("REQUEST_INVALID", 'a message needs the field "html" or "text" (got neither)');
  // `from_name` is an older name of `fromName`. If a message has both, `from_name` applies.
  const fromNameField = (options["from_name"] ?? null) === null ? "fromName" : "from_name";
  const email: Email = {
    kind: "email",
    to,
    subject,
    fromName: parseOptionalSingleLineText(options[fromNameField], `${optionsPathPrefix}${fromNameField}`),
    html: html === null ? null : fillMessageTemplate(html, data, `${optionsPathPrefix}html`, { html: true }),
    text: text === null ? null : fillMessageTemplate(text, data, `${optionsPathPrefix}text`, { html: false }),
    headers: parseEmailHeaders(options["headers"], `${optionsPathPrefix}headers`),
    attachments: parseAttachments(options["attachments"], `${optionsPathPrefix}attachments`),
  };
  refuseUnknownFields(input, options === input ? EMAIL_SHAPE : { fields: { options: EMAIL_SHAPE, data: null } }, path);
  return email;
}

/**
 * Parses a text message in the form `{data: {to, body, from}, provider}` or `{to, body, from}`.
 * @param path path of the message in the request's body, for errors
 * @throws REQUEST_INVALID
 */
export function parseSms(input: unknown, path = ""): Sms {
  const messageFields = requireObject(input, "the message");
  const data = isObject(messageFields["data"]) ? messageFields["data"] : messageFields;
  const provider = messageFields["provider"] ?? null;
  if (provider !== null && !SMS_PROVIDERS.some((allowed) => allowed === provider)) {
    refuseField("provider", "twilio or webhook", provider);
  }
  const dataPathPrefix = data === messageFields ? "" : "data.";
  const body = parseOptionalText(data["body"], `${dataPathPrefix}body`);
  if (body === null || body === "" || body.length > SMS_MAX_CHARACTERS) {
    const received = body === null ? "nothing" : `a text of ${body.length} characters`;
    const message = `${dataPathPrefix}body must be a text of 1 to ${SMS_MAX_CHARACTERS} characters (got ${received})`;
    throw new ActionError("REQUEST_INVALID", message);
  }
  const from = parseOptionalSingleLineText(data["from"], `${dataPathPrefix}from`, 40);
  const to = parsePhoneNumber(data["to"], `${dataPathPrefix}to`);
  refuseUnknownFields(
    messageFields,
    data === messageFields ? SMS_SHAPE : { fields: { data: SMS_TEXT_SHAPE, provider: null } },
    path,
  );
  return { kind: "sms", to, body, from, provider: provider as SmsProvider | null };
}

/** Parses a list of messages in one request. @throws REQUEST_INVALID for the first invalid message */
export function parseMessageBatch<T>(body: unknown, parse: (message: unknown, path: string) => T): T[] {
  const list = isObject(body) && Array.isArray(body["messages"]) ? body["messages"] : body;
  if (!Array.isArray(list) || list.length === 0 || list.length > MESSAGES_PER_BATCH_MAX) {
    const message = `the batch must be an array of 1 to ${MESSAGES_PER_BATCH_MAX} messages (got ${describeValue(list)})`;
    throw new ActionError("REQUEST_INVALID", message);
  }
  return list.map((message, index) => parseWithErrorPrefix(`[${index}]`, () => parse(message, `[${index}]`)));
}
