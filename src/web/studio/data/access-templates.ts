/** Templates of access rules, and the description of a rule as a sentence. Pure functions. */
import type { ColumnConditions } from "../../../rules/caller-rules.js";
import { isScalarValue, type ScalarValue, type TypedValue, toScalar, toTypedValue } from "../shared/typed-value.js";

export const ACCESS_VERBS = [
  ["select", "Read"],
  ["insert", "Add"],
  ["update", "Change"],
  ["delete", "Delete"],
] as const;

/** Access rule as the form edits it. The form keeps fields that it does not show. */
export interface RuleDraft {
  type: string[];
  allow: "all" | "loggedIn" | { user: ColumnConditions };
  enabled?: boolean;
  include?: string[];
  exclude?: string[];
  require?: (string | ColumnConditions)[];
}

export interface RuleTemplate {
  label: string;
  /** Returns the rules of the template. @param column name of the column that contains the owner of an entry */
  createRules(column: string): RuleDraft[];
}

/** Returns a placeholder for a value in a rule. The service replaces it by the signed-in user's value of this column. */
export const userPlaceholder = (column: string): string =>
  `{{user.${/^[\w-]+$/.test(column) ? column : `[${column}]`}}}`;

const createOwnEntriesTest = (column: string): ColumnConditions => ({ [column]: { equals: userPlaceholder(column) } });
const ALL_VERBS = ACCESS_VERBS.map(([verb]) => verb);

export const RULE_TEMPLATES: readonly RuleTemplate[] = [
  { label: "Everyone reads", createRules: () => [{ type: ["select"], allow: "all" }] },
  { label: "Signed-in users read", createRules: () => [{ type: ["select"], allow: "loggedIn" }] },
  {
    label: "Signed-in users read and write their own entries",
    createRules: (column) => [{ type: [...ALL_VERBS], allow: "loggedIn", require: [createOwnEntriesTest(column)] }],
  },
  {
    label: "Everyone reads, signed-in users write their own entries",
    createRules: (column) => [
      { type: ["select"], allow: "all" },
      { type: ["insert", "update", "delete"], allow: "loggedIn", require: [createOwnEntriesTest(column)] },
    ],
  },
  { label: "Visitors add entries and read none", createRules: () => [{ type: ["insert"], allow: "all" }] },
  {
    label: "Users with a role do everything",
    createRules: () => [{ type: [...ALL_VERBS], allow: { user: { Role: { equals: "editor" } } } }],
  },
];

const COMMON_OWNER_COLUMNS = ["Email", "email", "UserId", "userId", "Owner", "owner"];

/** Returns the column that probably contains the owner of an entry, by common names such as "Email" or "userId". */
export const findOwnerColumn = (columns: readonly string[]): string =>
  COMMON_OWNER_COLUMNS.find((name) => columns.includes(name)) ?? columns[0] ?? "Email";

/** Condition on one column, as a row of the form. */
export interface TestRow extends TypedValue {
  column: string;
  test: "equals" | "notequals" | "contains";
}

export const COLUMN_TESTS: readonly [TestRow["test"], string][] = [
  ["equals", "is"],
  ["notequals", "is not"],
  ["contains", "contains"],
];

export const testsToRows = (tests: ColumnConditions): TestRow[] =>
  Object.entries(tests).flatMap(([column, test]) =>
    Object.entries(test).map(([name, value]: [string, ScalarValue]) => ({
      column,
      test: name as TestRow["test"],
      ...toTypedValue(value),
    })),
  );

export function rowsToTests(rows: readonly TestRow[]): ColumnConditions {
  const tests: Record<string, Record<string, ScalarValue>> = {};
  for (const row of rows) tests[row.column] = { ...tests[row.column], [row.test]: toScalar(row) };
  return tests;
}

const getTestLabel = (test: TestRow["test"]): string => COLUMN_TESTS.find(([name]) => name === test)?.[1] ?? test;
function formatValue({ value, kind }: TestRow): string {
  if (kind === "boolean") return value === "true" ? "yes" : "no";
  if (kind === "number") return value;
  const user = /^\{\{\s*user\.([^{}]+)\}\}$/.exec(value);
  return user ? `the user's ${user[1]}` : `“${value}”`;
}

const describeCondition = (row: TestRow): string => `${row.column} ${getTestLabel(row.test)} ${formatValue(row)}`;

function describeAllow(allow: RuleDraft["allow"]): string {
  if (allow === "loggedIn") return "Signed-in users";
  if (typeof allow === "string") return "Everyone";
  return `Users whose ${testsToRows(allow.user).map(describeCondition).join(" and ")}`;
}

function describeColumns({ include, exclude }: RuleDraft): string {
  if (include) return `only ${include.join(", ") || "no column"}`;
  return exclude && exclude.length > 0 ? `without ${exclude.join(", ")}` : "";
}

function describeRequirements({ require = [] }: RuleDraft): string {
  const tests = require.flatMap((requirement) => (typeof requirement === "string" ? [] : testsToRows(requirement)));
  const named = require.filter((requirement) => typeof requirement === "string");
  const parts = [
    tests.length > 0 && `where ${tests.map(describeCondition).join(" and ")}`,
    named.length > 0 && `naming ${named.join(", ")}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Describes the access rule in one sentence. */
export function describeRule(rule: RuleDraft): string {
  const verbs = ACCESS_VERBS.filter(([verb]) => rule.type.includes(verb)).map(([, label]) => label.toLowerCase());
  const verbsText = verbs.length === ACCESS_VERBS.length ? "do everything" : verbs.join(", ") || "do nothing";
  const restrictionsText = [describeColumns(rule), describeRequirements(rule)].filter(Boolean).join(", ");
  return `${describeAllow(rule.allow)} can ${verbsText}${restrictionsText && `: ${restrictionsText}`}`;
}

const isColumnTest = (test: unknown): boolean =>
  typeof test === "object" && test !== null && !Array.isArray(test) && Object.values(test).every(isScalarValue);

const isColumnTests = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every(isColumnTest);

const isNameList = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((element) => typeof element === "string"));

/** True if the form can show these access rules without losing parts of them. */
export function isRuleList(value: unknown): value is RuleDraft[] {
  if (!Array.isArray(value)) return false;
  return value.every((rule: Partial<RuleDraft> | null) => {
    if (typeof rule !== "object" || rule === null || !Array.isArray(rule.type)) return false;
    const { allow, include, exclude, require } = rule;
    const isAllowValid =
      allow === "all" || allow === "loggedIn" || (typeof allow === "object" && isColumnTests(allow?.user));
    const isRequireValid =
      require === undefined ||
      (Array.isArray(require) &&
        require.every((requirement) => typeof requirement === "string" || isColumnTests(requirement)));
    return isAllowValid && isRequireValid && isNameList(include) && isNameList(exclude);
  });
}
