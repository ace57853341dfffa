/** Validates alert rules. Each error message contains the name of the invalid field. */

import { ActionError } from "../errors.js";
import { isObject, unstorableCharacterIndex } from "./described.js";
import { refuseField } from "./fields.js";
import { isEmailAddress } from "./message-fields.js";
import { flatShape, refuseUnknownFields } from "./unknown-fields.js";

export const ALERT_CONDITIONS = ["failed", "silent", "skipped", "queued"] as const;
export type AlertCondition = (typeof ALERT_CONDITIONS)[number];
export const ALERT_CHANNELS = ["email", "webhook", "slack"] as const;
export type AlertChannel = (typeof ALERT_CHANNELS)[number];

const NAME_MAX_CHARACTERS = 100;
const RUNS_MAX = 100;
/** A month of 31 days. */
const MINUTES_MAX = 44_640;
const MINUTES_DEFAULT = 60;
const RECIPIENTS_MAX = 10;
const READ_ONLY = ["id", "appId", "firing", "createdAt", "updatedAt"];
const PROTECTED_KEY = /^__[^_]?[\s\S]{0,509}$/;

/** An alert rule as it is stored. Fields that its condition and channel do not use have their defaults. */
export interface AlertInput {
  name: string;
  condition: AlertCondition;
  /** ID of a draft; null if the rule is for the whole app. */
  actionId: number | null;
  /** For the condition `failed`: the rule fires if at least `failures` of the last `of` runs failed. */
  failures: number;
  of: number;
  /** For the condition `silent`: minutes without a successful run. For `queued`: age of the oldest queued run in minutes. */
  minutes: number;
  channel: AlertChannel;
  /** E-mail addresses. */
  to: string[];
  /** Key of the protected setting that contains the URL of the webhook; null for the channel `email`. */
  setting: string | null;
  enabled: boolean;
}

function requireOneOf<T extends string>(value: unknown, allowed: readonly T[], field: string): T {
  return allowed.find((word) => word === value) ?? refuseField(field, `one of ${allowed.join(", ")}`, value);
}

function wholeNumberIn(value: unknown, field: string, min: number, max: number): number {
  const isValid = Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
  return isValid ? (value as number) : refuseField(field, `a whole number from ${min} to ${max}`, value);
}

function nameIn(value: unknown): string {
  const text = typeof value === "string" ? value.trim() : "";
  const isValid =
    text !== "" && text.length <= NAME_MAX_CHARACTERS && unstorableCharacterIndex(text) < 0 && !/\p{Cc}/u.test(text);
  return isValid ? text : refuseField("name", `a line of 1 to ${NAME_MAX_CHARACTERS} characters`, value);
}

function recipientsIn(value: unknown): string[] {
  const isValid = Array.isArray(value) && value.length > 0 && value.length <= RECIPIENTS_MAX;
  if (!isValid) return refuseField("to", `a list of 1 to ${RECIPIENTS_MAX} e-mail addresses`, value);
  return value.map((element: unknown, at) =>
    typeof element === "string" && isEmailAddress(element)
      ? element
      : refuseField(`to[${at}]`, "an e-mail address", element),
  );
}

function settingIn(value: unknown): string {
  const isValid = typeof value === "string" && PROTECTED_KEY.test(value) && unstorableCharacterIndex(value) < 0;
  return isValid ? value : refuseField("setting", "the key of a protected setting, such as __alerts", value);
}

/**
 * Validates a rule. A field that is absent or null gets the value of `before`, or else the default.
 * @throws ActionError REQUEST_INVALID
 */
export function alertInput(body: unknown, before: Partial<AlertInput> = {}): AlertInput {
  if (!isObject(body)) return refuseField("the rule", "an object", body);
  const fieldValue = <K extends keyof AlertInput>(field: K, fallback?: unknown): unknown =>
    field === "actionId" && body[field] === null ? null : (body[field] ?? before[field] ?? fallback);
  const condition = requireOneOf(fieldValue("condition"), ALERT_CONDITIONS, "condition");
  const channel = requireOneOf(fieldValue("channel"), ALERT_CHANNELS, "channel");
  const actionId = fieldValue("actionId", null);
  const failures = wholeNumberIn(fieldValue("failures", 1), "failures", 1, RUNS_MAX);
  const enabled = fieldValue("enabled", true);
  if (typeof enabled !== "boolean") return refuseField("enabled", "true or false", enabled);
  if (condition === "queued" && actionId !== null)
    return refuseField("actionId", 'absent if "condition" is "queued", which is for the whole app', actionId);
  const input: AlertInput = {
    name: nameIn(fieldValue("name")),
    condition,
    actionId: actionId === null ? null : wholeNumberIn(actionId, "actionId", 1, Number.MAX_SAFE_INTEGER),
    failures,
    of: wholeNumberIn(fieldValue("of", failures), "of", failures, RUNS_MAX),
    minutes: wholeNumberIn(fieldValue("minutes", MINUTES_DEFAULT), "minutes", 1, MINUTES_MAX),
    channel,
    to: channel === "email" ? recipientsIn(fieldValue("to")) : [],
    setting: channel === "email" ? null : settingIn(fieldValue("setting")),
    enabled,
  };
  refuseUnknownFields(body, flatShape(Object.keys(input), READ_ONLY));
  return input;
}

/** Destination of a rule's webhook. */
export interface AlertDestination {
  url: URL;
  /** Secret with which the webhook is signed; null for Slack, whose URL is the secret. */
  secret: string | null;
}

/** @throws ActionError REQUEST_INVALID if the setting is not valid. The message never contains the value of the setting. */
export function alertDestination(
  key: string,
  value: unknown,
  channel: AlertChannel,
  { allowHttp }: { allowHttp: boolean },
): AlertDestination {
  const invalidSetting = (expected: string) =>
    new ActionError("REQUEST_INVALID", `the setting ${key} must contain ${expected}`);
  const fields = typeof value === "string" ? { url: value } : value;
  if (!isObject(fields)) throw invalidSetting(channel === "slack" ? "the URL of Slack's webhook" : "{url, secret}");
  const { url: address, secret } = fields;
  const url = typeof address === "string" ? URL.parse(address) : null;
  const isValid = url && (url.protocol === "https:" || (allowHttp && url.protocol === "http:"));
  if (!isValid || url.username !== "" || url.password !== "") throw invalidSetting('"url" with an https URL');
  if (channel === "slack") return { url, secret: null };
  if (typeof secret !== "string" || secret.length < 8)
    throw invalidSetting('"secret" with 8 characters or more, in addition to "url"');
  return { url, secret };
}
