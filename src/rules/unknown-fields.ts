/** Rejects fields of a request's body that are not in its schema (contract, section 3). */
import { ActionError } from "../errors.js";
import { describeValue, isObject } from "./describe-value.js";

/** Allowed fields of an object, or a function that returns them for this object. */
export type ShapeSource = Shape | ((value: Record<string, unknown>) => Shape);

/** Shape of a field. null: any value. An array with one shape: a list of objects. `each`: an object whose values have this shape. */
type FieldShape = ShapeSource | readonly [ShapeSource] | { each: ShapeSource } | null;

const isList = (shape: Exclude<FieldShape, null>): shape is readonly [ShapeSource] => Array.isArray(shape);

export interface Shape {
  fields: Readonly<Record<string, FieldShape>>;
  /** Fields that only the service sets. Requests may contain them; the service ignores them. */
  readOnly?: readonly string[];
}

/** Returns the shape of an object that can have these fields, with any values. */
export const createFlatShape = (fields: Iterable<string>, readOnly: readonly string[] = []): Shape => ({
  fields: Object.fromEntries([...fields].map((name) => [name, null])),
  readOnly,
});

/** Shape of the body of requests that need no body. */
export const NO_FIELDS = createFlatShape([]);

/** Maximum number of characters of an unknown name that are compared with known names: the comparison takes quadratic time. */
const COMPARED_CHARACTERS_MAX = 64;

function computeEditDistance(a: string, b: string): number {
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

/** Returns the known name that is most similar to `name`, as a suggestion for error messages. */
export function findNearestName(name: string, knownFields: readonly string[]): string {
  const lowerCaseName = name.slice(0, COMPARED_CHARACTERS_MAX).toLowerCase();
  const rankedNames = knownFields.map((field) => ({
    field,
    distance: computeEditDistance(lowerCaseName, field.toLowerCase()),
  }));
  return rankedNames.reduce((best, next) => (next.distance < best.distance ? next : best)).field;
}

interface UnknownField {
  path: string;
  name: string;
  knownNames: readonly string[];
}

const createChildPath = (path: string, name: string): string => (path === "" ? name : `${path}.${name}`);

const quotePath = (path: string, name: string): string =>
  /^[\w$]{1,60}$/.test(name) ? createChildPath(path, name) : `${path}[${describeValue(name)}]`;

function findUnknownField(value: unknown, shapeSource: ShapeSource, path: string): UnknownField | null {
  if (!isObject(value)) return null;
  const { fields, readOnly = [] } = typeof shapeSource === "function" ? shapeSource(value) : shapeSource;
  const knownNames = Object.keys(fields);
  for (const [name, inner] of Object.entries(value)) {
    if (readOnly.includes(name)) continue;
    if (!Object.hasOwn(fields, name)) {
      return { path, name, knownNames };
    }
    const shape = fields[name];
    if (!shape) continue;
    const unknownField = findUnknownFieldInValue(inner, shape, createChildPath(path, name));
    if (unknownField) return unknownField;
  }
  return null;
}

function findUnknownFieldInValue(value: unknown, shape: Exclude<FieldShape, null>, path: string): UnknownField | null {
  if (isList(shape)) {
    if (!Array.isArray(value)) return null;
    for (const [at, element] of value.entries()) {
      const unknownField = findUnknownField(element, shape[0], `${path}[${at}]`);
      if (unknownField) return unknownField;
    }
    return null;
  }
  if (!("each" in shape)) return findUnknownField(value, shape, path);
  for (const [name, field] of isObject(value) ? Object.entries(value) : []) {
    const unknownField = findUnknownField(field, shape.each, createChildPath(path, name));
    if (unknownField) return unknownField;
  }
  return null;
}

/** Returns the error REQUEST_INVALID for the first field, at any depth, that the shape does not allow; null if there is none. */
export function createUnknownFieldError(
  body: unknown,
  shapeSource: ShapeSource | readonly [ShapeSource],
  path = "",
): ActionError | null {
  const unknownField = findUnknownFieldInValue(body, shapeSource, path);
  if (!unknownField) return null;
  const topFields = typeof shapeSource === "object" && "fields" in shapeSource ? shapeSource.fields : {};
  const belongsAtTop = Object.hasOwn(topFields, unknownField.name);
  const createNearestAdvice = () =>
    unknownField.knownNames.length === 0
      ? "this request needs no fields"
      : `the nearest known field is ${JSON.stringify(findNearestName(unknownField.name, unknownField.knownNames))}`;
  const advice = belongsAtTop
    ? `set ${JSON.stringify(unknownField.name)} at the top of the body`
    : createNearestAdvice();
  const quotedPath = quotePath(unknownField.path, unknownField.name);
  return new ActionError("REQUEST_INVALID", `${quotedPath} is not a known field; ${advice}`, {}, quotedPath);
}

/**
 * Rejects unknown fields. Must be called after all other checks of the body, so that other faults of the body are reported first.
 * @param path path of `body`, if it is a part of the request's body
 * @throws ActionError REQUEST_INVALID
 */
export function refuseUnknownFields(body: unknown, shapeSource: ShapeSource | readonly [ShapeSource], path = ""): void {
  const fault = createUnknownFieldError(body, shapeSource, path);
  if (fault) throw fault;
}

/** Throws the stored error for an unknown field of the request. Operations call this after all other checks, before they commit. */
export function throwIfUnknownField({ unknownField }: { unknownField?: ActionError }): void {
  if (unknownField) throw unknownField;
}
