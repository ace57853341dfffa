/**
 * Validates and evaluates the `scope` of a notification. A scope selects the users who can read the notification. It is a `where`, an array
 * of them of which one must match, or null for all users.
 */

import { isObject, nestsDeeperThan } from "./describe-value.js";
import { parseDocumentPath } from "./entry-query/path.js";
import { SqlStatement } from "./entry-query/statement.js";
import { compileWhere } from "./entry-query/where.js";
import { refuseField } from "./fields.js";
import { SCOPE_FILTER_CONDITIONS } from "./notification-scope-filters.js";
import {
  addArrayElements,
  readScopeValues,
  SCOPE_OPERATORS,
  ScopeTestBudget,
  ScopeTestLimitError,
  type ScopeValue,
  type ScopeValueTest,
} from "./notification-scope-values.js";

/** User who is compared with a scope: the entry of an app user, or a person with an account; null for a visitor who is not signed in. */
export type ScopeUser = Readonly<Record<string, unknown>> | null;

/** Conditions on a user, or an array of alternatives: the user is in the scope if at least one of them matches. */
export type NotificationScope = Record<string, unknown> | Record<string, unknown>[];
type ScopeWhere = Record<string, unknown>;

const SCOPE_MAX_BYTES = 16 * 1024;
const SCOPE_MAX_DEPTH = 20;
const SCOPE_MAX_ITEMS = 1_000;

/** Rejects `$regex`, because an untrusted pattern could block this process. In queries, PostgreSQL executes the pattern. */
function rejectRegex(value: unknown, fieldPath: string): void {
  if (Array.isArray(value)) for (const [at, element] of value.entries()) rejectRegex(element, `${fieldPath}[${at}]`);
  if (!isObject(value)) return;
  if ("$regex" in value)
    refuseField(fieldPath, "a condition without $regex; use another operator, such as $iLike", "$regex");
  for (const [name, field] of Object.entries(value)) rejectRegex(field, `${fieldPath}.${name}`);
}

/** Validates a `where` by compiling it to SQL, which is then not used. */
function checkWhere(where: unknown, fieldPath: string): void {
  if (!isObject(where)) refuseField(fieldPath, "an object with conditions on columns of the app user", where);
  compileWhere(where, { documentSql: "", entryAlias: null, canSeeColumn: () => true }, new SqlStatement(), fieldPath);
  rejectRegex(where, fieldPath);
}

/** Validates a scope. A number selects the app user with this ID; null selects all users. @throws REQUEST_INVALID */
export function parseNotificationScope(value: unknown): NotificationScope | null {
  if (value === undefined || value === null) return null;
  if (nestsDeeperThan(value, SCOPE_MAX_DEPTH) || Buffer.byteLength(JSON.stringify(value)) > SCOPE_MAX_BYTES) {
    return refuseField("scope", `JSON of at most ${SCOPE_MAX_BYTES} bytes and ${SCOPE_MAX_DEPTH} levels`, value);
  }
  const list = (Array.isArray(value) ? value : [value]).map((element) =>
    Number.isSafeInteger(element) ? { id: element } : element,
  );
  if (list.length > SCOPE_MAX_ITEMS) refuseField("scope", `an array of at most ${SCOPE_MAX_ITEMS} items`, value);
  for (const [index, element] of list.entries())
    checkWhere(element, Array.isArray(value) ? `scope[${index}]` : "scope");
  return (Array.isArray(value) ? list : list[0]) as NotificationScope;
}

/** Evaluates one `where` on one document. @throws ScopeTestLimitError if the evaluation exceeds the budget */
class ScopeEvaluator {
  private readonly budget = new ScopeTestBudget();

  matchesWhere(where: ScopeWhere, document: ScopeValue): boolean {
    return Object.entries(where).every(([name, inner]) => {
      if (!name.startsWith("$")) return this.matchesField(document, parseColumnPath(name), inner);
      if (name === "$not") return !this.matchesWhere(inner as ScopeWhere, document);
      const operands = inner as ScopeWhere[];
      if (name === "$filters") return operands.every((filter) => this.matchesFilter(filter, document));
      if (name === "$and") return operands.every((conditions) => this.matchesWhere(conditions, document));
      return operands.some((conditions) => this.matchesWhere(conditions, document)) !== (name === "$nor");
    });
  }

  private matchesField(document: ScopeValue, segments: readonly string[], tests: unknown): boolean {
    const values = readScopeValues(document, segments, this.budget);
    const hasOperators = isObject(tests) && Object.keys(tests).some((name) => name.startsWith("$"));
    // An empty path means that `document` is an array element, which $elemMatch tests. If this element is an array too, only a nested
    // $elemMatch tests its elements.
    const isElement = segments.length === 0;
    if (!hasOperators) return this.matchesOperator("$eq", tests, values, isElement);
    return Object.entries(tests).every(([name, expected]) => {
      if (name === "$not") return !this.matchesField(document, segments, expected);
      return this.matchesOperator(name, expected, values, isElement);
    });
  }

  private matchesOperator(name: string, expected: unknown, values: readonly ScopeValue[], isElement: boolean): boolean {
    if (name === "$elemMatch") return this.matchesAnyElement(expected as ScopeWhere, values);
    if (name === "$all") {
      const operands = expected as unknown[];
      return operands.length > 0 && operands.every((element) => this.matchesAllItem(element, values, isElement));
    }
    const { test, testsElements, negated = false } = SCOPE_OPERATORS[name]!;
    const isMatch = this.someValuePasses(
      testsElements && !isElement ? addArrayElements(values) : values,
      test(expected),
      expected,
    );
    return isMatch !== (negated || (name === "$exists" && expected === false));
  }

  private matchesAllItem(element: unknown, values: readonly ScopeValue[], isElement: boolean): boolean {
    const isElemMatch = isObject(element) && Object.keys(element).join() === "$elemMatch";
    return isElemMatch
      ? this.matchesAnyElement(element["$elemMatch"] as ScopeWhere, values)
      : this.matchesOperator("$eq", element, values, isElement);
  }

  private matchesAnyElement(where: ScopeWhere, values: readonly ScopeValue[]): boolean {
    const hasElementOperator = Object.keys(where).some(
      (name) => name.startsWith("$") && !ENTRY_OPERATORS.includes(name),
    );
    const matchesElement = (element: ScopeValue) =>
      hasElementOperator ? this.matchesField(element, [], where) : this.matchesWhere(where, element);
    return values.some((value) => Array.isArray(value) && this.someValuePasses(value, matchesElement));
  }

  private matchesFilter({ column, condition, value }: ScopeWhere, document: ScopeValue): boolean {
    const {
      createTest: test,
      negated = false,
      comparesWholeValue = false,
    } = SCOPE_FILTER_CONDITIONS[condition as string]!;
    const values = readScopeValues(document, parseColumnPath(column), this.budget);
    return this.someValuePasses(comparesWholeValue ? values : addArrayElements(values), test(value), value) !== negated;
  }

  /** True if a value passes the test. Each test reduces the budget; if `expected` is an array, each of its elements does too. */
  private someValuePasses(values: readonly ScopeValue[], test: ScopeValueTest, expected?: unknown): boolean {
    const stepCount = Array.isArray(expected) ? 1 + expected.length : 1;
    return values.some((value) => {
      this.budget.countStep(stepCount);
      return test(value);
    });
  }
}

const ENTRY_OPERATORS = ["$and", "$or", "$nor", "$not", "$filters"];

function parseColumnPath(column: unknown): readonly string[] {
  const path = parseDocumentPath(column, "scope", { entryAlias: null });
  return path.entryField === null ? path.segments : [path.entryField];
}

/**
 * True if the scope is null, or if one of its `where` matches the user. An anonymous visitor (null) matches no `where`. False if a `where`
 * exceeds the budget before one matches.
 * @param scope result of `parseNotificationScope`
 */
export function isUserInScope(scope: NotificationScope | null, user: ScopeUser): boolean {
  if (scope === null) return true;
  if (user === null) return false;
  try {
    return [scope].flat().some((where) => new ScopeEvaluator().matchesWhere(where, user));
  } catch (error) {
    if (error instanceof ScopeTestLimitError) return false;
    throw error;
  }
}
