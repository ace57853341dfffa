/** Validates the definition of a data source. */

import { ActionError } from "../../errors.js";
import { findUnstorableCharacter, isObject } from "../describe-value.js";
import { refuseField } from "../fields.js";
import { createFlatShape, refuseUnknownFields, type Shape } from "../unknown-fields.js";
import { ACCESS_RULE_SHAPE, type EntryAccessRule, parseAccessRules } from "./access-rules.js";
import { parseColumnNames } from "./columns.js";
import { type EntryData, parseEntryData, parseEntryList } from "./entry-input.js";
import { type EntryHook, getAllowedHookFields, parseHooks } from "./hooks.js";

const NAME_MAX_CHARACTERS = 255;
const FIELD_NAMES = ["name", "columns", "accessRules", "hooks", "indexes", "isUsers"] as const;
type DataSourceField = (typeof FIELD_NAMES)[number];

const READ_ONLY_FIELDS = ["id", "appId", "organizationId", "createdAt", "updatedAt"];
const CHANGE_SHAPE: Shape = {
  fields: { ...createFlatShape(FIELD_NAMES).fields, accessRules: [ACCESS_RULE_SHAPE], hooks: [getAllowedHookFields] },
  readOnly: READ_ONLY_FIELDS,
};
const NEW_DATA_SOURCE_SHAPE: Shape = { ...CHANGE_SHAPE, fields: { ...CHANGE_SHAPE.fields, entries: null } };

/** Fields of a data source in a request. `Indexes` is the parsed form of the field `indexes`. */
export interface DataSourceFields<Indexes> {
  name?: string;
  columns?: string[];
  accessRules?: EntryAccessRule[];
  hooks?: EntryHook[];
  indexes?: Indexes;
  isUsers?: boolean;
}

function parseName(value: unknown): string {
  if (value === undefined || value === null) throw new ActionError("NAME_REQUIRED");
  const isText = typeof value === "string" && findUnstorableCharacter(value) < 0;
  if (!isText) refuseField("name", "a text", value);
  if (value.trim() === "") throw new ActionError("NAME_EMPTY");
  if (value.length > NAME_MAX_CHARACTERS) throw new ActionError("NAME_TOO_LONG");
  return value.trim();
}

function parseFlag(value: unknown, field: string): boolean {
  if (typeof value === "boolean") return value;
  refuseField(field, "true or false", value);
}

export type ParseIndexes<Indexes> = (value: unknown) => Indexes;

function parseField(
  value: unknown,
  field: DataSourceField,
  parseIndexes: ParseIndexes<unknown>,
  storedHooks: readonly EntryHook[],
): unknown {
  if (field === "name") return parseName(value);
  if (field === "columns") return parseColumnNames(value);
  if (field === "accessRules") return parseAccessRules(value);
  if (field === "isUsers") return parseFlag(value, field);
  return field === "hooks" ? parseHooks(value, storedHooks) : parseIndexes(value ?? []);
}

/**
 * Checks a change of `isUsers`, which makes the entries of a data source the users of the app. Only a person can change it. A data
 * source without a hashed column cannot have users.
 * @throws FORBIDDEN, REQUEST_INVALID
 */
export function checkIsUsersFlagChange(
  isUsers: boolean | undefined,
  {
    before,
    mayMark: mayChangeUsersFlag,
    hashed: hashedColumns,
  }: { before: boolean; mayMark: boolean; hashed: readonly string[] },
): void {
  if (isUsers === undefined || isUsers === before) return;
  if (!mayChangeUsersFlag)
    throw new ActionError(
      "FORBIDDEN",
      "only a person who is signed in can change the field isUsers, which marks the data source with the users of the app; tokens cannot",
    );
  if (isUsers && hashedColumns.length === 0) {
    throw new ActionError("REQUEST_INVALID", '"isUsers" needs a hashed column; add a hook with the operation "hash"');
  }
}

function parseEntries(value: unknown): EntryData[] {
  if (value === undefined || value === null) return [];
  return parseEntryList(value, "entries").map((row, index) => parseEntryData(row, `entries[${index}]`));
}

/**
 * Validates a request that creates a data source.
 * @throws ActionError NAME_REQUIRED, NAME_EMPTY, NAME_TOO_LONG; REQUEST_INVALID with the path of the invalid field
 */
export function parseNewDataSource<Indexes>(
  body: unknown,
  parseIndexes: ParseIndexes<Indexes>,
): DataSourceFields<Indexes> & { name: string; entries: EntryData[] } {
  if (!isObject(body)) refuseField("a data source", "an object", body);
  const fields = {
    ...parseFields(body, parseIndexes),
    name: parseName(body["name"]),
    entries: parseEntries(body["entries"]),
  };
  refuseUnknownFields(body, NEW_DATA_SOURCE_SHAPE);
  return fields;
}

function parseFields<Indexes>(
  body: Record<string, unknown>,
  parseIndexes: ParseIndexes<Indexes>,
  storedHooks: readonly EntryHook[] = [],
): DataSourceFields<Indexes> {
  const namedFields = FIELD_NAMES.filter((field) => body[field] !== undefined);
  return Object.fromEntries(
    namedFields.map((field) => [field, parseField(body[field], field, parseIndexes, storedHooks)]),
  );
}

/**
 * Validates a request that updates a data source. @param storedHooks hooks of the data source before the update (see `parseHooks`)
 * @throws ActionError with the same codes as `parseNewDataSource`
 */
export function parseDataSourceChange<Indexes>(
  body: unknown,
  parseIndexes: ParseIndexes<Indexes>,
  storedHooks: readonly EntryHook[],
): DataSourceFields<Indexes> {
  if (!isObject(body)) refuseField("a data source", "an object", body);
  const fields = parseFields(body, parseIndexes, storedHooks);
  refuseUnknownFields(body, CHANGE_SHAPE);
  return fields;
}
