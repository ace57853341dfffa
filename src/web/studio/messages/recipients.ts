/** Recipients of a notification: the scope that the service stores, as a form shows it. Draws nothing. */

export const COMPARISONS = [
  ["$eq", "is"],
  ["$ne", "is not"],
  ["$iLike", "contains"],
  ["$gt", "is greater than"],
  ["$lt", "is less than"],
] as const;

export type Comparison = (typeof COMPARISONS)[number][0];
type Scalar = string | number | boolean;

export interface Condition {
  column: string;
  comparison: Comparison;
  /** The value as it is typed. */
  value: string;
  /** Type of the stored value. A condition keeps it while its value is typed. */
  kind: "string" | "number" | "boolean";
}

export type Recipients =
  | { kind: "everyone" }
  | { kind: "users"; ids: number[] }
  | { kind: "conditions"; conditions: Condition[] };

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isScalar = (value: unknown): value is Scalar => ["string", "number", "boolean"].includes(typeof value);

function idOf(one: unknown): number | null {
  const id = isRecord(one) && Object.keys(one).join() === "id" ? one["id"] : one;
  return Number.isSafeInteger(id) ? (id as number) : null;
}

/** Conditions of one column; null if the form cannot show them. */
function conditionsOf([column, tests]: [string, unknown]): Condition[] | null {
  if (column.startsWith("$")) return null;
  const found = Object.entries(isRecord(tests) ? tests : { $eq: tests }).map(([name, value]) => {
    const comparison = COMPARISONS.find(([one]) => one === name)?.[0];
    if (!comparison || !isScalar(value)) return null;
    return { column, comparison, value: String(value), kind: typeof value as Condition["kind"] };
  });
  return found.length > 0 && found.every((one) => one !== null) ? found : null;
}

/** @param scope as JSON; "" for all users. @returns null if a form cannot show it without loss */
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

/** The typed value in the stored type, if it can have it. A number for the comparisons that order values. */
function typed({ value, kind, comparison }: Condition): Scalar {
  const isOrder = comparison === "$gt" || comparison === "$lt";
  if ((kind === "number" || isOrder) && value.trim() !== "" && Number.isFinite(Number(value))) return Number(value);
  return kind === "boolean" && (value === "true" || value === "false") ? value === "true" : value;
}

function whereOf(conditions: readonly Condition[]): Record<string, Record<string, Scalar>> {
  const where: Record<string, Record<string, Scalar>> = {};
  for (const one of conditions) where[one.column] = { ...where[one.column], [one.comparison]: typed(one) };
  return where;
}

/** @returns the scope as JSON; "" for all users */
export function scopeOf(recipients: Recipients): string {
  if (recipients.kind === "everyone") return "";
  return JSON.stringify(recipients.kind === "users" ? recipients.ids : whereOf(recipients.conditions), null, 2);
}

export const readBack = (conditions: readonly Condition[]): Condition[] =>
  Object.entries(whereOf(conditions)).flatMap((one) => conditionsOf(one) ?? []);

/** The recipients in words. */
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
