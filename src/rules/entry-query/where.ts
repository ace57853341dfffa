/**
 * Validates `where` and compiles it to one SQL condition with parameters. Paths of columns are in path.ts, and operators
 * such as `$eq` in operators.ts.
 */
import { isObject } from "../described.js";
import { refuseField } from "../fields.js";
import { compileFilter } from "./filters.js";
import { checkList, refuseName, throwLimitError, WHERE_MAX_DEPTH, WHERE_MAX_OPERATORS } from "./judge.js";
import { OPERATOR_TESTS, typeSql, type ValueTest } from "./operators.js";
import { anyValueAt, type Path, parsePath, type Source } from "./path.js";
import type { Statement } from "./statement.js";

const OF_FIELDS = [...Object.keys(OPERATOR_TESTS), "$all", "$not", "$elemMatch"];
const OF_ENTRIES = ["$and", "$or", "$nor", "$not", "$filters"];
const LISTED_MAX = 100;
/**
 * Maximum length of the SQL condition. The planner of PostgreSQL uses up to 2.5 KB of memory for each character, and the
 * statement timeout does not stop it.
 */
const CONDITION_MAX_CHARACTERS = 80_000;

const joinWithAnd = (conditions: readonly string[]): string =>
  conditions.length === 0 ? "true" : `(${conditions.join(" AND ")})`;

/** Operators that are combined to one range, for which PostgreSQL can use an index. */
const RANGE_OPERATORS = ["$gt", "$gte", "$lt", "$lte"];

/** Path to which operators apply, and the document that it belongs to. */
interface Field {
  path: Path;
  source: Source;
  depth: number;
}

/** Compiles one `where`, and counts its operators. */
class WhereCompilation {
  private operators = 0;

  constructor(private readonly statement: Statement) {}

  private count(fieldPath: string, depth: number): void {
    this.operators += 1;
    if (this.operators > WHERE_MAX_OPERATORS)
      throwLimitError(`where must have at most ${WHERE_MAX_OPERATORS} operators`);
    if (depth > WHERE_MAX_DEPTH) throwLimitError(`${fieldPath} must nest at most ${WHERE_MAX_DEPTH} levels`);
  }

  compileObject(where: unknown, fieldPath: string, source: Source, depth: number): string {
    if (!isObject(where)) refuseField(fieldPath, 'an object with conditions, such as {"Status": "open"}', where);
    this.count(fieldPath, depth);
    const conditions = Object.entries(where).map(([key, value]) => {
      const innerPath = `${fieldPath}.${key}`;
      if (key.startsWith("$")) return this.combinedCondition(key, value, fieldPath, source, depth);
      return this.compileField(parsePath(key, innerPath, source), value, innerPath, source, depth);
    });
    return joinWithAnd(conditions);
  }

  private combinedCondition(key: string, value: unknown, fieldPath: string, source: Source, depth: number): string {
    const innerPath = `${fieldPath}.${key}`;
    if (key === "$not") return `NOT ${this.compileObject(value, innerPath, source, depth + 1)}`;
    if (key === "$filters") {
      const filters = checkList(value, innerPath, LISTED_MAX);
      return joinWithAnd(filters.map((filter, index) => this.filter(filter, `${innerPath}[${index}]`, source, depth)));
    }
    if (!OF_ENTRIES.includes(key)) refuseName(fieldPath, ["columns", ...OF_ENTRIES], key);
    const innerConditions = checkList(value, innerPath, LISTED_MAX, 1).map((element, index) =>
      this.compileObject(element, `${innerPath}[${index}]`, source, depth + 1),
    );
    if (key === "$and") return joinWithAnd(innerConditions);
    return `${key === "$nor" ? "NOT " : ""}(${innerConditions.join(" OR ")})`;
  }

  private filter(filter: unknown, fieldPath: string, source: Source, depth: number): string {
    this.count(fieldPath, depth);
    return compileFilter(filter, fieldPath, source, this.statement);
  }

  private compileField(path: Path, value: unknown, fieldPath: string, source: Source, depth: number): string {
    const at: Field = { path, source, depth };
    const keys = isObject(value) ? Object.keys(value) : [];
    if (!keys.some((key) => key.startsWith("$"))) return this.operator("$eq", { $eq: value }, fieldPath, at);
    const operators = value as Record<string, unknown>;
    const rangeKeys = keys.filter((key) => RANGE_OPERATORS.includes(key));
    const otherKeys = keys.filter(
      (key) => !RANGE_OPERATORS.includes(key) && !(key === "$options" && "$regex" in operators),
    );
    const conditions = otherKeys.map((key) => this.operator(key, operators, `${fieldPath}.${key}`, at));
    if (rangeKeys.length > 0) {
      const tests = rangeKeys.map((key) => this.test(key, operators, `${fieldPath}.${key}`, at));
      conditions.push(this.anyValueSql(at, tests));
    }
    return joinWithAnd(conditions);
  }

  private test(key: string, operators: Record<string, unknown>, fieldPath: string, { depth }: Field): ValueTest {
    this.count(fieldPath, depth);
    return OPERATOR_TESTS[key]!.operator(operators[key], fieldPath, this.statement, operators);
  }

  private operator(key: string, operators: Record<string, unknown>, fieldPath: string, field: Field): string {
    const operand = operators[key];
    if (key === "$not") return `NOT ${this.not(operand, fieldPath, field)}`;
    if (key === "$all") return this.all(operand, fieldPath, field);
    if (key === "$elemMatch") return this.elemMatch(operand, fieldPath, field);
    if (!Object.hasOwn(OPERATOR_TESTS, key)) refuseName(fieldPath.slice(0, -key.length - 1), OF_FIELDS, key);
    const condition = this.anyValueSql(field, [this.test(key, operators, fieldPath, field)]);
    return OPERATOR_TESTS[key]!.negated || (key === "$exists" && operand === false) ? `NOT ${condition}` : condition;
  }

  /** Returns SQL that is true if some value at the path passes each test. */
  private anyValueSql({ path, source }: Field, tests: readonly ValueTest[]): string {
    const testList = tests.map(({ test }) => test);
    return anyValueAt(path, source, this.statement, testList, tests[0]!);
  }

  private not(operand: unknown, fieldPath: string, { path, source, depth }: Field): string {
    this.count(fieldPath, depth);
    if (isObject(operand) && Object.keys(operand).some((operator) => operator.startsWith("$"))) {
      return this.compileField(path, operand, fieldPath, source, depth + 1);
    }
    return refuseField(fieldPath, 'an object with operators, such as {"$gt": 5}', operand);
  }

  private all(operand: unknown, fieldPath: string, field: Field): string {
    this.count(fieldPath, field.depth);
    const operands = checkList(operand, fieldPath, LISTED_MAX);
    if (operands.length === 0) return "false";
    return joinWithAnd(
      operands.map((operand, n) => {
        const innerPath = `${fieldPath}[${n}]`;
        const isMatch = isObject(operand) && Object.keys(operand).join() === "$elemMatch";
        if (isMatch) return this.elemMatch(operand["$elemMatch"], `${innerPath}.$elemMatch`, field);
        return this.operator("$eq", { $eq: operand }, innerPath, field);
      }),
    );
  }

  /** Returns SQL that is true if an element of a list matches. The operand has operators on the element, or is a `where` for it. */
  private elemMatch(operand: unknown, fieldPath: string, field: Field): string {
    this.count(fieldPath, field.depth);
    if (!isObject(operand)) refuseField(fieldPath, "an object with operators or conditions on columns", operand);
    const isElementTest = Object.keys(operand).some((key) => OF_FIELDS.includes(key) && key !== "$not");
    const test = (value: string) => {
      const name = this.statement.uniqueName();
      const element: Source = { doc: `${name}.v`, entry: null, sees: () => true };
      // The empty path means the element itself.
      const condition = isElementTest
        ? this.compileField({ own: null, segments: [] }, operand, fieldPath, element, field.depth + 1)
        : this.compileObject(operand, fieldPath, element, field.depth + 1);
      const items = `CASE WHEN ${typeSql(value)} = 'array' THEN ${value} ELSE '[]' END`;
      return `EXISTS (SELECT FROM jsonb_array_elements(${items}) ${name}(v) WHERE ${condition})`;
    };
    return this.anyValueSql(field, [{ test, elements: false, matchesMissing: false }]);
  }
}

/**
 * Compiles a `where` to an SQL condition that is never NULL.
 * @throws REQUEST_INVALID with the path of the invalid field, the expected and the received value
 */
export function compileWhere(where: unknown, source: Source, statement: Statement, place = "where"): string {
  if (where === undefined || where === null) return "true";
  const condition = new WhereCompilation(statement).compileObject(where, place, source, 0);
  if (condition.length > CONDITION_MAX_CHARACTERS) {
    throwLimitError(`${place} is too large: use fewer conditions, and fewer and shorter paths`);
  }
  return condition;
}
