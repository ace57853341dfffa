/** Decides who receives a notification: a `where` on the app's users, or a list of which one must match. */

import { isObject, nestsDeeperThan } from "./described.js";
import { parsePath } from "./entry-query/path.js";
import { Statement } from "./entry-query/statement.js";
import { compileWhere } from "./entry-query/where.js";
import { refuseField } from "./fields.js";
import { SCOPE_CONDITIONS } from "./scope-filters.js";
import {
  type FoundValue,
  LookBudget,
  SCOPE_OPERATORS,
  TooManyLooks,
  type ValueTest,
  valuesAt,
  withElements,
} from "./scope-values.js";

/** Values of the app's user; null for an anonymous visitor. */
export type ScopeUser = Readonly<Record<string, unknown>> | null;

export type Scope = Record<string, unknown> | Record<string, unknown>[];
type ScopeWhere = Record<string, unknown>;

const SCOPE_MAX_BYTES = 16 * 1024;
const SCOPE_MAX_DEPTH = 20;
const LIST_MAX = 1_000;

/**
 * Rejects `$regex`: an untrusted pattern could block all other requests of this process. Queries of entries run patterns
 * in PostgreSQL.
 */
function refuseRegex(value: unknown, fieldPath: string): void {
  if (Array.isArray(value)) for (const [at, element] of value.entries()) refuseRegex(element, `${fieldPath}[${at}]`);
  if (!isObject(value)) return;
  if ("$regex" in value) refuseField(fieldPath, "tested by another operator than $regex, $iLike perhaps", "$regex");
  for (const [name, field] of Object.entries(value)) refuseRegex(field, `${fieldPath}.${name}`);
}

/** Validates the `where` with the same function as queries of data sources. */
function checkWhere(where: unknown, fieldPath: string): void {
  if (!isObject(where)) refuseField(fieldPath, "a where: an object of tests", where);
  compileWhere(where, { doc: "", entry: null, sees: () => true }, new Statement(), fieldPath);
  refuseRegex(where, fieldPath);
}

/** A number in a list is a user's ID. null: all users. @throws REQUEST_INVALID naming the field */
export function parseScope(value: unknown): Scope | null {
  if (value === undefined || value === null) return null;
  if (nestsDeeperThan(value, SCOPE_MAX_DEPTH) || Buffer.byteLength(JSON.stringify(value)) > SCOPE_MAX_BYTES) {
    return refuseField("scope", `at most ${SCOPE_MAX_BYTES} bytes of JSON and ${SCOPE_MAX_DEPTH} levels`, value);
  }
  const list = (Array.isArray(value) ? value : [value]).map((element) =>
    Number.isSafeInteger(element) ? { id: element } : element,
  );
  if (list.length > LIST_MAX) refuseField("scope", `a list of at most ${LIST_MAX}`, value);
  for (const [index, element] of list.entries())
    checkWhere(element, Array.isArray(value) ? `scope[${index}]` : "scope");
  return (Array.isArray(value) ? list : list[0]) as Scope;
}

/** Compares one scope with one document, and limits the number of tests. */
class ScopeTrial {
  private readonly looks = new LookBudget();

  fits(where: ScopeWhere, document: FoundValue): boolean {
    return Object.entries(where).every(([name, inner]) => {
      if (!name.startsWith("$")) return this.field(document, parsePathOf(name), inner);
      if (name === "$not") return !this.fits(inner as ScopeWhere, document);
      const all = inner as ScopeWhere[];
      if (name === "$filters") return all.every((filter) => this.filter(filter, document));
      if (name === "$and") return all.every((conditions) => this.fits(conditions, document));
      return all.some((conditions) => this.fits(conditions, document)) !== (name === "$nor");
    });
  }

  private field(document: FoundValue, segments: readonly string[], tests: unknown): boolean {
    const values = valuesAt(document, segments, this.looks);
    const isTests = isObject(tests) && Object.keys(tests).some((name) => name.startsWith("$"));
    // An element has no path, and what is in it is not looked at.
    const isElement = segments.length === 0;
    if (!isTests) return this.passes("$eq", tests, values, isElement);
    return Object.entries(tests).every(([name, expected]) => {
      if (name === "$not") return !this.field(document, segments, expected);
      return this.passes(name, expected, values, isElement);
    });
  }

  private passes(name: string, expected: unknown, values: readonly FoundValue[], isElement: boolean): boolean {
    if (name === "$elemMatch") return this.elementFits(expected as ScopeWhere, values);
    if (name === "$all") {
      const all = expected as unknown[];
      return all.length > 0 && all.every((element) => this.isAmong(element, values, isElement));
    }
    const { test, ofElements, negated = false } = SCOPE_OPERATORS[name]!;
    const isMatch = this.any(ofElements && !isElement ? withElements(values) : values, test(expected), expected);
    return isMatch !== (negated || (name === "$exists" && expected === false));
  }

  private isAmong(element: unknown, values: readonly FoundValue[], isElement: boolean): boolean {
    const isMatch = isObject(element) && Object.keys(element).join() === "$elemMatch";
    return isMatch
      ? this.elementFits(element["$elemMatch"] as ScopeWhere, values)
      : this.passes("$eq", element, values, isElement);
  }

  private elementFits(where: ScopeWhere, values: readonly FoundValue[]): boolean {
    const isOfElement = Object.keys(where).some((name) => name.startsWith("$") && !OF_ENTRIES.includes(name));
    const fitsElement = (element: FoundValue) =>
      isOfElement ? this.field(element, [], where) : this.fits(where, element);
    return values.some((value) => Array.isArray(value) && this.any(value, fitsElement));
  }

  private filter({ column, condition, value }: ScopeWhere, document: FoundValue): boolean {
    const { test, negated = false, whole = false } = SCOPE_CONDITIONS[condition as string]!;
    const values = valuesAt(document, parsePathOf(column), this.looks);
    return this.any(whole ? values : withElements(values), test(value), value) !== negated;
  }

  /** Tests the values. @param expected operand of the test; each element of a list counts as one comparison */
  private any(values: readonly FoundValue[], test: ValueTest, expected?: unknown): boolean {
    const stepCount = Array.isArray(expected) ? 1 + expected.length : 1;
    return values.some((value) => {
      this.looks.countStep(stepCount);
      return test(value);
    });
  }
}

const OF_ENTRIES = ["$and", "$or", "$nor", "$not", "$filters"];

function parsePathOf(column: unknown): readonly string[] {
  const path = parsePath(column, "scope", { entry: null });
  return path.own === null ? path.segments : [path.own];
}

/**
 * True if a notification with the scope, which `parseScope` has validated, is for the user. A scope never matches an
 * anonymous visitor.
 */
export function isUserInScope(scope: Scope | null, user: ScopeUser): boolean {
  if (scope === null) return true;
  if (user === null) return false;
  try {
    return [scope].flat().some((where) => new ScopeTrial().fits(where, user));
  } catch (error) {
    if (error instanceof TooManyLooks) return false;
    throw error;
  }
}
