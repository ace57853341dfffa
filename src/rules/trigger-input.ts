/** Validates the field `triggers` of an action, and converts triggers to the form in which they are stored. */
import type { AnalyticsWhere, Environment, HttpWhere, LogWhere, Trigger, TriggerType } from "../data/action-types.js";
import { describeValue, findUnstorableCharacter, isObject, nestsDeeperThan } from "./describe-value.js";
import { findHttpWhereFault, findRepeatedRouteFault, HTTP_WHERE_FIELDS, toStoredHttpWhere } from "./http/where.js";
import { ANALYTICS_EVENT_TYPES } from "./trigger-match.js";
import { createFlatShape, type Shape } from "./unknown-fields.js";

export const ENVIRONMENTS: readonly Environment[] = ["server", "client", "any"];

const TRIGGER_TYPES_IN_SPECIFICATION: readonly TriggerType[] = ["manual", "schedule", "log", "analytics"];
export const TRIGGER_TYPES_NOT_IN_SPECIFICATION: readonly TriggerType[] = ["http"];
export const TRIGGER_TYPES: readonly TriggerType[] = [
  ...TRIGGER_TYPES_IN_SPECIFICATION,
  ...TRIGGER_TYPES_NOT_IN_SPECIFICATION,
];

const FORBIDDEN_TRIGGER_TYPES: Record<Environment, readonly TriggerType[]> = {
  server: ["analytics"],
  client: ["schedule", "log", "http"],
  any: ["http"],
};

export const ACTION_TRIGGERS_MAX = 100;
export const TRIGGER_WHERE_SHAPE = createFlatShape(["type", "dataSourceId", "data"]);
const WHERE_SHAPES: Partial<Record<TriggerType, Shape>> = {
  log: TRIGGER_WHERE_SHAPE,
  analytics: TRIGGER_WHERE_SHAPE,
  http: { fields: HTTP_WHERE_FIELDS },
};
/** Returns the allowed fields of a trigger (contract, section 3). Types that do not use `where`, such as `schedule`, allow any `where`. */
export const getTriggerShape = ({ trigger }: Record<string, unknown>): Shape => ({
  fields: { trigger: null, where: WHERE_SHAPES[trigger as TriggerType] ?? null },
});

export const EVENT_TYPE_MAX_CHARACTERS = 255;
const WHERE_DATA_MAX_CHARACTERS = 10_000;
const WHERE_DATA_MAX_DEPTH = 16;

/**
 * Returns the message of the error TRIGGERS_INVALID; null if the value is valid: an array of at most ACTION_TRIGGERS_MAX objects. `log`,
 * `analytics` and `http` triggers must have a valid `where`, and no two HTTP triggers may match the same requests.
 */
export function findTriggersFault(value: unknown): string | null {
  if (!Array.isArray(value)) return `triggers must be an array of trigger objects (got ${describeValue(value)})`;
  if (value.length > ACTION_TRIGGERS_MAX)
    return `triggers must have at most ${ACTION_TRIGGERS_MAX} items (got ${value.length})`;
  for (const [index, element] of value.entries()) {
    if (!isObject(element)) return `triggers[${index}] must be an object (got ${describeValue(element)})`;
    const fault = findWhereFault(element);
    if (fault !== null) return `triggers[${index}].${fault}`;
  }
  return findRepeatedRouteFault(listHttpWheres(value));
}

function listHttpWheres(triggers: unknown): { at: number; where: HttpWhere }[] {
  const httpTriggers = listTriggers(triggers).filter(
    ([, element]) => getFieldOrUndefined(element, "trigger") === "http",
  );
  return httpTriggers.map(([at, element]) => ({ at, where: element["where"] as HttpWhere }));
}

/** Validates the `where` of a log trigger. Returns an error message, or the stored form of the `where`. */
export function parseLogWhere(where: unknown): { fault: string } | { where: LogWhere } {
  const fault = findWhereFault({ trigger: "log", where });
  return fault === null ? { where: toStoredLogWhere(where as Record<string, unknown>) } : { fault };
}

/** Returns the message of the error TRIGGER_TYPE_INVALID; null if all types are valid. Ignores elements that are not objects. */
export function findTriggerTypeFault(value: unknown): string | null {
  for (const [index, element] of listTriggers(value)) {
    const type = getFieldOrUndefined(element, "trigger");
    if (isTriggerType(type)) continue;
    const expected = TRIGGER_TYPES.join(", ");
    return `triggers[${index}].trigger must be one of ${expected} (got ${describeValue(type)})`;
  }
  return null;
}

/** Returns the message of TRIGGER_NOT_ALLOWED if a trigger has a type that the action's environment forbids; otherwise null. */
export function findForbiddenTriggerFault(value: unknown, environment: unknown): string | null {
  if (!isActionEnvironment(environment)) return null;
  for (const [index, element] of listTriggers(value)) {
    const type = getFieldOrUndefined(element, "trigger");
    if (!isTriggerType(type) || !FORBIDDEN_TRIGGER_TYPES[environment].includes(type)) continue;
    return `triggers[${index}].trigger must not be "${type}" in an action whose environment is "${environment}"`;
  }
  return null;
}

export function toStoredTriggers(value: unknown): Trigger[] {
  return listTriggers(value).map(([, element]) => {
    const type = element["trigger"] as TriggerType;
    const where = element["where"] as Record<string, unknown>;
    if (type === "log") return { trigger: type, where: toStoredLogWhere(where) };
    if (type === "http") return { trigger: type, where: toStoredHttpWhere(where) };
    return type === "analytics" ? { trigger: type, where: toStoredAnalyticsWhere(where) } : { trigger: type };
  });
}

export function isActionEnvironment(value: unknown): value is Environment {
  return (ENVIRONMENTS as readonly unknown[]).includes(value);
}

function isTriggerType(value: unknown): value is TriggerType {
  return (TRIGGER_TYPES as readonly unknown[]).includes(value);
}

function listTriggers(value: unknown): [number, Record<string, unknown>][] {
  return Array.isArray(value) ? [...value.entries()].filter(([, element]) => isObject(element)) : [];
}

function getFieldOrUndefined(object: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function findWhereFault(element: Record<string, unknown>): string | null {
  const type = getFieldOrUndefined(element, "trigger");
  if (type === "http") return findHttpWhereFault(getFieldOrUndefined(element, "where"));
  if (type !== "log" && type !== "analytics") return null;
  const where = getFieldOrUndefined(element, "where");
  if (!isObject(where)) return `where must be an object for the trigger "${type}" (got ${describeValue(where)})`;
  return type === "log" ? findLogWhereFault(where) : findAnalyticsWhereFault(where);
}

function findLogWhereFault(where: Record<string, unknown>): string | null {
  const type = getFieldOrUndefined(where, "type");
  const length = `1 to ${EVENT_TYPE_MAX_CHARACTERS} characters`;
  if (typeof type !== "string") return `where.type must be a log event type (got ${describeValue(type)})`;
  if (type === "" || type.length > EVENT_TYPE_MAX_CHARACTERS || findUnstorableCharacter(type) >= 0) {
    return `where.type must be a log event type of ${length} (got ${describeValue(type)})`;
  }
  const id = getFieldOrUndefined(where, "dataSourceId") ?? null;
  if (id === null || (Number.isSafeInteger(id) && (id as number) > 0)) return null;
  return `where.dataSourceId must be a positive whole number (got ${describeValue(id)})`;
}

function findAnalyticsWhereFault(where: Record<string, unknown>): string | null {
  const type = getFieldOrUndefined(where, "type");
  if (!(ANALYTICS_EVENT_TYPES as readonly unknown[]).includes(type)) {
    return `where.type must be one of ${ANALYTICS_EVENT_TYPES.join(", ")} (got ${describeValue(type)})`;
  }
  const data = getFieldOrUndefined(where, "data") ?? null;
  if (data === null) return null;
  if (!isObject(data)) return `where.data must be an object (got ${describeValue(data)})`;
  if (nestsDeeperThan(data, WHERE_DATA_MAX_DEPTH)) return `where.data must nest at most ${WHERE_DATA_MAX_DEPTH} levels`;
  const size = JSON.stringify(data).length;
  if (size <= WHERE_DATA_MAX_CHARACTERS) return null;
  return `where.data must be at most ${WHERE_DATA_MAX_CHARACTERS} characters of JSON (got ${size})`;
}

function toStoredLogWhere(where: Record<string, unknown>): LogWhere {
  const id = getFieldOrUndefined(where, "dataSourceId") ?? null;
  const type = where["type"] as string;
  return id === null ? { type } : { type, dataSourceId: id as number };
}

function toStoredAnalyticsWhere(where: Record<string, unknown>): AnalyticsWhere {
  const data = getFieldOrUndefined(where, "data") ?? null;
  const type = where["type"] as AnalyticsWhere["type"];
  return data === null ? { type } : { type, data: data as Record<string, unknown> };
}
