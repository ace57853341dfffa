/** Templates of access rules, and the description of a rule in words. Pure functions. */
import type { ColumnTests } from "../../../rules/caller-rules.js";
import { isScalar, type Scalar, scalarOf, type TypedValue, typedValueOf } from "../shared/typed-value.js";

export const VERBS = [
  ["select", "Read"],
  ["insert", "Add"],
  ["update", "Change"],
  ["delete", "Delete"],
] as const;

/** Rule as the form edits it. It keeps fields that the form does not show. */
export interface RuleDraft {
  type: string[];
  allow: "all" | "loggedIn" | { user: ColumnTests };
  enabled?: boolean;
  include?: string[];
  exclude?: string[];
  require?: (string | ColumnTests)[];
}

export interface Template {
  label: string;
  /** @param column column that contains the owner of an entry */
  make(column: string): RuleDraft[];
}

/** Placeholder in a value for a column of the signed-in user. */
export const ofUser = (column: string): string => `{{user.${/^[\w-]+$/.test(column) ? column : `[${column}]`}}}`;

const own = (column: string): ColumnTests => ({ [column]: { equals: ofUser(column) } });
const ALL = VERBS.map(([verb]) => verb);

export const TEMPLATES: readonly Template[] = [
  { label: "Everyone reads", make: () => [{ type: ["select"], allow: "all" }] },
  { label: "Signed-in users read", make: () => [{ type: ["select"], allow: "loggedIn" }] },
  {
    label: "Signed-in users read and write their own entries",
    make: (column) => [{ type: [...ALL], allow: "loggedIn", require: [own(column)] }],
  },
  {
    label: "Everyone reads, signed-in users write their own entries",
    make: (column) => [
      { type: ["select"], allow: "all" },
      { type: ["insert", "update", "delete"], allow: "loggedIn", require: [own(column)] },
    ],
  },
  { label: "Visitors add entries and read none", make: () => [{ type: ["insert"], allow: "all" }] },
  {
    label: "Users with a role do everything",
    make: () => [{ type: [...ALL], allow: { user: { Role: { equals: "editor" } } } }],
  },
];

const COMMON_OWNERS = ["Email", "email", "UserId", "userId", "Owner", "owner"];

/** Returns the column that most likely contains the owner of an entry. */
export const ownerColumn = (columns: readonly string[]): string =>
  COMMON_OWNERS.find((name) => columns.includes(name)) ?? columns[0] ?? "Email";

/** Test of a column, as a row of the form. */
export interface TestRow extends TypedValue {
  column: string;
  test: "equals" | "notequals" | "contains";
}

export const TESTS: readonly [TestRow["test"], string][] = [
  ["equals", "is"],
  ["notequals", "is not"],
  ["contains", "contains"],
];

export const testRows = (tests: ColumnTests): TestRow[] =>
  Object.entries(tests).flatMap(([column, test]) =>
    Object.entries(test).map(([name, value]: [string, Scalar]) => ({
      column,
      test: name as TestRow["test"],
      ...typedValueOf(value),
    })),
  );

export function testsOf(rows: readonly TestRow[]): ColumnTests {
  const tests: Record<string, Record<string, Scalar>> = {};
  for (const row of rows) tests[row.column] = { ...tests[row.column], [row.test]: scalarOf(row) };
  return tests;
}

const wordOf = (test: TestRow["test"]): string => TESTS.find(([name]) => name === test)?.[1] ?? test;
function valueWords({ value, kind }: TestRow): string {
  if (kind === "boolean") return value === "true" ? "yes" : "no";
  if (kind === "number") return value;
  const user = /^\{\{\s*user\.([^{}]+)\}\}$/.exec(value);
  return user ? `the user's ${user[1]}` : `“${value}”`;
}

const rowWords = (row: TestRow): string => `${row.column} ${wordOf(row.test)} ${valueWords(row)}`;

function whoWords(allow: RuleDraft["allow"]): string {
  if (allow === "loggedIn") return "Signed-in users";
  if (typeof allow === "string") return "Everyone";
  return `Users whose ${testRows(allow.user).map(rowWords).join(" and ")}`;
}

function columnWords({ include, exclude }: RuleDraft): string {
  if (include) return `only ${include.join(", ") || "no column"}`;
  return exclude && exclude.length > 0 ? `without ${exclude.join(", ")}` : "";
}

function requiredWords({ require = [] }: RuleDraft): string {
  const tests = require.flatMap((one) => (typeof one === "string" ? [] : testRows(one)));
  const named = require.filter((one) => typeof one === "string");
  const parts = [
    tests.length > 0 && `where ${tests.map(rowWords).join(" and ")}`,
    named.length > 0 && `naming ${named.join(", ")}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Returns the rule as a sentence. */
export function ruleWords(rule: RuleDraft): string {
  const verbs = VERBS.filter(([verb]) => rule.type.includes(verb)).map(([, label]) => label.toLowerCase());
  const does = verbs.length === VERBS.length ? "do everything" : verbs.join(", ") || "do nothing";
  const more = [columnWords(rule), requiredWords(rule)].filter(Boolean).join(", ");
  return `${whoWords(rule.allow)} can ${does}${more && `: ${more}`}`;
}

const isTest = (test: unknown): boolean =>
  typeof test === "object" && test !== null && !Array.isArray(test) && Object.values(test).every(isScalar);

const isTests = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every(isTest);

const isNames = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((one) => typeof one === "string"));

/** True if the form can show the value without losing parts of it. */
export function isRuleList(value: unknown): value is RuleDraft[] {
  if (!Array.isArray(value)) return false;
  return value.every((rule: Partial<RuleDraft> | null) => {
    if (typeof rule !== "object" || rule === null || !Array.isArray(rule.type)) return false;
    const { allow, include, exclude, require } = rule;
    const isAllow = allow === "all" || allow === "loggedIn" || (typeof allow === "object" && isTests(allow?.user));
    const isRequire =
      require === undefined ||
      (Array.isArray(require) && require.every((one) => typeof one === "string" || isTests(one)));
    return isAllow && isRequire && isNames(include) && isNames(exclude);
  });
}
