/** Validates hooks that send an e-mail or text message when an entry is written. Builds the message for an entry, but does not send it. */
import { isDeepStrictEqual } from "node:util";
import { ActionError } from "../../errors.js";
import { describeValue, isObject } from "../describe-value.js";
import { SqlStatement } from "../entry-query/statement.js";
import { compileWhere } from "../entry-query/where.js";
import { refuseField, requireListOf } from "../fields.js";
import { isEmailAddress, isPhoneNumber } from "../message-fields.js";
import { type Email, parseEmail, parseSms, type Sms } from "../message-input.js";
import { fillMessageTemplate, listPlaceholderNames } from "../message-template.js";
import { createFlatShape, type Shape } from "../unknown-fields.js";

export const HOOK_VERBS = ["insert", "update"] as const;
export type HookVerb = (typeof HOOK_VERBS)[number];

/** Hook that sends an e-mail or text message, with the fields of this message. Its texts can contain placeholders such as `{{Column}}`. */
export interface SendingHook {
  type: "email" | "sms";
  runOn: readonly HookVerb[];
  where?: Record<string, unknown>;
  [field: string]: unknown;
}

export const SENDING_HOOK_TYPES = ["email", "sms"];

const LISTED_COLUMNS_MAX = 10;

const COMMON_HOOK_FIELDS = ["type", "runOn", "where"];
const MESSAGE_FIELDS = {
  email: ["to", "subject", "from_name", "html", "text", "headers", "attachments"],
  sms: ["to", "body", "from", "provider"],
};
export const createSendingHookShape = (type: SendingHook["type"]): Shape =>
  createFlatShape([...COMMON_HOOK_FIELDS, ...MESSAGE_FIELDS[type]]);

/** Maximum size of a hook in characters of JSON. The limit keeps requests fast, because each request on entries loads all hooks. */
const HOOK_MAX_CHARACTERS = 64 * 1024;

export const isSendingHook = (hook: { type: string }): hook is SendingHook => SENDING_HOOK_TYPES.includes(hook.type);

type FillText = (text: string, html: boolean) => string;

/** Address of a recipient: `template` with placeholders, and `text` without. `path` is its path in the hook, such as `to[0].email`. */
interface FilledAddress {
  path: string;
  template: string;
  text: string;
}

function fillAddresses({ type, to }: SendingHook, fillText: FillText): FilledAddress[] {
  const templates: [path: string, template: unknown][] =
    type === "email" && Array.isArray(to)
      ? to.map((recipient, index) => [`to[${index}].email`, isObject(recipient) ? recipient["email"] : undefined])
      : [["to", to]];
  return templates.flatMap(([path, template]) =>
    typeof template === "string" ? [{ path, template, text: fillText(template, false).trim() }] : [],
  );
}

const EXPECTED_ADDRESS_TEXTS = {
  email: "an e-mail address such as ann@example.com",
  sms: "a phone number such as +15550100",
} as const;

const isValidAddress = (type: SendingHook["type"], text: string): boolean =>
  type === "email" ? isEmailAddress(text) : isPhoneNumber(text);

/** Returns the reason why an address is invalid, without the address, which is personal data; null if all are valid or empty. */
function describeAddressFault(type: SendingHook["type"], addresses: readonly FilledAddress[]): string | null {
  const invalidAddresses = addresses.filter(({ text }) => text !== "" && !isValidAddress(type, text));
  const [first] = invalidAddresses;
  if (first === undefined) return null;
  const columns = listPlaceholderNames(first.template).slice(0, LISTED_COLUMNS_MAX).map(describeValue).join(", ");
  const placeholderText = columns === "" ? "" : ` after its placeholders are replaced (columns: ${columns})`;
  const otherFaultCount = invalidAddresses.length - 1;
  const otherFaults =
    otherFaultCount === 0
      ? ""
      : `; ${otherFaultCount} other ${otherFaultCount === 1 ? "address of this hook is" : "addresses of this hook are"} invalid too`;
  return `${first.path} must be ${EXPECTED_ADDRESS_TEXTS[type]}${placeholderText}${otherFaults}`;
}

/** Rejects an address without placeholders that is neither empty nor valid. @throws REQUEST_INVALID with the path of the address */
function checkFixedAddresses(hook: SendingHook, field: string): void {
  for (const { path, template, text } of fillAddresses(hook, (address) => address)) {
    if (text === "" || isValidAddress(hook.type, text) || listPlaceholderNames(template).length > 0) continue;
    refuseField(`${field}.${path}`, EXPECTED_ADDRESS_TEXTS[hook.type], template);
  }
}

/** Replaces the placeholders in the recipients, and then leaves out recipients with invalid addresses. */
function fillRecipients(to: unknown, fillText: FillText): unknown {
  if (!Array.isArray(to)) return to;
  const filledRecipients = to.map((recipient) => {
    if (!isObject(recipient)) return recipient;
    const fields = ["email", "name"].flatMap((name) =>
      typeof recipient[name] === "string" ? [[name, fillText(recipient[name], false).trim()]] : [],
    );
    return { ...recipient, ...Object.fromEntries(fields) };
  });
  return filledRecipients.filter(
    (recipient) => !isObject(recipient) || typeof recipient["email"] !== "string" || isEmailAddress(recipient["email"]),
  );
}

function buildEmail(
  { to, subject, from_name: fromName, html, text, ...rest }: Record<string, unknown>,
  fillText: FillText,
  path: string,
): Email {
  const fillField = (value: unknown, isHtml: boolean) => (typeof value === "string" ? fillText(value, isHtml) : value);
  const parts = {
    ...{ subject: fillField(subject, false), html: fillField(html, true), text: fillField(text, false) },
    ...(fromName !== undefined && { from_name: fillField(fromName, false) }),
  };
  return parseEmail({ ...rest, ...parts, to: fillRecipients(to, fillText) }, path);
}

function buildSms({ to, body, ...rest }: Record<string, unknown>, fillText: FillText, path: string): Sms {
  const fillField = (value: unknown) => (typeof value === "string" ? fillText(value, false).trim() : value);
  return parseSms({ ...rest, to: fillField(to), body: fillField(body) }, path);
}

function buildMessage(hook: SendingHook, fillText: FillText, path = ""): Email | Sms {
  const { type, runOn: _, where: __, ...fields } = hook;
  return type === "email" ? buildEmail(fields, fillText, path) : buildSms(fields, fillText, path);
}

/** Message of a hook for one entry. `message` is null if no recipient has a valid address. */
export interface HookMessage {
  message: Email | Sms | null;
  /** Reason why the service skips an address that is neither empty nor valid; null if there is none. */
  addressFault: string | null;
}

/**
 * Builds the message of a hook for one entry and all recipients with valid addresses. Recipients with an empty address get no message.
 * @throws REQUEST_INVALID if the message with the entry's values is invalid
 */
export function buildHookMessage(hook: SendingHook, data: Readonly<Record<string, unknown>>): HookMessage {
  const fillText: FillText = (text, html) => fillMessageTemplate(text, data, "a text of the message", { html });
  const addresses = fillAddresses(hook, fillText);
  const hasRecipient = addresses.some(({ text }) => isValidAddress(hook.type, text));
  return {
    message: hasRecipient ? buildMessage(hook, fillText) : null,
    addressFault: describeAddressFault(hook.type, addresses),
  };
}

/** Returns the texts of a hook that can contain placeholders, each with its path in the hook. */
function listTemplateTexts({ type, to, ...fields }: SendingHook): [path: string, text: unknown][] {
  const names = type === "email" ? ["subject", "from_name", "html", "text"] : ["body"];
  const texts = names.map((name): [string, unknown] => [name, fields[name]]);
  if (!Array.isArray(to)) return [["to", to], ...texts];
  const recipients = to.flatMap((recipient, index): [string, unknown][] =>
    isObject(recipient) ? ["email", "name"].map((name) => [`to[${index}].${name}`, recipient[name]]) : [],
  );
  return [...recipients, ...texts];
}

/**
 * Rejects placeholders for columns that the data source does not have: they would always be empty. Accepts all placeholders while the data
 * source's list of columns is empty, and those of hooks that are already stored.
 * @throws REQUEST_INVALID with the path of the field and the column
 */
export function checkHookPlaceholders(
  hooks: readonly { type: string }[],
  columns: readonly string[],
  storedHooks: readonly object[] = [],
): void {
  if (columns.length === 0) return;
  const knownColumns = new Set(columns);
  const isKnown = (name: string) => knownColumns.has(name) || knownColumns.has(name.split(".")[0]!);
  for (const [at, hook] of hooks.entries()) {
    const isStored = storedHooks.some((stored) => isDeepStrictEqual(stored, hook));
    for (const [path, text] of isSendingHook(hook) && !isStored ? listTemplateTexts(hook) : []) {
      const unknownPlaceholder =
        typeof text === "string" ? listPlaceholderNames(text).find((name) => !isKnown(name)) : undefined;
      if (unknownPlaceholder === undefined) continue;
      const ellipsis = columns.length > LISTED_COLUMNS_MAX ? ", …" : "";
      const namedColumns = columns.slice(0, LISTED_COLUMNS_MAX).map(describeValue).join(", ") + ellipsis;
      throw new ActionError(
        "REQUEST_INVALID",
        `hooks[${at}].${path} has a placeholder for a column that the data source does not have (got ${describeValue(unknownPlaceholder)}); its columns are ${namedColumns}`,
      );
    }
  }
}

const PLACEHOLDER_PATTERN = /\{\{[^{}]+\}\}/g;

/**
 * Replaces placeholders by sample values, so that a message can be validated without an entry. A text that is just one placeholder becomes
 * `replacement`, a valid address. In any other text, each placeholder becomes "1".
 */
const fillWithSamples =
  (replacement: string): FillText =>
  (text) =>
    text.replace(PLACEHOLDER_PATTERN, (placeholder) => (placeholder === text.trim() ? replacement : "1"));

/** Validates a hook that sends messages. @throws REQUEST_INVALID whose message starts with `field` */
export function checkSendingHook(hook: Record<string, unknown>, field: string): void {
  const type = hook["type"] as SendingHook["type"];
  requireListOf(HOOK_VERBS, hook["runOn"], `${field}.runOn`);
  const hookLength = JSON.stringify(hook).length;
  if (hookLength > HOOK_MAX_CHARACTERS)
    refuseField(field, `at most ${HOOK_MAX_CHARACTERS} characters of JSON`, hookLength);
  try {
    if (hook["where"] !== undefined) {
      compileWhere(
        hook["where"],
        { documentSql: "doc", entryAlias: "e", canSeeColumn: () => true },
        new SqlStatement(),
      );
    }
    checkFixedAddresses(hook as SendingHook, field);
    buildMessage(hook as SendingHook, fillWithSamples(type === "email" ? "a@example.com" : "+15550100"), field);
  } catch (error) {
    if (!(error instanceof ActionError) || error.message.startsWith(field)) throw error;
    throw new ActionError("REQUEST_INVALID", `${field}: ${error.message}`);
  }
}
