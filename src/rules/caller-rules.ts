/**
 * Decides which callers an access rule allows: everyone, signed-in app users, or app users whose columns have certain values. Also checks
 * if an entry meets the conditions of an access rule.
 */

import { containsTextFolded } from "./comparable-text.js";
import { findUnstorableCharacter, isObject } from "./describe-value.js";
import { refuseField } from "./fields.js";
import { createFlatShape, refuseUnknownFields } from "./unknown-fields.js";

/** Value with which a condition of an access rule can compare. Objects are not allowed, because they could contain query operators. */
export type ScalarValue = string | number | boolean;

/**
 * Condition on the value of a column. The value must meet all operators that are present. Texts can contain `{{user.Column}}`, which stands
 * for a value of the app user.
 */
export interface ValueCondition {
  /** The column's value must equal this value. A list never equals one of its elements. */
  equals?: ScalarValue;
  /** The column's value must differ from this value. In a list, each element must differ too. */
  notequals?: ScalarValue;
  /** Text that the column's value, or one element of a list, must contain, without regard to case. */
  contains?: string;
}

/** Conditions by name of the column. An entry must meet all of them. */
export type ColumnConditions = Readonly<Record<string, ValueCondition>>;

export const ALL_CALLERS_RULE = "all";

export type CallerRule = "all" | "loggedIn" | { user: ColumnConditions };

/** Columns of the entry of the app user who is signed in on a page. */
export type AppUserData = Readonly<Record<string, unknown>>;

const CONDITION_SHAPE = createFlatShape(["equals", "notequals", "contains"]);
const CALLER_RULE_SHAPE = createFlatShape(["user"]);
const COLUMNS_MAX = 50;
const COLUMN_NAME_MAX_CHARACTERS = 255;
const VALUE_MAX_CHARACTERS = 1_000;

const isText = (value: unknown, max: number): value is string =>
  typeof value === "string" && value !== "" && value.length <= max && findUnstorableCharacter(value) < 0;

/** Checks that the value can be the name of a column. @throws REQUEST_INVALID that names `field` */
export function checkIsColumnName(value: unknown, field: string): void {
  if (!isText(value, COLUMN_NAME_MAX_CHARACTERS))
    refuseField(field, `the name of a column, with 1 to ${COLUMN_NAME_MAX_CHARACTERS} characters`, value);
}

function checkValueCondition(condition: unknown, field: string): void {
  const names = isObject(condition) ? Object.keys(condition) : [];
  if (names.length === 0) refuseField(field, 'an object with "equals", "notequals" or "contains"', condition);
  refuseUnknownFields(condition, CONDITION_SHAPE, field);
  for (const [name, value] of Object.entries(condition as object)) {
    const isNumberOrBoolean = name !== "contains" && (typeof value === "boolean" || Number.isFinite(value));
    if (isNumberOrBoolean || isText(value, VALUE_MAX_CHARACTERS)) continue;
    const scalarText = name === "contains" ? "" : ", a number or a boolean";
    refuseField(`${field}.${name}`, `a text of 1 to ${VALUE_MAX_CHARACTERS} characters${scalarText}`, value);
  }
}

/** Checks that the value is an object with conditions on columns. @throws REQUEST_INVALID that names `field` */
export function checkColumnConditions(value: unknown, field: string): asserts value is ColumnConditions {
  const columns = isObject(value) ? Object.keys(value) : [];
  if (columns.length === 0 || columns.length > COLUMNS_MAX) {
    refuseField(field, `an object with conditions for 1 to ${COLUMNS_MAX} columns`, value);
  }
  for (const column of columns) {
    checkIsColumnName(column, field);
    checkValueCondition((value as Record<string, unknown>)[column], `${field}.${column}`);
  }
}

/**
 * Checks that the value is a caller rule: everyone, signed-in users, or conditions on the user's columns.
 * @throws REQUEST_INVALID that names `field`
 */
export function checkCallerRule(value: unknown, field: string): asserts value is CallerRule {
  if (value === ALL_CALLERS_RULE || value === "loggedIn") return;
  if (!isObject(value) || !Object.hasOwn(value, "user")) {
    refuseField(field, '"all", "loggedIn" or {user: {Column: {equals, notequals or contains}}}', value);
  }
  checkColumnConditions(value["user"], `${field}.user`);
  refuseUnknownFields(value, CALLER_RULE_SHAPE, field);
}

/** Matches a placeholder such as `{{user.Email}}`. A column name with braces is not allowed, so that matching takes linear time. */
const USER_PLACEHOLDER_PATTERN = /\{\{\s*user\.([^{}]+)\}\}/g;
const PLACEHOLDER_START_PATTERN = /\{\{\s*user\./;
/** Maximum number of parsed texts in the cache. One request of a visitor may need hundreds of them. */
const CACHED_TEMPLATES_MAX = 2_000;

/** Parts of a text: literal texts, and placeholders for columns of the app user. null if a placeholder is invalid. */
type UserTemplate = readonly (string | { column: string })[] | null;

function parseTemplate(text: string): UserTemplate {
  const parts: (string | { column: string })[] = [];
  let at = 0;
  for (const match of text.matchAll(USER_PLACEHOLDER_PATTERN)) {
    const name = match[1]!.trimEnd();
    const column = name.startsWith("[") && name.endsWith("]") && name.length > 2 ? name.slice(1, -1) : name;
    parts.push(text.slice(at, match.index), { column });
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  const isValid = parts.every((part) => typeof part !== "string" || !PLACEHOLDER_START_PATTERN.test(part));
  return isValid ? parts.filter((part) => part !== "") : null;
}

const templateCache = new Map<string, UserTemplate>();

function parseTemplateCached(text: string): UserTemplate {
  const cachedTemplate = templateCache.get(text);
  if (cachedTemplate !== undefined) return cachedTemplate;
  const template = parseTemplate(text);
  if (templateCache.size >= CACHED_TEMPLATES_MAX) templateCache.delete(templateCache.keys().next().value!);
  templateCache.set(text, template);
  return template;
}

function isScalar(value: unknown): value is ScalarValue {
  return (typeof value === "string" && value !== "") || typeof value === "number" || typeof value === "boolean";
}

/** Returns a value of the app user's entry if it is a non-empty text, a number or a boolean; otherwise undefined. */
function getComparableUserValue(user: AppUserData | null, column: string): ScalarValue | undefined {
  const value = user !== null && Object.hasOwn(user, column) ? user[column] : undefined;
  return isScalar(value) ? value : undefined;
}

/** Replaces placeholders by values of the app user; undefined if one is missing. A single placeholder keeps the type of its value. */
function fillTemplate(value: ScalarValue, user: AppUserData | null): ScalarValue | undefined {
  if (typeof value !== "string") return value;
  const template = parseTemplateCached(value);
  if (template === null) return undefined;
  const values = template.map((part) => (typeof part === "string" ? part : getComparableUserValue(user, part.column)));
  if (values.includes(undefined)) return undefined;
  return values.length === 1 ? values[0] : values.join("");
}

function fillValueCondition(condition: ValueCondition, user: AppUserData | null): ValueCondition | null {
  const entries = Object.entries(condition).map(
    ([name, value]) => [name, fillTemplate(value as ScalarValue, user)] as const,
  );
  if (entries.some(([, value]) => value === undefined)) return null;
  return Object.fromEntries(entries.map(([name, value]) => [name, name === "contains" ? String(value) : value]));
}

/** Returns the conditions with values of the app user in place of the placeholders; null if one of these values is missing. */
export function fillConditionPlaceholders(
  conditions: ColumnConditions,
  user: AppUserData | null,
): ColumnConditions | null {
  const entries = Object.entries(conditions).map(([column, test]) => [column, fillValueCondition(test, user)] as const);
  return entries.some(([, test]) => test === null) ? null : (Object.fromEntries(entries) as ColumnConditions);
}

const equalsOrIncludes = (value: unknown, expected: ScalarValue): boolean =>
  value === expected || (Array.isArray(value) && value.includes(expected));

/** True if the value is a text that contains the part, or a list with such a text. Does not search lists within the list. */
const containsText = (value: unknown, part: string): boolean =>
  (Array.isArray(value) ? value : [value]).some((text) => typeof text === "string" && containsTextFolded(text, part));

const getColumnValue = (data: AppUserData, column: string): unknown =>
  Object.hasOwn(data, column) ? data[column] : undefined;

/** True if the data of an entry meets every condition. A missing column meets every `notequals`, as in a `where` filter. */
export function meetsColumnConditions(data: AppUserData, conditions: ColumnConditions): boolean {
  return Object.entries(conditions).every(([column, { equals, notequals, contains }]) => {
    const value = getColumnValue(data, column);
    // A list of owners never equals one owner: otherwise, each person in the list would count as the owner of the entry.
    if (equals !== undefined && value !== equals) return false;
    if (notequals !== undefined && equalsOrIncludes(value, notequals)) return false;
    return contains === undefined || containsText(value, contains);
  });
}

/** True if the rule allows this app user; null is an anonymous caller. A user whose column is null or missing meets no condition on it. */
export function isUserAllowedByRule(rule: CallerRule, user: AppUserData | null): boolean {
  const isForAll = rule === ALL_CALLERS_RULE;
  if (isForAll || user === null) return isForAll;
  if (rule === "loggedIn") return true;
  const conditions = fillConditionPlaceholders(rule.user, user);
  if (conditions === null || Object.keys(conditions).some((column) => (getColumnValue(user, column) ?? null) === null))
    return false;
  return meetsColumnConditions(user, conditions);
}
