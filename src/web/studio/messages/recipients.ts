/** Converts the recipients of a notification between the stored scope and the form's values. Pure functions. */
import { isScalar, type Scalar, scalarOf, type TypedValue, typedValueOf } from "../shared/typed-value.js";

export const COMPARISONS = [
  ["$eq", "is"],
  ["$ne", "is not"],
  ["$iLike", "contains"],
  ["$gt", "is greater than"],
  ["$lt", "is less than"],
] as const;

export type Comparison = (typeof COMPARISONS)[number][0];

export interface Condition extends TypedValue {
  column: string;
  comparison: Comparison;
}

export type Recipients =
  | { kind: "everyone" }
  | { kind: "users"; ids: number[] }
  | { kind: "conditions"; conditions: Condition[] };

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function idOf(one: unknown): number | null {
  const id = isRecord(one) && Object.keys(one).join() === "id" ? one["id"] : one;
  return Number.isSafeInteger(id) ? (id as number) : null;
}

/** Returns the conditions of one column; null if the form cannot show them. */
function conditionsOf([column, tests]: [string, unknown]): Condition[] | null {
  if (column.startsWith("$")) return null;
  const found = Object.entries(isRecord(tests) ? tests : { $eq: tests }).map(([name, value]) => {
    const comparison = COMPARISONS.find(([one]) => one === name)?.[0];
    if (!comparison || !isScalar(value)) return null;
    return { column, comparison, ...typedValueOf(value) };
  });
  return found.length > 0 && found.every((one) => one !== null) ? found : null;
}

/**
 * Returns the form's values.
 * @param scope JSON; "" for all users
 * @returns null if the form cannot show the scope without losing parts of it
 */
export function recipientsOf(scope: string): Recipients | null {
  if (scope.trim() === "") return { kind: "everyone" };
  let parsed: unknown;
  try {
    parsed = JSON.parse(scope);
  } catch {
    return null;
  }
  if (Array.isArray(parsed)) {
    const ids = parsed.map(idOf);
    return ids.every((id) => id !== null) ? { kind: "users", ids } : null;
  }
  if (!isRecord(parsed)) return null;
  const conditions = Object.entries(parsed).map(conditionsOf);
  return conditions.every((one) => one !== null) ? { kind: "conditions", conditions: conditions.flat() } : null;
}

/** Returns the parts of a typed list of IDs. */
export const wordsIn = (text: string): string[] => text.split(/[\s,]/).filter((word) => word !== "");

export const isUserId = (word: string): boolean => /^[1-9]\d{0,14}$/.test(word);

function whereOf(conditions: readonly Condition[]): Record<string, Record<string, Scalar>> {
  const where = new Map<string, Record<string, Scalar>>();
  for (const one of conditions) {
    where.set(one.column, { ...where.get(one.column), [one.comparison]: scalarOf(one) });
  }
  return Object.fromEntries(where);
}

/** @returns the scope as JSON; "" for all users */
export function scopeOf(recipients: Recipients): string {
  if (recipients.kind === "everyone") return "";
  return JSON.stringify(recipients.kind === "users" ? recipients.ids : whereOf(recipients.conditions), null, 2);
}

export const readBack = (conditions: readonly Condition[]): Condition[] =>
  Object.entries(whereOf(conditions)).flatMap((one) => conditionsOf(one) ?? []);

/** Returns the recipients as a sentence. */
export function audienceOf(scope: string): string {
  const recipients = recipientsOf(scope);
  if (recipients === null) return "Users of the app who match the JSON. Anonymous visitors do not receive it.";
  if (recipients.kind === "everyone") return "All users of the app, and anonymous visitors.";
  return `${usersIn(recipients)}. Anonymous visitors do not receive it.`;
}

function usersIn(recipients: Exclude<Recipients, { kind: "everyone" }>): string {
  if (recipients.kind === "users")
    return recipients.ids.length === 0 ? "No user yet" : `Users of the app with the ID ${recipients.ids.join(" or ")}`;
  const { conditions } = recipients;
  return conditions.length === 0
    ? "All signed-in users of the app"
    : `Users of the app whose ${conditions.map(conditionWords).join(" and ")}`;
}

const conditionWords = ({ column, comparison, value }: Condition): string =>
  `${column || "…"} ${COMPARISONS.find(([one]) => one === comparison)![1]} “${value}”`;
