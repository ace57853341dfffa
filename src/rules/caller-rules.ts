/**
 * Decides which callers an access rule of entries or files allows: everyone, signed-in users, or users whose columns
 * have certain values. Also compares columns of entries with the conditions in such rules.
 */

import { holdsText } from "./comparable-text.js";
import { isObject, unstorableCharacterIndex } from "./described.js";
import { refuseField } from "./fields.js";
import { flatShape, refuseUnknownFields } from "./unknown-fields.js";

/** Value with which a condition can compare. Objects are not allowed, because they could contain query operators. */
export type ScalarValue = string | number | boolean;

/** Condition on a value. Every operator that is present must match. A text can contain `{{user.Column}}`. */
export interface ValueTest {
  /** Equals the whole value: a list never equals one of its elements. */
  equals?: ScalarValue;
  /** Differs from the value and from every element of a list. */
  notequals?: ScalarValue;
  /** Text that the value, or one text of a list, must contain; case is ignored. */
  contains?: string;
}

/** Conditions by column. All of them must match. */
export type ColumnTests = Readonly<Record<string, ValueTest>>;

/** Rule that allows every caller. */
export const EVERYBODY_RULE = "all";

export type CallerRule = "all" | "loggedIn" | { user: ColumnTests };

/** Data of the page's user: the entry with which the user signed in. */
export type UserData = Readonly<Record<string, unknown>>;

const TEST_SHAPE = flatShape(["equals", "notequals", "contains"]);
const ALLOW_SHAPE = flatShape(["user"]);
const COLUMNS_MAX = 50;
const COLUMN_MAX_CHARACTERS = 255;
const VALUE_MAX_CHARACTERS = 1_000;

const isText = (value: unknown, max: number): value is string =>
  typeof value === "string" && value !== "" && value.length <= max && unstorableCharacterIndex(value) < 0;

/** @throws REQUEST_INVALID naming the field */
export function checkColumn(value: unknown, field: string): void {
  if (!isText(value, COLUMN_MAX_CHARACTERS)) refuseField(field, "the name of a column", value);
}

function checkTest(test: unknown, field: string): void {
  const names = isObject(test) ? Object.keys(test) : [];
  if (names.length === 0) refuseField(field, 'an object with "equals", "notequals" or "contains"', test);
  refuseUnknownFields(test, TEST_SHAPE, field);
  for (const [name, value] of Object.entries(test as object)) {
    const isPlain = name !== "contains" && (typeof value === "boolean" || Number.isFinite(value));
    if (isPlain || isText(value, VALUE_MAX_CHARACTERS)) continue;
    const scalarText = name === "contains" ? "" : ", a number or a boolean";
    refuseField(`${field}.${name}`, `a text of 1 to ${VALUE_MAX_CHARACTERS} characters${scalarText}`, value);
  }
}

/** @throws REQUEST_INVALID naming the field */
export function checkTests(value: unknown, field: string): asserts value is ColumnTests {
  const columns = isObject(value) ? Object.keys(value) : [];
  if (columns.length === 0 || columns.length > COLUMNS_MAX) {
    refuseField(field, `an object with conditions for 1 to ${COLUMNS_MAX} columns`, value);
  }
  for (const column of columns) {
    checkColumn(column, field);
    checkTest((value as Record<string, unknown>)[column], `${field}.${column}`);
  }
}

/** @throws REQUEST_INVALID naming the field */
export function checkAllow(value: unknown, field: string): asserts value is CallerRule {
  if (value === EVERYBODY_RULE || value === "loggedIn") return;
  if (!isObject(value) || !Object.hasOwn(value, "user")) {
    refuseField(field, '"all", "loggedIn" or {user: {Column: {equals, notequals or contains}}}', value);
  }
  checkTests(value["user"], `${field}.user`);
  refuseUnknownFields(value, ALLOW_SHAPE, field);
}

/** Matches a placeholder such as `{{user.Email}}`. Column names contain no braces, so that matching takes linear time. */
const USER_PLACEHOLDER = /\{\{\s*user\.([^{}]+)\}\}/g;
const PLACEHOLDER_START = /\{\{\s*user\./;
/** Maximum number of parsed templates in the cache. One visitor's request may use hundreds of them. */
const PARSED_MAX = 2_000;

/** Text of a rule, split into literal parts and columns of the user; null if a placeholder is invalid. */
type UserTemplate = readonly (string | { column: string })[] | null;

function parseTemplate(text: string): UserTemplate {
  const parts: (string | { column: string })[] = [];
  let at = 0;
  for (const match of text.matchAll(USER_PLACEHOLDER)) {
    const name = match[1]!.trimEnd();
    const column = name.startsWith("[") && name.endsWith("]") && name.length > 2 ? name.slice(1, -1) : name;
    parts.push(text.slice(at, match.index), { column });
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  const isRead = parts.every((part) => typeof part !== "string" || !PLACEHOLDER_START.test(part));
  return isRead ? parts.filter((part) => part !== "") : null;
}

const parsedTemplates = new Map<string, UserTemplate>();

function templateOf(text: string): UserTemplate {
  const parsedBefore = parsedTemplates.get(text);
  if (parsedBefore !== undefined) return parsedBefore;
  const template = parseTemplate(text);
  if (parsedTemplates.size >= PARSED_MAX) parsedTemplates.delete(parsedTemplates.keys().next().value!);
  parsedTemplates.set(text, template);
  return template;
}

function isScalar(value: unknown): value is ScalarValue {
  return (typeof value === "string" && value !== "") || typeof value === "number" || typeof value === "boolean";
}

/** Returns the value of the user's column. undefined if the value cannot be compared; then the rule does not match. */
function userValue(user: UserData | null, column: string): ScalarValue | undefined {
  const value = user !== null && Object.hasOwn(user, column) ? user[column] : undefined;
  return isScalar(value) ? value : undefined;
}

/** Replaces placeholders by the user's values. If the text is only a placeholder, the result has the type of the user's value. */
function fillTemplate(value: ScalarValue, user: UserData | null): ScalarValue | undefined {
  if (typeof value !== "string") return value;
  const template = templateOf(value);
  if (template === null) return undefined;
  const values = template.map((part) => (typeof part === "string" ? part : userValue(user, part.column)));
  if (values.includes(undefined)) return undefined;
  return values.length === 1 ? values[0] : values.join("");
}

function filledTest(test: ValueTest, user: UserData | null): ValueTest | null {
  const entries = Object.entries(test).map(
    ([name, value]) => [name, fillTemplate(value as ScalarValue, user)] as const,
  );
  if (entries.some(([, value]) => value === undefined)) return null;
  return Object.fromEntries(entries.map(([name, value]) => [name, name === "contains" ? String(value) : value]));
}

/** Returns the conditions with the user's values instead of placeholders; null if the user has no such value. */
export function filledTests(tests: ColumnTests, user: UserData | null): ColumnTests | null {
  const entries = Object.entries(tests).map(([column, test]) => [column, filledTest(test, user)] as const);
  return entries.some(([, test]) => test === null) ? null : (Object.fromEntries(entries) as ColumnTests);
}

/** True if the value equals `expected`, or is a list that contains `expected`. */
const holdsValue = (value: unknown, expected: ScalarValue): boolean =>
  value === expected || (Array.isArray(value) && value.includes(expected));

function holdsPart(value: unknown, part: string): boolean {
  if (Array.isArray(value)) return value.some((element) => holdsPart(element, part));
  return typeof value === "string" && holdsText(value, part);
}

const valueIn = (data: UserData, column: string): unknown => (Object.hasOwn(data, column) ? data[column] : undefined);

/** True if the data meet every condition. As in a `where` filter, a missing column differs from every value. */
export function meetsTests(data: UserData, tests: ColumnTests): boolean {
  return Object.entries(tests).every(([column, { equals, notequals, contains }]) => {
    const value = valueIn(data, column);
    // A list never equals a value, so that an entry whose owners are a list does not belong to each of them.
    if (equals !== undefined && value !== equals) return false;
    if (notequals !== undefined && holdsValue(value, notequals)) return false;
    return contains === undefined || holdsPart(value, contains);
  });
}

/**
 * True if the rule allows this user, or anonymous callers if `user` is null. A user with an empty column never meets a
 * condition on this column, not even `notequals`.
 */
export function allowsUser(allow: CallerRule, user: UserData | null): boolean {
  const isForAll = allow === EVERYBODY_RULE;
  if (isForAll || user === null) return isForAll;
  if (allow === "loggedIn") return true;
  const tests = filledTests(allow.user, user);
  if (tests === null || Object.keys(tests).some((column) => (valueIn(user, column) ?? null) === null)) return false;
  return meetsTests(user, tests);
}
