/**
 * Compiles a `where` to one SQL condition with parameters, and validates it. path.ts handles paths, operators.ts operators such as `$eq`.
 */
import { isObject } from "../describe-value.js";
import { refuseField } from "../fields.js";
import {
  rejectUnknownName,
  requireList,
  throwQueryLimitError,
  WHERE_MAX_DEPTH,
  WHERE_MAX_OPERATORS,
} from "./checks.js";
import { compileColumnFilter } from "./filters.js";
import { jsonTypeSql, type OperatorTest, QUERY_OPERATORS } from "./operators.js";
import { anyValuePassesSql, type Path, parseDocumentPath, type QueriedDocument } from "./path.js";
import type { SqlStatement } from "./statement.js";

const COLUMN_OPERATORS = [...Object.keys(QUERY_OPERATORS), "$all", "$not", "$elemMatch"];
const ENTRY_OPERATORS = ["$and", "$or", "$nor", "$not", "$filters"];
const CONDITIONS_PER_LIST_MAX = 100;
/** Maximum length of the SQL condition. PostgreSQL plans it with up to 2.5 KB of memory for each character, and without a timeout. */
const CONDITION_MAX_CHARACTERS = 80_000;

const joinWithAnd = (conditions: readonly string[]): string =>
  conditions.length === 0 ? "true" : `(${conditions.join(" AND ")})`;

/** Comparisons of the same column that are compiled to one range, because PostgreSQL can use an index for a range. */
const RANGE_OPERATORS = ["$gt", "$gte", "$lt", "$lte"];

/** Value to which an operator applies, and the nesting depth of the operator in the `where`. */
interface OperatorTarget {
  path: Path;
  source: QueriedDocument;
  depth: number;
}

class WhereCompiler {
  private operatorCount = 0;

  /** @param rootPath path of the whole `where` in the request, for error messages */
  constructor(
    private readonly statement: SqlStatement,
    private readonly rootPath: string,
  ) {}

  private countOperator(fieldPath: string, depth: number): void {
    this.operatorCount += 1;
    if (this.operatorCount > WHERE_MAX_OPERATORS)
      throwQueryLimitError(`${this.rootPath} must have at most ${WHERE_MAX_OPERATORS} operators`);
    if (depth > WHERE_MAX_DEPTH) throwQueryLimitError(`${fieldPath} must nest at most ${WHERE_MAX_DEPTH} levels`);
  }

  compileObject(where: unknown, fieldPath: string, source: QueriedDocument, depth: number): string {
    if (!isObject(where)) refuseField(fieldPath, 'an object with conditions, such as {"Status": "open"}', where);
    this.countOperator(fieldPath, depth);
    const conditions = Object.entries(where).map(([key, value]) => {
      const innerPath = `${fieldPath}.${key}`;
      if (key.startsWith("$")) return this.compileEntryOperator(key, value, fieldPath, source, depth);
      return this.compileField(parseDocumentPath(key, innerPath, source), value, innerPath, source, depth);
    });
    return joinWithAnd(conditions);
  }

  private compileEntryOperator(
    key: string,
    value: unknown,
    fieldPath: string,
    source: QueriedDocument,
    depth: number,
  ): string {
    const innerPath = `${fieldPath}.${key}`;
    if (key === "$not") return `NOT ${this.compileObject(value, innerPath, source, depth + 1)}`;
    if (key === "$filters") {
      const filters = requireList(value, innerPath, CONDITIONS_PER_LIST_MAX);
      return joinWithAnd(
        filters.map((filter, index) => this.compileFilterCondition(filter, `${innerPath}[${index}]`, source, depth)),
      );
    }
    if (!ENTRY_OPERATORS.includes(key)) rejectUnknownName(fieldPath, ["columns", ...ENTRY_OPERATORS], key);
    const innerConditions = requireList(value, innerPath, CONDITIONS_PER_LIST_MAX, 1).map((element, index) =>
      this.compileObject(element, `${innerPath}[${index}]`, source, depth + 1),
    );
    if (key === "$and") return joinWithAnd(innerConditions);
    return `${key === "$nor" ? "NOT " : ""}(${innerConditions.join(" OR ")})`;
  }

  private compileFilterCondition(filter: unknown, fieldPath: string, source: QueriedDocument, depth: number): string {
    this.countOperator(fieldPath, depth);
    return compileColumnFilter(filter, fieldPath, source, this.statement);
  }

  private compileField(path: Path, value: unknown, fieldPath: string, source: QueriedDocument, depth: number): string {
    const target: OperatorTarget = { path, source, depth };
    const keys = isObject(value) ? Object.keys(value) : [];
    if (!keys.some((key) => key.startsWith("$"))) return this.compileOperator("$eq", { $eq: value }, fieldPath, target);
    const operators = value as Record<string, unknown>;
    const rangeKeys = keys.filter((key) => RANGE_OPERATORS.includes(key));
    const otherKeys = keys.filter(
      (key) => !RANGE_OPERATORS.includes(key) && !(key === "$options" && "$regex" in operators),
    );
    const conditions = otherKeys.map((key) => this.compileOperator(key, operators, `${fieldPath}.${key}`, target));
    if (rangeKeys.length > 0) {
      const tests = rangeKeys.map((key) => this.compileTest(key, operators, `${fieldPath}.${key}`, target));
      conditions.push(this.anyValueSql(target, tests));
    }
    return joinWithAnd(conditions);
  }

  private compileTest(
    key: string,
    operators: Record<string, unknown>,
    fieldPath: string,
    { depth }: OperatorTarget,
  ): OperatorTest {
    this.countOperator(fieldPath, depth);
    return QUERY_OPERATORS[key]!.operator(operators[key], fieldPath, this.statement, operators);
  }

  private compileOperator(
    key: string,
    operators: Record<string, unknown>,
    fieldPath: string,
    target: OperatorTarget,
  ): string {
    const operand = operators[key];
    if (key === "$not") return `NOT ${this.compileNot(operand, fieldPath, target)}`;
    if (key === "$all") return this.compileAll(operand, fieldPath, target);
    if (key === "$elemMatch") return this.compileElemMatch(operand, fieldPath, target);
    if (!Object.hasOwn(QUERY_OPERATORS, key))
      rejectUnknownName(fieldPath.slice(0, -key.length - 1), COLUMN_OPERATORS, key);
    const condition = this.anyValueSql(target, [this.compileTest(key, operators, fieldPath, target)]);
    return QUERY_OPERATORS[key]!.negated || (key === "$exists" && operand === false) ? `NOT ${condition}` : condition;
  }

  private anyValueSql({ path, source }: OperatorTarget, tests: readonly OperatorTest[]): string {
    const testList = tests.map(({ test }) => test);
    return anyValuePassesSql(path, source, this.statement, testList, tests[0]!);
  }

  private compileNot(operand: unknown, fieldPath: string, { path, source, depth }: OperatorTarget): string {
    this.countOperator(fieldPath, depth);
    if (isObject(operand) && Object.keys(operand).some((operator) => operator.startsWith("$"))) {
      return this.compileField(path, operand, fieldPath, source, depth + 1);
    }
    return refuseField(fieldPath, 'an object with operators, such as {"$gt": 5}', operand);
  }

  private compileAll(operand: unknown, fieldPath: string, target: OperatorTarget): string {
    this.countOperator(fieldPath, target.depth);
    const operands = requireList(operand, fieldPath, CONDITIONS_PER_LIST_MAX);
    if (operands.length === 0) return "false";
    return joinWithAnd(
      operands.map((operand, n) => {
        const innerPath = `${fieldPath}[${n}]`;
        const isElemMatch = isObject(operand) && Object.keys(operand).join() === "$elemMatch";
        if (isElemMatch) return this.compileElemMatch(operand["$elemMatch"], `${innerPath}.$elemMatch`, target);
        return this.compileOperator("$eq", { $eq: operand }, innerPath, target);
      }),
    );
  }

  /** Compiles $elemMatch. The operand has operators for an array's element, or is a `where` for an element that is an object. */
  private compileElemMatch(operand: unknown, fieldPath: string, target: OperatorTarget): string {
    this.countOperator(fieldPath, target.depth);
    if (!isObject(operand)) refuseField(fieldPath, "an object with operators or conditions on columns", operand);
    const isElementTest = Object.keys(operand).some((key) => COLUMN_OPERATORS.includes(key) && key !== "$not");
    const test = (value: string) => {
      const elementAlias = this.statement.createAlias();
      const element: QueriedDocument = { documentSql: `${elementAlias}.v`, entryAlias: null, canSeeColumn: () => true };
      // The empty path is the element itself.
      const condition = isElementTest
        ? this.compileField({ entryField: null, segments: [] }, operand, fieldPath, element, target.depth + 1)
        : this.compileObject(operand, fieldPath, element, target.depth + 1);
      const items = `CASE WHEN ${jsonTypeSql(value)} = 'array' THEN ${value} ELSE '[]' END`;
      return `EXISTS (SELECT FROM jsonb_array_elements(${items}) ${elementAlias}(v) WHERE ${condition})`;
    };
    return this.anyValueSql(target, [{ test, testsElements: false, matchesMissing: false }]);
  }
}

/**
 * Compiles a `where` to an SQL condition that is never NULL.
 * @throws REQUEST_INVALID with the path of the invalid field, the expected and the received value
 */
export function compileWhere(
  where: unknown,
  source: QueriedDocument,
  statement: SqlStatement,
  fieldPath = "where",
): string {
  if (where === undefined || where === null) return "true";
  const condition = new WhereCompiler(statement, fieldPath).compileObject(where, fieldPath, source, 0);
  if (condition.length > CONDITION_MAX_CHARACTERS) {
    throwQueryLimitError(`${fieldPath} is too large; use fewer conditions, and fewer and shorter paths`);
  }
  return condition;
}
