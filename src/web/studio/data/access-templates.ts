/** Templates of access rules, and the description of a rule as a sentence. Pure functions. */
import type { ColumnConditions } from "../../../rules/caller-rules.js";
import {
  isScalarValue,
  parseTypedValue,
  type ScalarValue,
  type TypedValue,
  toTypedValue,
} from "../shared/typed-value.js";

export const ACCESS_OPERATION_LABELS = [
  ["select", "Read"],
  ["insert", "Add"],
  ["update", "Change"],
  ["delete", "Delete"],
] as const;

/** Access rule as the form edits it. The form keeps fields that it does not show. */
export interface AccessRuleDraft {
  type: string[];
  allow: "all" | "loggedIn" | { user: ColumnConditions };
  enabled?: boolean;
  include?: string[];
  exclude?: string[];
  require?: (string | ColumnConditions)[];
}

export interface AccessRuleTemplate {
  label: string;
  /** Returns the rules of the template. @param column name of the column that identifies the owner of an entry */
  createRules(column: string): AccessRuleDraft[];
}

/** Returns a placeholder for a value in a rule. The service replaces it by the signed-in user's value of this column. */
export const createUserColumnPlaceholder = (column: string): string =>
  `{{user.${/^[\w-]+$/.test(column) ? column : `[${column}]`}}}`;

const createOwnEntriesCondition = (column: string): ColumnConditions => ({
  [column]: { equals: createUserColumnPlaceholder(column) },
});
const ALL_OPERATIONS = ACCESS_OPERATION_LABELS.map(([verb]) => verb);

export const ACCESS_RULE_TEMPLATES: readonly AccessRuleTemplate[] = [
  { label: "Everyone reads", createRules: () => [{ type: ["select"], allow: "all" }] },
  { label: "Signed-in users read", createRules: () => [{ type: ["select"], allow: "loggedIn" }] },
  {
    label: "Signed-in users read and write their own entries",
    createRules: (column) => [
      { type: [...ALL_OPERATIONS], allow: "loggedIn", require: [createOwnEntriesCondition(column)] },
    ],
  },
  {
    label: "Everyone reads, signed-in users write their own entries",
    createRules: (column) => [
      { type: ["select"], allow: "all" },
      { type: ["insert", "update", "delete"], allow: "loggedIn", require: [createOwnEntriesCondition(column)] },
    ],
  },
  { label: "Visitors add entries and read none", createRules: () => [{ type: ["insert"], allow: "all" }] },
  {
    label: "Users with a role do everything",
    createRules: () => [{ type: [...ALL_OPERATIONS], allow: { user: { Role: { equals: "editor" } } } }],
  },
];

const COMMON_OWNER_COLUMNS = ["Email", "email", "UserId", "userId", "Owner", "owner"];

/** Returns the column that probably identifies the owner of an entry, by common names such as "Email"; otherwise the first column. */
export const guessOwnerColumn = (columns: readonly string[]): string =>
  COMMON_OWNER_COLUMNS.find((name) => columns.includes(name)) ?? columns[0] ?? "Email";

export interface ColumnConditionRow extends TypedValue {
  column: string;
  comparison: "equals" | "notequals" | "contains";
}

export const COLUMN_COMPARISON_LABELS: readonly [ColumnConditionRow["comparison"], string][] = [
  ["equals", "is"],
  ["notequals", "is not"],
  ["contains", "contains"],
];

export const conditionsToRows = (conditions: ColumnConditions): ColumnConditionRow[] =>
  Object.entries(conditions).flatMap(([column, comparisons]) =>
    Object.entries(comparisons).map(([name, value]: [string, ScalarValue]) => ({
      column,
      comparison: name as ColumnConditionRow["comparison"],
      ...toTypedValue(value),
    })),
  );

export function rowsToConditions(rows: readonly ColumnConditionRow[]): ColumnConditions {
  const conditions: Record<string, Record<string, ScalarValue>> = {};
  for (const row of rows)
    conditions[row.column] = { ...conditions[row.column], [row.comparison]: parseTypedValue(row) };
  return conditions;
}

const getComparisonLabel = (comparison: ColumnConditionRow["comparison"]): string =>
  COLUMN_COMPARISON_LABELS.find(([name]) => name === comparison)?.[1] ?? comparison;
function formatValue({ typedText, kind }: ColumnConditionRow): string {
  if (kind === "boolean") return typedText === "true" ? "yes" : "no";
  if (kind === "number") return typedText;
  const user = /^\{\{\s*user\.([^{}]+)\}\}$/.exec(typedText);
  return user ? `the user's ${user[1]}` : `“${typedText}”`;
}

const describeCondition = (row: ColumnConditionRow): string =>
  `${row.column} ${getComparisonLabel(row.comparison)} ${formatValue(row)}`;

function describeAllowedUsers(allow: AccessRuleDraft["allow"]): string {
  if (allow === "loggedIn") return "Signed-in users";
  if (typeof allow === "string") return "Everyone";
  return `Users whose ${conditionsToRows(allow.user).map(describeCondition).join(" and ")}`;
}

function describeColumns({ include, exclude }: AccessRuleDraft): string {
  if (include) return `only ${include.join(", ") || "no column"}`;
  return exclude && exclude.length > 0 ? `without ${exclude.join(", ")}` : "";
}

function describeRequirements({ require = [] }: AccessRuleDraft): string {
  const conditions = require.flatMap((requirement) =>
    typeof requirement === "string" ? [] : conditionsToRows(requirement),
  );
  const namedRequirements = require.filter((requirement) => typeof requirement === "string");
  const parts = [
    conditions.length > 0 && `where ${conditions.map(describeCondition).join(" and ")}`,
    namedRequirements.length > 0 && `naming ${namedRequirements.join(", ")}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Describes the access rule in one sentence. */
export function describeAccessRule(rule: AccessRuleDraft): string {
  const verbs = ACCESS_OPERATION_LABELS.filter(([verb]) => rule.type.includes(verb)).map(([, label]) =>
    label.toLowerCase(),
  );
  const verbsText =
    verbs.length === ACCESS_OPERATION_LABELS.length ? "do everything" : verbs.join(", ") || "do nothing";
  const restrictionsText = [describeColumns(rule), describeRequirements(rule)].filter(Boolean).join(", ");
  return `${describeAllowedUsers(rule.allow)} can ${verbsText}${restrictionsText && `: ${restrictionsText}`}`;
}

const isColumnComparison = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(isScalarValue);

const isColumnConditions = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every(isColumnComparison);

const isColumnNameList = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((element) => typeof element === "string"));

/** True if the form can show these access rules without losing parts of them. */
export function isEditableRuleList(value: unknown): value is AccessRuleDraft[] {
  if (!Array.isArray(value)) return false;
  return value.every((rule: Partial<AccessRuleDraft> | null) => {
    if (typeof rule !== "object" || rule === null || !Array.isArray(rule.type)) return false;
    const { allow, include, exclude, require } = rule;
    const isAllowValid =
      allow === "all" || allow === "loggedIn" || (typeof allow === "object" && isColumnConditions(allow?.user));
    const isRequireValid =
      require === undefined ||
      (Array.isArray(require) &&
        require.every((requirement) => typeof requirement === "string" || isColumnConditions(requirement)));
    return isAllowValid && isRequireValid && isColumnNameList(include) && isColumnNameList(exclude);
  });
}
