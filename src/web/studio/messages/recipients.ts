/** Converts the recipients of a notification from the stored JSON (`scope`) to the values of the form, and back. Pure functions. */
import {
  isScalarValue,
  parseTypedValue,
  type ScalarValue,
  type TypedValue,
  toTypedValue,
} from "../shared/typed-value.js";

export const RECIPIENT_COMPARISON_LABELS = [
  ["$eq", "is"],
  ["$ne", "is not"],
  ["$iLike", "contains"],
  ["$gt", "is greater than"],
  ["$lt", "is less than"],
] as const;

export type RecipientComparison = (typeof RECIPIENT_COMPARISON_LABELS)[number][0];

export interface RecipientCondition extends TypedValue {
  column: string;
  comparison: RecipientComparison;
}

export type Recipients =
  | { kind: "everyone" }
  | { kind: "users"; ids: number[] }
  | { kind: "conditions"; conditions: RecipientCondition[] };

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parseUserId(value: unknown): number | null {
  const id = isRecord(value) && Object.keys(value).join() === "id" ? value["id"] : value;
  return Number.isSafeInteger(id) ? (id as number) : null;
}

/** Converts the stored conditions on one column to rows of the form. Returns null if the form cannot show these conditions. */
function parseConditions([column, tests]: [string, unknown]): RecipientCondition[] | null {
  if (column.startsWith("$")) return null;
  const parsedTests = Object.entries(isRecord(tests) ? tests : { $eq: tests }).map(([name, value]) => {
    const comparison = RECIPIENT_COMPARISON_LABELS.find(([operator]) => operator === name)?.[0];
    if (!comparison || !isScalarValue(value)) return null;
    return { column, comparison, ...toTypedValue(value) };
  });
  return parsedTests.length > 0 && parsedTests.every((test) => test !== null) ? parsedTests : null;
}

/**
 * Converts the stored recipients to the values of the form.
 * @param scope recipients as JSON text; "" for all users and anonymous visitors
 * @returns null if the form cannot show the recipients without losing parts of them
 */
export function parseNotificationRecipients(scope: string): Recipients | null {
  if (scope.trim() === "") return { kind: "everyone" };
  let parsed: unknown;
  try {
    parsed = JSON.parse(scope);
  } catch {
    return null;
  }
  if (Array.isArray(parsed)) {
    const ids = parsed.map(parseUserId);
    return ids.every((id) => id !== null) ? { kind: "users", ids } : null;
  }
  if (!isRecord(parsed)) return null;
  const conditions = Object.entries(parsed).map(parseConditions);
  return conditions.every((condition) => condition !== null)
    ? { kind: "conditions", conditions: conditions.flat() }
    : null;
}

export const splitUserIds = (text: string): string[] => text.split(/[\s,]/).filter((word) => word !== "");

export const isUserId = (word: string): boolean => /^[1-9]\d{0,14}$/.test(word);

function conditionsToScope(conditions: readonly RecipientCondition[]): Record<string, Record<string, ScalarValue>> {
  const where = new Map<string, Record<string, ScalarValue>>();
  for (const condition of conditions) {
    where.set(condition.column, { ...where.get(condition.column), [condition.comparison]: parseTypedValue(condition) });
  }
  return Object.fromEntries(where);
}

/** Returns the recipients as JSON text, or "" for all users and anonymous visitors. */
export function recipientsToScope(recipients: Recipients): string {
  if (recipients.kind === "everyone") return "";
  return JSON.stringify(
    recipients.kind === "users" ? recipients.ids : conditionsToScope(recipients.conditions),
    null,
    2,
  );
}

export const normalizeConditions = (conditions: readonly RecipientCondition[]): RecipientCondition[] =>
  Object.entries(conditionsToScope(conditions)).flatMap((condition) => parseConditions(condition) ?? []);

/** Describes the recipients in one sentence. */
export function describeRecipients(scope: string): string {
  const recipients = parseNotificationRecipients(scope);
  if (recipients === null) return "Users of the app who match the JSON. Anonymous visitors do not receive it.";
  if (recipients.kind === "everyone") return "All users of the app, and anonymous visitors.";
  return `${describeUsers(recipients)}. Anonymous visitors do not receive it.`;
}

function describeUsers(recipients: Exclude<Recipients, { kind: "everyone" }>): string {
  if (recipients.kind === "users")
    return recipients.ids.length === 0 ? "No user yet" : `Users of the app with the ID ${recipients.ids.join(" or ")}`;
  const { conditions } = recipients;
  if (conditions.some(({ column }) => column === "")) return "Users of the app who meet the conditions";
  return conditions.length === 0
    ? "All signed-in users of the app"
    : `Users of the app whose ${conditions.map(describeCondition).join(" and ")}`;
}

const describeCondition = ({ column, comparison, typedText }: RecipientCondition): string =>
  `${column} ${RECIPIENT_COMPARISON_LABELS.find(([operator]) => operator === comparison)![1]} “${typedText}”`;
