/** Access rules of a data source as an editor writes them: judges their form, and knows no caller. */
import { ActionError } from "../../errors.js";
import { described, isObject, unstorableAt } from "../described.js";
import { COLUMN_MAX_CHARACTERS } from "./columns.js";

export const ENTRY_VERBS = ["select", "insert", "update", "delete"] as const;
export type EntryVerb = (typeof ENTRY_VERBS)[number];

/** What a value may be compared with: no operators hide in texts, numbers and booleans. */
export type Scalar = string | number | boolean;

/** All that are given must hold. A text may hold `{{user.Column}}`. */
export interface ValueTest {
  equals?: Scalar;
  notequals?: Scalar;
  contains?: string;
}

/** Tests by column, all of which must hold. */
export type ColumnTests = Readonly<Record<string, ValueTest>>;

/** Whoever asks. */
export const EVERYBODY = "all";

export type Allow = "all" | "loggedIn" | { user: ColumnTests };

/** One rule. The first that fits a caller and what it does decides (contract, packages: access rules). */
export interface AccessRule {
  type: readonly EntryVerb[];
  allow: Allow;
  /** false: the rule is as if it were not there. */
  enabled?: boolean;
  /** The only columns that the caller sees or writes. */
  include?: readonly string[];
  /** Columns that the caller neither sees nor writes. */
  exclude?: readonly string[];
  /** Columns that must be in the where (read, delete) or the data (write); with tests, also what their values must be. */
  require?: readonly (string | ColumnTests)[];
}

const RULES_MAX = 100;
const COLUMNS_MAX = 500;
const VALUE_MAX_CHARACTERS = 1_000;
const FIELDS = ["type", "allow", "enabled", "include", "exclude", "require", "name"];
const TESTS = ["equals", "notequals", "contains"];

function refuse(field: string, expected: string, came: unknown): never {
  throw new ActionError("REQUEST_INVALID", `${field} must be ${expected}; ${described(came)} came`);
}

function checkColumn(value: unknown, field: string): void {
  const isText = typeof value === "string" && value !== "" && value.length <= COLUMN_MAX_CHARACTERS;
  if (!isText || unstorableAt(value) >= 0) refuse(field, "the name of a column", value);
}

function checkValue(value: unknown, field: string): void {
  if (typeof value === "number" || typeof value === "boolean") return;
  const isText = typeof value === "string" && value !== "" && value.length <= VALUE_MAX_CHARACTERS;
  if (!isText) refuse(field, `a text of 1 to ${VALUE_MAX_CHARACTERS} characters, a number or a boolean`, value);
}

function checkTests(value: unknown, field: string): void {
  if (!isObject(value) || Object.keys(value).length === 0) refuse(field, "an object of columns and their tests", value);
  for (const [column, test] of Object.entries(value)) {
    checkColumn(column, field);
    const place = `${field}.${column}`;
    const known =
      isObject(test) && Object.keys(test).length > 0 && Object.keys(test).every((key) => TESTS.includes(key));
    if (!known) refuse(place, "an object of equals, notequals or contains", test);
    for (const [name, expected] of Object.entries(test)) {
      if (name === "contains" && typeof expected !== "string") refuse(`${place}.contains`, "a text", expected);
      checkValue(expected, `${place}.${name}`);
    }
  }
}

function checkColumns(value: unknown, field: string): void {
  if (value === undefined) return;
  if (!Array.isArray(value) || value.length > COLUMNS_MAX)
    refuse(field, `an array of at most ${COLUMNS_MAX} columns`, value);
  for (const [at, column] of value.entries()) checkColumn(column, `${field}[${at}]`);
}

function checkRequire(value: unknown, field: string): void {
  if (value === undefined) return;
  if (!Array.isArray(value) || value.length > COLUMNS_MAX) refuse(field, "an array of columns or their tests", value);
  for (const [at, one] of value.entries()) {
    const place = `${field}[${at}]`;
    if (typeof one === "string") checkColumn(one, place);
    else checkTests(one, place);
  }
}

/** @throws REQUEST_INVALID */
export function checkAllow(value: unknown, field: string): void {
  if (value === EVERYBODY || value === "loggedIn") return;
  if (!isObject(value) || Object.keys(value).join() !== "user") refuse(field, '"all", "loggedIn" or {user: …}', value);
  checkTests(value["user"], `${field}.user`);
}

function checkRule(rule: unknown, field: string): void {
  if (!isObject(rule)) refuse(field, "an object", rule);
  const unknown = Object.keys(rule).find((key) => !FIELDS.includes(key));
  // A misspelt `exclude` would show what it was to hide.
  if (unknown !== undefined) {
    throw new ActionError(
      "REQUEST_INVALID",
      `${field} has no field ${described(unknown)}; it may have ${FIELDS.join(", ")}`,
    );
  }
  const { type, allow, enabled, include, exclude, require } = rule;
  const verbs: readonly unknown[] = ENTRY_VERBS;
  if (!Array.isArray(type) || type.length === 0 || type.some((verb) => !verbs.includes(verb))) {
    refuse(`${field}.type`, `an array of ${ENTRY_VERBS.join(", ")}`, type);
  }
  checkAllow(allow, `${field}.allow`);
  if (enabled !== undefined && typeof enabled !== "boolean") refuse(`${field}.enabled`, "true or false", enabled);
  checkColumns(include, `${field}.include`);
  checkColumns(exclude, `${field}.exclude`);
  checkRequire(require, `${field}.require`);
}

/** The rules as they came; none for null. @throws REQUEST_INVALID naming the field */
export function parseAccessRules(value: unknown): AccessRule[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > RULES_MAX) {
    refuse("accessRules", `an array of at most ${RULES_MAX} rules`, value);
  }
  for (const [at, rule] of value.entries()) checkRule(rule, `accessRules[${at}]`);
  return value as AccessRule[];
}
