/** Validates and writes the fields of an app, except its settings, which are in operations/settings. */

import type { EntityManager } from "typeorm";
import { AppRow } from "../../data/app.js";
import { ActionError } from "../../errors.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import type { ActionWarning } from "../../rules/action-warnings.js";
import { holdsInfinity, isObject, nestsDeeperThan } from "../../rules/described.js";
import { optionalId, refuseField, requiredText } from "../../rules/fields.js";
import { type ExpectedTags, NEXT_UPDATED_AT } from "../../rules/precondition.js";
import { flatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";

/** The app to change. The change is rejected if the app no longer has one of the expected versions. */
export interface AppTarget {
  appId: number;
  precondition?: ExpectedTags;
}

/** Validates a value and returns it. */
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
    throw new ActionError("REQUEST_INVALID", `${name} must not be nested deeper than ${JSON_MAX_DEPTH} levels`);
  }
  if (holdsInfinity(value))
    throw new ActionError("REQUEST_INVALID", `${name} must not contain a number that is too large for JSON`);
  return value;
}

const optionalText: Field = (value, name) => (value === null ? null : requiredText(value, name));

/** Fields that editors can change, and that snapshots contain. */
const SNAPSHOT_FIELDS: Record<string, Field> = {
  name: requiredText,
  startingPageId: optionalId,
  hooks: readStructure,
  isTemplate: readFlag,
  dependencies: readStructure,
  icon: optionalText,
};
/**
 * All fields that editors can change. `requiresTests` is not in snapshots, so that restoring one does not change it.
 */
const EDITOR_FIELDS: Record<string, Field> = { ...SNAPSHOT_FIELDS, requiresTests: readFlag };
const ADMIN_ONLY_FIELDS = ["isSystemTemplate", "isHidden"];
const ADMIN_FIELDS: Record<string, Field> = {
  ...EDITOR_FIELDS,
  ...Object.fromEntries(ADMIN_ONLY_FIELDS.map((name) => [name, readFlag])),
};

/** Fields of an app that a request body may contain, so that callers can send a received app back. They are ignored. */
const READ_ONLY_FIELDS = ["id", "organizationId", "isPublished", "publishedAt", "settings", "createdAt", "updatedAt"];
const APP_SHAPE = flatShape(Object.keys(ADMIN_FIELDS), READ_ONLY_FIELDS);

export type AppChanges = Partial<AppRow>;

/**
 * Validates a request body, and returns the fields to change. Fields that the caller cannot change are ignored.
 * @throws ActionError REQUEST_INVALID; an unknown field is reported after all other faults
 */
export function parseAppChanges(body: unknown, { asAdmin }: { asAdmin: boolean }): AppChanges {
  if (!isObject(body)) refuseField("the body", "an object", body);
  const changes = changesOf(body, asAdmin);
  refuseUnknownFields(body, APP_SHAPE);
  return changes;
}

function changesOf(body: Record<string, unknown>, asAdmin: boolean): AppChanges {
  const input = Object.entries(asAdmin ? ADMIN_FIELDS : EDITOR_FIELDS).filter(([name]) => Object.hasOwn(body, name));
  return Object.fromEntries(input.map(([name, check]) => [name, check(body[name], name)]));
}

/** Returns a warning for each field in a body that was ignored because only administrators can change it. */
export function ignoredFieldWarnings(body: Record<string, unknown>, app: object): ActionWarning[] {
  const current = app as Record<string, unknown>;
  return ADMIN_ONLY_FIELDS.filter((name) => Object.hasOwn(body, name) && body[name] !== current[name]).map((name) => ({
    path: name,
    message: `"${name}" was not changed, because only administrators can set it`,
  }));
}

/** Returns the fields of an app that a snapshot stores. */
export function snapshotFields(app: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(app).filter(([name]) => Object.hasOwn(SNAPSHOT_FIELDS, name)));
}

/** Updates the fields in `changes`; other fields keep their values. */
export async function applyChanges(manager: EntityManager, appId: number, changes: AppChanges): Promise<void> {
  if (Object.keys(changes).length === 0) return;
  await manager.update(AppRow, { id: appId }, { ...changes, updatedAt: () => NEXT_UPDATED_AT } as object);
}
