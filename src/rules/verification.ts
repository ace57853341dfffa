/**
 * Validates the setting `_verify`, and requests for verification codes. With a code, a user proves to own an e-mail address or phone
 * number.
 */

import { ActionError } from "../errors.js";
import { describeType, describeValue, isObject } from "./describe-value.js";
import { refuseField } from "./fields.js";
import { isEmailAddress, parsePhoneNumber } from "./message-fields.js";
import { parseEmail, parseSms } from "./message-input.js";
import { createFlatShape } from "./unknown-fields.js";

export const VERIFICATION_SETTING_KEY = "_verify";

export const VERIFICATION_CHANNELS = ["email", "sms"] as const;
export type VerificationChannel = (typeof VERIFICATION_CHANNELS)[number];

export interface VerificationRules {
  dataSource: string | number;
  /** Column with the users' e-mail addresses or phone numbers; null if the app does not use the channel. */
  columns: Record<VerificationChannel, string | null>;
  secondFactor: boolean;
  subject: string;
  /** Text of the message to the user, with the placeholder `{{code}}`. */
  text: string;
}

/** Request of a page. Without `code`, the service sends a code to the user. With `code`, it checks the code. */
export interface VerificationRequest {
  by: VerificationChannel;
  /** E-mail address or phone number to verify; null for the second factor, which uses the phone number in the user's entry. */
  address: string | null;
  code: string | null;
}

const DEFAULT_SUBJECT = "Your code";
const DEFAULT_MESSAGE_TEXT =
  "Your code is {{code}}. It is valid for ten minutes. If you did not request a code, you can ignore this message.";
const LINE_MAX_CHARACTERS = 200;
const TEXT_MAX_CHARACTERS = 1_000;

/** Creates the error for an invalid setting. @param fault text after the setting's key, such as ".sms must be …" */
const createSettingError = (fault: string): ActionError =>
  new ActionError("SETTINGS_INVALID", `the setting ${VERIFICATION_SETTING_KEY}${fault}`);

function requireSettingObject(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value;
  throw createSettingError(` must be an object (got ${describeType(value)})`);
}

function readOptionalText(fields: Record<string, unknown>, name: string, max: number): string | null {
  const value = fields[name];
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && value !== "" && value.length <= max) return value;
  throw createSettingError(`.${name} must be a text of 1 to ${max} characters (got ${describeType(value)})`);
}

/** Parses the setting `_verify`; null if the app has no such setting. @throws SETTINGS_INVALID with the name of the field */
export function parseVerificationRules(value: unknown): VerificationRules | null {
  if (value === undefined || value === null) return null;
  const fields = requireSettingObject(value);
  const { dataSource, secondFactor = false } = fields;
  const isNamed = (typeof dataSource === "string" && dataSource !== "") || Number.isSafeInteger(dataSource);
  if (!isNamed)
    throw createSettingError(
      `.dataSource must be the ID or the name of a data source (got ${describeType(dataSource)})`,
    );
  if (typeof secondFactor !== "boolean")
    throw createSettingError(`.secondFactor must be true or false (got ${describeType(secondFactor)})`);
  const columns = {
    email: readOptionalText(fields, "email", LINE_MAX_CHARACTERS),
    sms: readOptionalText(fields, "sms", LINE_MAX_CHARACTERS),
  };
  if (columns.email === null && columns.sms === null)
    throw createSettingError(' must contain the name of a column in "email" or "sms" (got neither)');
  if (secondFactor && columns.sms === null)
    throw createSettingError('.secondFactor can be true only if "sms" names the column with the phone numbers');
  const text = readOptionalText(fields, "text", TEXT_MAX_CHARACTERS) ?? DEFAULT_MESSAGE_TEXT;
  if (!text.includes("{{code}}")) throw createSettingError(".text must contain {{code}}");
  const subject = readOptionalText(fields, "subject", LINE_MAX_CHARACTERS) ?? DEFAULT_SUBJECT;
  return { dataSource: dataSource as string | number, columns, secondFactor, subject, text };
}

export const VERIFICATION_SHAPE = createFlatShape(["email", "sms", "secondFactor", "code"]);

function readCode(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const bareNumber = typeof value === "string" && value.length <= 20 ? value.replaceAll(/[ -]/g, "") : "";
  if (/^\d{6}$/.test(bareNumber)) return bareNumber;
  throw new ActionError(
    "REQUEST_INVALID",
    `code must be the six digits that the service sent (got ${describeType(value)})`,
  );
}

export function parseVerificationRequest(body: unknown): VerificationRequest {
  const input = isObject(body) ? body : {};
  const { email = null, sms = null, secondFactor = null } = input;
  const namedRules = [email, sms, secondFactor].filter((rule) => rule !== null);
  if (namedRules.length !== 1) {
    const message = `exactly one of "email", "sms" and "secondFactor" is required (got ${describeValue(body)})`;
    throw new ActionError("REQUEST_INVALID", message);
  }
  const code = readCode(input["code"]);
  if (secondFactor !== null) {
    if (secondFactor !== "sms") refuseField("secondFactor", '"sms"', secondFactor);
    return { by: "sms", address: null, code };
  }
  if (email === null) {
    parsePhoneNumber(sms, "sms");
    return { by: "sms", address: sms as string, code };
  }
  const address = typeof email === "string" ? email.trim() : "";
  if (isEmailAddress(address)) return { by: "email", address, code };
  refuseField("email", "an e-mail address such as ann@example.com", email);
}

/** Builds the message that contains the code. @throws ActionError REQUEST_INVALID if the address is invalid */
export function buildVerificationMessage(
  { subject, text }: VerificationRules,
  channel: VerificationChannel,
  address: string,
  code: string,
) {
  const data = { code };
  if (channel === "email") return parseEmail({ to: [{ email: address }], subject, text, data });
  return parseSms({ to: address, body: text.replaceAll("{{code}}", code) });
}
