/** Validates and writes the fields of an app. operations/settings has its settings. */

import type { EntityManager } from "typeorm";
import { AppRow } from "../../data/app.js";
import { ActionError } from "../../errors.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import type { ActionWarning } from "../../rules/action-warnings.js";
import { holdsInfinity, isObject, nestsDeeperThan } from "../../rules/described.js";
import { optionalId, refuseField, requiredText } from "../../rules/fields.js";
import { type ExpectedTags, NEXT_UPDATED_AT } from "../../rules/precondition.js";
import { flatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";

/** The app to change, and the versions on which the change may be based. */
export interface AppTarget {
  appId: number;
  precondition?: ExpectedTags;
}

type Field = (value: unknown, name: string) => unknown;

function readFlag(value: unknown, name: string): boolean {
  if (typeof value === "boolean") return value;
  refuseField(name, "true or false", value);
}

function readStructure(value: unknown, name: string): unknown {
  if (value !== null && typeof value !== "object") {
    refuseField(name, "an object, an array or null", value);
  }
  if (nestsDeeperThan(value, JSON_MAX_DEPTH)) {
    throw new ActionError("REQUEST_INVALID", `${name} nests deeper than ${JSON_MAX_DEPTH} levels`);
  }
  if (holdsInfinity(value)) throw new ActionError("REQUEST_INVALID", `${name} holds a number that is too large`);
  return value;
}

const optionalText: Field = (value, name) => (value === null ? null : requiredText(value, name));

/** Fields that PUT changes (specification, Settings endpoints) and that snapshots store. */
const FIELDS: Record<string, Field> = {
  name: requiredText,
  startingPageId: optionalId,
  hooks: readStructure,
  isTemplate: readFlag,
  dependencies: readStructure,
  icon: optionalText,
};
/** Fields that PUT changes and that snapshots and manifests do not contain, because they belong to one app. */
const OWN_FIELDS: Record<string, Field> = { ...FIELDS, requiresTests: readFlag };
const ADMIN_ONLY = ["isSystemTemplate", "isHidden"];
const ADMIN_FIELDS: Record<string, Field> = {
  ...OWN_FIELDS,
  ...Object.fromEntries(ADMIN_ONLY.map((name) => [name, readFlag])),
};

/** Fields of a response that a body may repeat. Callers cannot change them. */
const READ_ONLY = ["id", "organizationId", "isPublished", "publishedAt", "settings", "createdAt", "updatedAt"];
const APP_SHAPE = flatShape(Object.keys(ADMIN_FIELDS), READ_ONLY);

export type AppChanges = Partial<AppRow>;

/**
 * Returns the changes in a body. Fields that the caller cannot change are ignored.
 * @throws ActionError REQUEST_INVALID, last for an unknown field
 */
export function changesIn(body: unknown, { asAdmin }: { asAdmin: boolean }): AppChanges {
  if (!isObject(body)) refuseField("the body", "an object", body);
  const changes = changesOf(body, asAdmin);
  refuseUnknownFields(body, APP_SHAPE);
  return changes;
}

function changesOf(body: Record<string, unknown>, asAdmin: boolean): AppChanges {
  const input = Object.entries(asAdmin ? ADMIN_FIELDS : OWN_FIELDS).filter(([name]) => Object.hasOwn(body, name));
  return Object.fromEntries(input.map(([name, check]) => [name, check(body[name], name)]));
}

/** Returns warnings about fields of administrators that another caller tried to change: the change had no effect on them. */
export function ignoredFieldWarnings(body: Record<string, unknown>, app: object): ActionWarning[] {
  const current = app as Record<string, unknown>;
  return ADMIN_ONLY.filter((name) => Object.hasOwn(body, name) && body[name] !== current[name]).map((name) => ({
    path: name,
    message: `${name} was not changed: only administrators can set it`,
  }));
}

/** Returns the fields of an app that a snapshot stores. */
export function snapshotFields(app: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(app).filter(([name]) => Object.hasOwn(FIELDS, name)));
}

/** Writes the changes of these fields only. */
export async function applyChanges(manager: EntityManager, appId: number, changes: AppChanges): Promise<void> {
  if (Object.keys(changes).length === 0) return;
  await manager.update(AppRow, { id: appId }, { ...changes, updatedAt: () => NEXT_UPDATED_AT } as object);
}
