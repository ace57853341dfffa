/** Rejects fields of a request body that its schema does not contain (contract, section 3). */
import { ActionError } from "../errors.js";
import { describeValue, isObject } from "./described.js";

/** Allowed fields of an object. They may depend on the object, for example on its type. */
export type ShapeOf = Shape | ((value: Record<string, unknown>) => Shape);

/** What a field may contain: null for no schema, an array for a list of objects, `each` for an object of objects under any name. */
type FieldShape = ShapeOf | readonly [ShapeOf] | { each: ShapeOf } | null;

const isList = (shape: Exclude<FieldShape, null>): shape is readonly [ShapeOf] => Array.isArray(shape);

/** Fields that an object may have. */
export interface Shape {
  fields: Readonly<Record<string, FieldShape>>;
  /** Fields that the service sets and returns; they are ignored in a body. */
  readOnly?: readonly string[];
}

/** Returns the shape of an object whose fields have no schema of their own. */
export const flatShape = (fields: Iterable<string>, readOnly: readonly string[] = []): Shape => ({
  fields: Object.fromEntries([...fields].map((name) => [name, null])),
  readOnly,
});

/** Maximum number of characters of a name that are compared. The rest of a longer name is ignored. */
const COMPARED_CHARACTERS = 64;

/** Returns the Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaceCost = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaceCost, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** Returns the known name that is closest to a name, for the error message. */
export function nearestName(name: string, knownFields: readonly string[]): string {
  const lower = name.slice(0, COMPARED_CHARACTERS).toLowerCase();
  const rankedNames = knownFields.map((field) => ({ one: field, far: editDistance(lower, field.toLowerCase()) }));
  return rankedNames.reduce((best, next) => (next.far < best.far ? next : best)).one;
}

interface UnknownField {
  /** Path of the object that contains the unknown field. */
  path: string;
  name: string;
  known: readonly string[];
}

const childPath = (path: string, name: string): string => (path === "" ? name : `${path}.${name}`);

const shownPath = (path: string, name: string): string =>
  /^[\w$]{1,60}$/.test(name) ? childPath(path, name) : `${path}[${describeValue(name)}]`;

function firstUnknownField(value: unknown, shapeOf: ShapeOf, path: string): UnknownField | null {
  if (!isObject(value)) return null;
  const { fields, readOnly = [] } = typeof shapeOf === "function" ? shapeOf(value) : shapeOf;
  const knownNames = Object.keys(fields);
  for (const [name, inner] of Object.entries(value)) {
    if (readOnly.includes(name)) continue;
    if (!Object.hasOwn(fields, name)) {
      return { path, name, known: knownNames };
    }
    const shape = fields[name];
    if (!shape) continue;
    const unknown = firstInField(inner, shape, childPath(path, name));
    if (unknown) return unknown;
  }
  return null;
}

function firstInField(value: unknown, shape: Exclude<FieldShape, null>, path: string): UnknownField | null {
  if (isList(shape)) {
    if (!Array.isArray(value)) return null;
    for (const [at, element] of value.entries()) {
      const unknown = firstUnknownField(element, shape[0], `${path}[${at}]`);
      if (unknown) return unknown;
    }
    return null;
  }
  if (!("each" in shape)) return firstUnknownField(value, shape, path);
  for (const [name, field] of isObject(value) ? Object.entries(value) : []) {
    const unknown = firstUnknownField(field, shape.each, childPath(path, name));
    if (unknown) return unknown;
  }
  return null;
}

/** Returns REQUEST_INVALID for the first field that is neither known nor read-only, at any depth that has a schema; else null. */
export function unknownFieldIn(body: unknown, shapeOf: ShapeOf | readonly [ShapeOf], path = ""): ActionError | null {
  const unknown = firstInField(body, shapeOf, path);
  if (!unknown) return null;
  const top = typeof shapeOf === "object" && "fields" in shapeOf ? shapeOf.fields : {};
  const belongsAbove = Object.hasOwn(top, unknown.name);
  const advice = belongsAbove
    ? `set ${JSON.stringify(unknown.name)} at the top of the body`
    : `the nearest known field is ${JSON.stringify(nearestName(unknown.name, unknown.known))}`;
  const place = shownPath(unknown.path, unknown.name);
  return new ActionError("REQUEST_INVALID", `${place} is not a known field; ${advice}`, {}, place);
}

/**
 * Rejects unknown fields. Call it after all other checks, so that any other fault is reported first.
 * @param path path of the body if it is a part of another one
 * @throws REQUEST_INVALID as `unknownFieldIn` returns it
 */
export function refuseUnknownFields(body: unknown, shapeOf: ShapeOf | readonly [ShapeOf], path = ""): void {
  const fault = unknownFieldIn(body, shapeOf, path);
  if (fault) throw fault;
}

/**
 * Reports the unknown field that the route has found in the body. Call it in an operation that has several arguments,
 * after all other checks and before the change is committed.
 * @throws the fault
 */
export function reportUnknownField({ unknownField }: { unknownField?: ActionError }): void {
  if (unknownField) throw unknownField;
}
