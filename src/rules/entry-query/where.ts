/** `where`: judges its JSON and compiles it to one SQL condition with parameters. Knows no table; paths are path.ts, tests operators.ts. */
import { isObject } from "../described.js";
import { filterCondition } from "./filters.js";
import { list, refuse, refuseName, WHERE_MAX_DEPTH, WHERE_MAX_OPERATORS } from "./judge.js";
import { TESTS, typeOf, type ValueTest } from "./operators.js";
import { anyAt, type Path, parsePath, type Source } from "./path.js";
import type { Statement } from "./statement.js";

const OF_FIELDS = [...Object.keys(TESTS), "$all", "$not", "$elemMatch"];
const OF_ENTRIES = ["$and", "$or", "$nor", "$not", "$filters"];
const LISTED_MAX = 100;

const allOf = (conditions: readonly string[]): string =>
  conditions.length === 0 ? "true" : `(${conditions.join(" AND ")})`;

/** One compilation: counts what it has met. */
class Compilation {
  private operators = 0;

  constructor(private readonly statement: Statement) {}

  private count(place: string, depth: number): void {
    this.operators += 1;
    if (this.operators > WHERE_MAX_OPERATORS) refuse("where", `of at most ${WHERE_MAX_OPERATORS} operators`, undefined);
    if (depth > WHERE_MAX_DEPTH) refuse(place, `nested at most ${WHERE_MAX_DEPTH} deep`, undefined);
  }

  where(where: unknown, place: string, source: Source, depth: number): string {
    if (!isObject(where)) refuse(place, "an object of columns and operators", where);
    this.count(place, depth);
    const conditions = Object.entries(where).map(([key, value]) => {
      const inside = `${place}.${key}`;
      if (key.startsWith("$")) return this.ofEntry(key, value, place, source, depth);
      return this.field(parsePath(key, inside, source), value, inside, source, depth);
    });
    return allOf(conditions);
  }

  private ofEntry(key: string, value: unknown, place: string, source: Source, depth: number): string {
    const inside = `${place}.${key}`;
    if (key === "$not") return `NOT ${this.where(value, inside, source, depth + 1)}`;
    if (key === "$filters") {
      const filters = list(value, inside, LISTED_MAX);
      return allOf(filters.map((one, at) => this.filter(one, `${inside}[${at}]`, source, depth)));
    }
    if (!OF_ENTRIES.includes(key)) refuseName(place, ["columns", ...OF_ENTRIES], key);
    const inner = list(value, inside, LISTED_MAX, 1).map((one, at) =>
      this.where(one, `${inside}[${at}]`, source, depth + 1),
    );
    if (key === "$and") return allOf(inner);
    return `${key === "$nor" ? "NOT " : ""}(${inner.join(" OR ")})`;
  }

  private filter(filter: unknown, place: string, source: Source, depth: number): string {
    this.count(place, depth);
    return filterCondition(filter, place, source, this.statement);
  }

  private field(path: Path, value: unknown, place: string, source: Source, depth: number): string {
    const keys = isObject(value) ? Object.keys(value) : [];
    if (!keys.some((key) => key.startsWith("$"))) return this.operator("$eq", value, place, path, source, depth, {});
    const operators = value as Record<string, unknown>;
    return allOf(
      keys
        .filter((key) => !(key === "$options" && "$regex" in operators))
        .map((key) => this.operator(key, operators[key], `${place}.${key}`, path, source, depth, operators)),
    );
  }

  private operator(
    key: string,
    operand: unknown,
    place: string,
    path: Path,
    source: Source,
    depth: number,
    siblings: Record<string, unknown>,
  ): string {
    this.count(place, depth);
    if (key === "$not") {
      if (!isObject(operand) || !Object.keys(operand).some((one) => one.startsWith("$"))) {
        refuse(place, "an object of operators", operand);
      }
      return `NOT ${this.field(path, operand, place, source, depth + 1)}`;
    }
    if (key === "$all") return this.all(operand, place, path, source, depth);
    if (key === "$elemMatch") return this.elemMatch(operand, place, path, source, depth);
    const known = Object.hasOwn(TESTS, key) ? TESTS[key] : undefined;
    if (!known) refuseName(place.slice(0, -key.length - 1), OF_FIELDS, key);
    const condition = this.any(path, source, known.operator(operand, place, this.statement, siblings));
    return known.negated || (key === "$exists" && operand === false) ? `NOT ${condition}` : condition;
  }

  private any(path: Path, source: Source, { test, elements, ofNothing }: ValueTest): string {
    return `(${anyAt(path, source, this.statement, test, { elements, ofNothing })})`;
  }

  private all(operand: unknown, place: string, path: Path, source: Source, depth: number): string {
    const operands = list(operand, place, LISTED_MAX);
    if (operands.length === 0) return "false";
    return allOf(
      operands.map((one, at) => {
        const inside = `${place}[${at}]`;
        const isMatch = isObject(one) && Object.keys(one).join() === "$elemMatch";
        if (isMatch) return this.elemMatch(one["$elemMatch"], `${inside}.$elemMatch`, path, source, depth);
        return this.operator("$eq", one, inside, path, source, depth, {});
      }),
    );
  }

  /** Whether one element passes all of it: operators on the element itself, or a where on what is in it. */
  private elemMatch(operand: unknown, place: string, path: Path, source: Source, depth: number): string {
    if (!isObject(operand)) refuse(place, "an object of columns or operators", operand);
    const ofElement = Object.keys(operand).some((key) => OF_FIELDS.includes(key) && key !== "$not");
    const test = (value: string) => {
      const name = this.statement.name();
      const element: Source = { doc: `${name}.v`, entry: null, sees: () => true };
      const condition = ofElement
        ? this.element(operand, place, element, depth + 1)
        : this.where(operand, place, element, depth + 1);
      const items = `CASE WHEN ${typeOf(value)} = 'array' THEN ${value} ELSE '[]' END`;
      return `EXISTS (SELECT FROM jsonb_array_elements(${items}) ${name}(v) WHERE ${condition})`;
    };
    return this.any(path, source, { test, elements: false, ofNothing: false });
  }

  /** Operators on a value that has no path: an element of an array. */
  private element(operators: Record<string, unknown>, place: string, source: Source, depth: number): string {
    return this.field({ own: null, segments: [] }, operators, place, source, depth);
  }
}

/** An SQL condition that is never null. @throws REQUEST_INVALID naming the path, what was expected and what came */
export function compileWhere(where: unknown, source: Source, statement: Statement, place = "where"): string {
  if (where === undefined || where === null) return "true";
  return new Compilation(statement).where(where, place, source, 0);
}
