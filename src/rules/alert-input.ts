/** Validates alert rules, and the settings with the URLs of their webhooks. Each error message names the invalid field or setting. */

import { ActionError } from "../errors.js";
import { findUnstorableCharacter, isObject } from "./describe-value.js";
import { refuseField } from "./fields.js";
import { isEmailAddress } from "./message-fields.js";
import { createFlatShape, refuseUnknownFields } from "./unknown-fields.js";

export const ALERT_CONDITIONS = ["failed", "silent", "skipped", "queued"] as const;
export type AlertCondition = (typeof ALERT_CONDITIONS)[number];
export const ALERT_CHANNELS = ["email", "webhook", "slack"] as const;
export type AlertChannel = (typeof ALERT_CHANNELS)[number];

const NAME_MAX_CHARACTERS = 100;
const COUNTED_RUNS_MAX = 100;
const MINUTES_MAX = 44_640;
const MINUTES_DEFAULT = 60;
const RECIPIENTS_MAX = 10;
const READ_ONLY_FIELDS = ["id", "appId", "firing", "createdAt", "updatedAt"];
const PROTECTED_KEY_PATTERN = /^__[^_]?[\s\S]{0,509}$/;

/** Alert rule as the database stores it. `failures`, `of` and `minutes` have no effect if the condition does not use them. */
export interface AlertRuleFields {
  name: string;
  condition: AlertCondition;
  /** ID of the action that the rule watches; null if the rule watches the whole app. */
  actionId: number | null;
  /** For the condition `failed`: the rule fires if at least `failures` of the last `of` runs failed. */
  failures: number;
  of: number;
  /** Minutes without a successful run (condition `silent`), or age of the oldest queued run (`queued`), at which the rule fires. */
  minutes: number;
  channel: AlertChannel;
  to: string[];
  /** Key of the protected setting (its value is never in a response) that contains the URL of the webhook; null for the channel `email`. */
  setting: string | null;
  enabled: boolean;
}

/**
 * Text for error messages: the expected `actionId` of a rule with the condition `queued`. It says null, because in an update, an absent
 * `actionId` would keep the stored action.
 */
export const QUEUED_ACTION_EXPECTATION = 'null if "condition" is "queued", which is for the whole app';

function requireOneOf<T extends string>(value: unknown, allowed: readonly T[], field: string): T {
  return allowed.find((word) => word === value) ?? refuseField(field, `one of ${allowed.join(", ")}`, value);
}

function requireWholeNumber(value: unknown, field: string, min: number, max: number): number {
  const isValid = Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
  return isValid ? (value as number) : refuseField(field, `a whole number from ${min} to ${max}`, value);
}

function requireName(value: unknown): string {
  const text = typeof value === "string" ? value.trim() : "";
  const isValid =
    text !== "" && text.length <= NAME_MAX_CHARACTERS && findUnstorableCharacter(text) < 0 && !/\p{Cc}/u.test(text);
  return isValid ? text : refuseField("name", `one line of text with 1 to ${NAME_MAX_CHARACTERS} characters`, value);
}

function requireRecipients(value: unknown): string[] {
  const isValid = Array.isArray(value) && value.length > 0 && value.length <= RECIPIENTS_MAX;
  if (!isValid) return refuseField("to", `an array of 1 to ${RECIPIENTS_MAX} e-mail addresses`, value);
  return value.map((element: unknown, at) =>
    typeof element === "string" && isEmailAddress(element)
      ? element
      : refuseField(`to[${at}]`, "an e-mail address", element),
  );
}

function requireProtectedKey(value: unknown): string {
  const isValid = typeof value === "string" && PROTECTED_KEY_PATTERN.test(value) && findUnstorableCharacter(value) < 0;
  return isValid
    ? value
    : refuseField("setting", "the key of a protected setting: a text that starts with __, such as __alerts", value);
}

/**
 * Validates an alert rule. A field that is absent or null keeps its value in `current` (the rule before an update), or gets its default;
 * but if `actionId` is null, the rule is for the whole app.
 * @throws ActionError REQUEST_INVALID
 */
export function parseAlertRule(body: unknown, current: Partial<AlertRuleFields> = {}): AlertRuleFields {
  if (!isObject(body)) return refuseField("the rule", "an object", body);
  const getFieldValue = <K extends keyof AlertRuleFields>(field: K, fallback?: unknown): unknown =>
    field === "actionId" && body[field] === null ? null : (body[field] ?? current[field] ?? fallback);
  const condition = requireOneOf(getFieldValue("condition"), ALERT_CONDITIONS, "condition");
  const channel = requireOneOf(getFieldValue("channel"), ALERT_CHANNELS, "channel");
  const actionId = getFieldValue("actionId", null);
  const failures = requireWholeNumber(getFieldValue("failures", 1), "failures", 1, COUNTED_RUNS_MAX);
  const enabled = getFieldValue("enabled", true);
  if (typeof enabled !== "boolean") return refuseField("enabled", "true or false", enabled);
  if (condition === "queued" && actionId !== null) return refuseField("actionId", QUEUED_ACTION_EXPECTATION, actionId);
  const input: AlertRuleFields = {
    name: requireName(getFieldValue("name")),
    condition,
    actionId: actionId === null ? null : requireWholeNumber(actionId, "actionId", 1, Number.MAX_SAFE_INTEGER),
    failures,
    of: requireWholeNumber(getFieldValue("of", failures), "of", failures, COUNTED_RUNS_MAX),
    minutes: requireWholeNumber(getFieldValue("minutes", MINUTES_DEFAULT), "minutes", 1, MINUTES_MAX),
    channel,
    to: channel === "email" ? requireRecipients(getFieldValue("to")) : [],
    setting: channel === "email" ? null : requireProtectedKey(getFieldValue("setting")),
    enabled,
  };
  refuseUnknownFields(body, createFlatShape(Object.keys(input), READ_ONLY_FIELDS));
  return input;
}

export interface AlertWebhook {
  url: URL;
  /** Secret with which the service signs its request to a webhook; null for Slack, where the URL itself is the secret. */
  secret: string | null;
}

/**
 * Parses the protected setting `key`, which contains the URL of a webhook.
 * @throws ActionError REQUEST_INVALID; the message never contains the setting's value
 */
export function parseAlertWebhook(
  key: string,
  value: unknown,
  channel: AlertChannel,
  { allowHttp }: { allowHttp: boolean },
): AlertWebhook {
  const createSettingError = (expected: string) =>
    new ActionError("REQUEST_INVALID", `the setting ${key} must contain ${expected}`);
  const fields = typeof value === "string" ? { url: value } : value;
  if (!isObject(fields)) throw createSettingError(channel === "slack" ? "the URL of Slack's webhook" : "{url, secret}");
  const { url: address, secret } = fields;
  const url = typeof address === "string" ? URL.parse(address) : null;
  const isValid = url && (url.protocol === "https:" || (allowHttp && url.protocol === "http:"));
  if (!isValid || url.username !== "" || url.password !== "")
    throw createSettingError(
      `${channel === "slack" ? "the URL of Slack's webhook," : '"url" with'} ${allowHttp ? "an http or https URL" : "an https URL"} without credentials`,
    );
  if (channel === "slack") return { url, secret: null };
  if (typeof secret !== "string" || secret.length < 8)
    throw createSettingError('"secret" with 8 characters or more, in addition to "url"');
  return { url, secret };
}
