/**
 * Validates the app's setting for verification codes, which prove that a user owns an e-mail address or phone number,
 * and the requests of pages for codes.
 */

import { ActionError } from "../errors.js";
import { describeValue, isObject, kindOf } from "./described.js";
import { refuseField } from "./fields.js";
import { isEmailAddress, phoneNumber } from "./message-fields.js";
import { parseEmail, parseSms } from "./message-input.js";
import { flatShape } from "./unknown-fields.js";

/** Private setting that enables verification. */
export const VERIFY_SETTING = "_verify";

export const VERIFIED_BY = ["email", "sms"] as const;
/** How a code is sent: by e-mail or by text message. */
export type VerifiedBy = (typeof VERIFIED_BY)[number];

export interface VerificationRules {
  /** ID or name of the data source that contains the users. */
  dataSource: string | number;
  /** Columns with the users' e-mail addresses and phone numbers; null for a kind that the app does not use. */
  columns: Record<VerifiedBy, string | null>;
  /** True if a password is not enough to sign in. */
  secondFactor: boolean;
  subject: string;
  /** Text of the message; `{{code}}` is replaced by the code. */
  text: string;
}

/** Request of a page. Without `code`, a code is sent to the address, or to that of the signed-in user. With `code`, the code is checked. */
export interface VerificationRequest {
  by: VerifiedBy;
  /** Address; null for the second factor of the user who is signed in. */
  address: string | null;
  code: string | null;
}

const CODE_SUBJECT = "Your code";
const TEXT =
  "Your code is {{code}}. It is good for ten minutes. If you did not ask for it, someone mistyped an address.";
const LINE_MAX = 200;
const TEXT_MAX = 1_000;

function setting(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value;
  throw new ActionError("SETTINGS_INVALID", `the setting ${VERIFY_SETTING} must be an object (got ${kindOf(value)})`);
}

function optionalText(fields: Record<string, unknown>, name: string, max: number): string | null {
  const value = fields[name];
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && value !== "" && value.length <= max) return value;
  const expected = `a text of at most ${max} characters`;
  throw new ActionError("SETTINGS_INVALID", `the setting ${VERIFY_SETTING}: ${name} must be ${expected}`);
}

/** Returns the rules in the setting; null if the app has no verification. @throws SETTINGS_INVALID naming the field */
export function verificationRules(value: unknown): VerificationRules | null {
  if (value === undefined || value === null) return null;
  const fields = setting(value);
  const { dataSource, secondFactor = false } = fields;
  const isNamed = (typeof dataSource === "string" && dataSource !== "") || Number.isSafeInteger(dataSource);
  const settingError = (text: string) => new ActionError("SETTINGS_INVALID", `the setting ${VERIFY_SETTING}: ${text}`);
  if (!isNamed) throw settingError("dataSource must be the id or the name of a data source");
  if (typeof secondFactor !== "boolean") throw settingError("secondFactor must be true or false");
  const columns = { email: optionalText(fields, "email", LINE_MAX), sms: optionalText(fields, "sms", LINE_MAX) };
  if (columns.email === null && columns.sms === null) throw settingError("email or sms must name a column");
  if (secondFactor && columns.sms === null) throw settingError("a secondFactor needs sms, the column of phone numbers");
  const text = optionalText(fields, "text", TEXT_MAX) ?? TEXT;
  if (!text.includes("{{code}}")) throw settingError("text must hold {{code}}");
  const subject = optionalText(fields, "subject", LINE_MAX) ?? CODE_SUBJECT;
  return { dataSource: dataSource as string | number, columns, secondFactor, subject, text };
}

export const VERIFICATION_SHAPE = flatShape(["email", "sms", "secondFactor", "code"]);

function codeOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const bareNumber = typeof value === "string" && value.length <= 20 ? value.replaceAll(/[ -]/g, "") : "";
  if (/^\d{6}$/.test(bareNumber)) return bareNumber;
  throw new ActionError("REQUEST_INVALID", "code must be the six digits that were sent");
}

/** @throws REQUEST_INVALID naming the field */
export function verificationRequest(body: unknown): VerificationRequest {
  const input = isObject(body) ? body : {};
  const { email = null, sms = null, secondFactor = null } = input;
  const namedRules = [email, sms, secondFactor].filter((rule) => rule !== null);
  if (namedRules.length !== 1) {
    const message = `one of email, sms and secondFactor is required (got ${describeValue(body)})`;
    throw new ActionError("REQUEST_INVALID", message);
  }
  const code = codeOf(input["code"]);
  if (secondFactor !== null) {
    if (secondFactor !== "sms") throw new ActionError("REQUEST_INVALID", 'secondFactor must be "sms"');
    return { by: "sms", address: null, code };
  }
  if (email === null) {
    phoneNumber(sms, "sms");
    return { by: "sms", address: sms as string, code };
  }
  const address = typeof email === "string" ? email.trim() : "";
  if (isEmailAddress(address)) return { by: "email", address, code };
  refuseField("email", "an address such as ann@example.com", email);
}

/** Returns the message that contains a code. @throws ActionError REQUEST_INVALID for an address to which no message can be sent */
export function codeMessage({ subject, text }: VerificationRules, channel: VerifiedBy, address: string, code: string) {
  const data = { code };
  if (channel === "email") return parseEmail({ options: { to: [{ email: address }], subject, text }, data });
  return parseSms({ to: address, body: text.replaceAll("{{code}}", code) });
}
