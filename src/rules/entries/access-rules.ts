/** Validates the access rules of a data source. */

import {
  type CallerRule,
  type ColumnConditions,
  checkCallerRule,
  checkColumnConditions,
  checkIsColumnName,
} from "../caller-rules.js";
import { isObject } from "../describe-value.js";
import { refuseField, requireListOf } from "../fields.js";
import { createFlatShape } from "../unknown-fields.js";

export const ENTRY_VERBS = ["select", "insert", "update", "delete"] as const;
export type EntryVerb = (typeof ENTRY_VERBS)[number];

/** Access rule of a data source (contract, packages: access rules). The first rule that matches the caller and the operation decides. */
export interface EntryAccessRule {
  type: readonly EntryVerb[];
  allow: CallerRule;
  /** False if the service ignores this rule. Default true. */
  enabled?: boolean;
  /** Columns that the caller can read or write. If present, the caller can access no other column. */
  include?: readonly string[];
  exclude?: readonly string[];
  /** Columns that the `where` (read, delete) or the data (write) must contain. An object states conditions on their values. */
  require?: readonly (string | ColumnConditions)[];
}

const RULES_MAX = 100;
const COLUMNS_MAX = 500;
/** Allowed fields of a rule. Unknown ones are rejected, because a misspelt `exclude` would show the columns that it should hide. */
export const ACCESS_RULE_SHAPE = createFlatShape(["type", "allow", "enabled", "include", "exclude", "require", "name"]);

function checkColumns(value: unknown, field: string): void {
  if (value === undefined) return;
  if (!Array.isArray(value) || value.length > COLUMNS_MAX)
    refuseField(field, `an array of at most ${COLUMNS_MAX} column names`, value);
  for (const [at, column] of value.entries()) checkIsColumnName(column, `${field}[${at}]`);
}

function checkRequiredColumns(value: unknown, field: string): void {
  if (value === undefined) return;
  if (!Array.isArray(value) || value.length > COLUMNS_MAX)
    refuseField(
      field,
      `an array of at most ${COLUMNS_MAX} items, each a column name or an object with conditions on columns`,
      value,
    );
  for (const [at, element] of value.entries()) {
    const fieldPath = `${field}[${at}]`;
    if (typeof element === "string") checkIsColumnName(element, fieldPath);
    else checkColumnConditions(element, fieldPath);
  }
}

function checkRule(rule: unknown, field: string): void {
  if (!isObject(rule)) refuseField(field, "an object", rule);
  const { type, allow, enabled, include, exclude, require } = rule;
  requireListOf(ENTRY_VERBS, type, `${field}.type`);
  checkCallerRule(allow, `${field}.allow`);
  if (enabled !== undefined && typeof enabled !== "boolean") refuseField(`${field}.enabled`, "true or false", enabled);
  checkColumns(include, `${field}.include`);
  checkColumns(exclude, `${field}.exclude`);
  checkRequiredColumns(require, `${field}.require`);
}

/**
 * Validates the access rules of a data source; null means no rules.
 * @throws ActionError REQUEST_INVALID with the path of the invalid field
 */
export function parseAccessRules(value: unknown): EntryAccessRule[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > RULES_MAX) {
    refuseField("accessRules", `an array of at most ${RULES_MAX} rules`, value);
  }
  for (const [at, rule] of value.entries()) checkRule(rule, `accessRules[${at}]`);
  return value as EntryAccessRule[];
}
