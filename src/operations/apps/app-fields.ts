/** Validates and writes the fields of an app. The settings of an app are in operations/settings. */

import type { EntityManager } from "typeorm";
import { AppRow } from "../../data/app.js";
import { ActionError } from "../../errors.js";
import { JSON_MAX_DEPTH } from "../../limits.js";
import type { ActionWarning } from "../../rules/action-warnings.js";
import { containsInfinity, isObject, nestsDeeperThan } from "../../rules/describe-value.js";
import { parseOptionalId, refuseField, requireText } from "../../rules/fields.js";
import { type ExpectedVersions, NEXT_UPDATED_AT_SQL } from "../../rules/precondition.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";

/** The app to change. If the app's ETag is not in `precondition`, the change is rejected. */
export interface AppChangeTarget {
  appId: number;
  precondition?: ExpectedVersions;
}

type FieldValidator = (value: unknown, name: string) => unknown;

function requireBoolean(value: unknown, name: string): boolean {
  if (typeof value === "boolean") return value;
  refuseField(name, "true or false", value);
}

function requireJsonStructure(value: unknown, name: string): unknown {
  if (value !== null && typeof value !== "object") {
    refuseField(name, "an object, an array or null", value);
  }
  if (nestsDeeperThan(value, JSON_MAX_DEPTH)) {
    throw new ActionError("REQUEST_INVALID", `${name} must not be nested deeper than ${JSON_MAX_DEPTH} levels`);
  }
  if (containsInfinity(value))
    throw new ActionError("REQUEST_INVALID", `${name} must not contain a number above 1.8e308 or below -1.8e308`);
  return value;
}

const parseOptionalText: FieldValidator = (value, name) => (value === null ? null : requireText(value, name));

/** Validators of the fields that editors can change and that versions of the app contain. */
const SNAPSHOT_FIELDS: Record<string, FieldValidator> = {
  name: requireText,
  startingPageId: parseOptionalId,
  hooks: requireJsonStructure,
  isTemplate: requireBoolean,
  dependencies: requireJsonStructure,
  icon: parseOptionalText,
};
/** Versions of an app do not contain `requiresTests`, so that a restore does not change this field. */
const EDITOR_FIELDS: Record<string, FieldValidator> = { ...SNAPSHOT_FIELDS, requiresTests: requireBoolean };
const ADMIN_ONLY_FIELDS = ["isSystemTemplate", "isHidden"];
const ADMIN_FIELDS: Record<string, FieldValidator> = {
  ...EDITOR_FIELDS,
  ...Object.fromEntries(ADMIN_ONLY_FIELDS.map((name) => [name, requireBoolean])),
};

/** Fields that a request can contain but that the service ignores, so that clients can send back an app that they received. */
const READ_ONLY_FIELDS = ["id", "organizationId", "isPublished", "publishedAt", "settings", "createdAt", "updatedAt"];
const APP_SHAPE = createFlatShape(Object.keys(ADMIN_FIELDS), READ_ONLY_FIELDS);

export type AppChanges = Partial<AppRow>;

/**
 * Validates a request body, and returns the fields to change. Ignores fields that the caller cannot change.
 * @throws ActionError REQUEST_INVALID. The error for an unknown field is thrown only if there is no other error
 */
export function parseAppChanges(
  body: unknown,
  { mayChangeAdminFields }: { mayChangeAdminFields: boolean },
): AppChanges {
  if (!isObject(body)) refuseField("the body", "an object", body);
  const changes = validateFields(body, mayChangeAdminFields);
  refuseUnknownFields(body, APP_SHAPE);
  return changes;
}

function validateFields(body: Record<string, unknown>, mayChangeAdminFields: boolean): AppChanges {
  const input = Object.entries(mayChangeAdminFields ? ADMIN_FIELDS : EDITOR_FIELDS).filter(([name]) =>
    Object.hasOwn(body, name),
  );
  return Object.fromEntries(input.map(([name, check]) => [name, check(body[name], name)]));
}

/** Returns a warning for each new value that was ignored, because only owners and admins of the app can change the field. */
export function createIgnoredFieldWarnings(body: Record<string, unknown>, app: object): ActionWarning[] {
  const current = app as Record<string, unknown>;
  return ADMIN_ONLY_FIELDS.filter((name) => Object.hasOwn(body, name) && body[name] !== current[name]).map((name) => ({
    path: name,
    message: `"${name}" was not changed, because only owners and admins of the app can set it`,
  }));
}

export function pickSnapshotFields(app: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(app).filter(([name]) => Object.hasOwn(SNAPSHOT_FIELDS, name)));
}

export async function writeAppChanges(manager: EntityManager, appId: number, changes: AppChanges): Promise<void> {
  if (Object.keys(changes).length === 0) return;
  await manager.update(AppRow, { id: appId }, { ...changes, updatedAt: () => NEXT_UPDATED_AT_SQL } as object);
}
