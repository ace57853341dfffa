/** Refuses the fields of a body that its schema does not have (contract, section 3). Knows no resource. */
import { ActionError } from "../errors.js";
import { described, isObject } from "./described.js";

/** What an object may hold. `null`: a value without a schema of its own; an array: a list of such objects. */
export interface Shape {
  fields: Readonly<Record<string, Shape | readonly [Shape] | null>>;
  /** Fields of the resource as it is read that the service sets itself; they are ignored. */
  readOnly?: readonly string[];
}

/** The shape of an object whose values have no schema. */
export const flat = (fields: Iterable<string>, readOnly: readonly string[] = []): Shape => ({
  fields: Object.fromEntries([...fields].map((name) => [name, null])),
  readOnly,
});

/** Names that are longer are compared by their beginning. */
const COMPARED_CHARACTERS = 64;

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** The known name that is closest to another one. */
export function nearestName(name: string, known: readonly string[]): string {
  const lower = name.slice(0, COMPARED_CHARACTERS).toLowerCase();
  const ranked = known.map((one) => ({ one, far: distance(lower, one.toLowerCase()) }));
  return ranked.reduce((best, next) => (next.far < best.far ? next : best)).one;
}

interface Unknown {
  path: string;
  name: string;
  known: readonly string[];
}

const childPath = (path: string, name: string): string => (path === "" ? name : `${path}.${name}`);

function firstUnknown(value: unknown, { fields, readOnly = [] }: Shape, path: string): Unknown | null {
  if (!isObject(value)) return null;
  const known = Object.keys(fields);
  for (const [name, inner] of Object.entries(value)) {
    if (readOnly.includes(name)) continue;
    if (!Object.hasOwn(fields, name)) {
      const shown = /^\w{1,60}$/.test(name) ? childPath(path, name) : `${path}[${described(name)}]`;
      return { path: shown, name, known };
    }
    const shape = fields[name];
    if (!shape) continue;
    const found = Array.isArray(shape)
      ? firstInList(inner, shape[0] as Shape, childPath(path, name))
      : firstUnknown(inner, shape as Shape, childPath(path, name));
    if (found) return found;
  }
  return null;
}

function firstInList(value: unknown, shape: Shape, path: string): Unknown | null {
  if (!Array.isArray(value)) return null;
  for (const [at, one] of value.entries()) {
    const found = firstUnknown(one, shape, `${path}[${at}]`);
    if (found) return found;
  }
  return null;
}

/**
 * To be called last: any other fault is reported first.
 * @param path of the body itself, where it is a part of one
 * @throws REQUEST_INVALID for the first field that is neither known nor read-only, at any depth that has a schema
 */
export function refuseUnknownFields(body: unknown, shape: Shape, path = ""): void {
  const unknown = firstUnknown(body, shape, path);
  if (!unknown) return;
  const belongsAbove = !unknown.known.includes(unknown.name) && Object.hasOwn(shape.fields, unknown.name);
  const advice = belongsAbove
    ? `set ${JSON.stringify(unknown.name)} at the top of the body`
    : `the nearest known field is ${JSON.stringify(nearestName(unknown.name, unknown.known))}`;
  throw new ActionError("REQUEST_INVALID", `${unknown.path} is not a known field; ${advice}`);
}
