/** Validates entries in requests: the data of one entry, and a commit, which is a request that changes many entries. */

import { ActionError } from "../../errors.js";
import { ENTRIES_PER_COMMIT_MAX, ENTRY_MAX_BYTES } from "../../limits.js";
import {
  containsInfinity,
  describeValue,
  findUnstorableCharacter,
  isObject,
  nestsDeeperThan,
} from "../describe-value.js";
import { refuseField, requireListOf, UNSTORABLE_TEXT_FAULT } from "../fields.js";
import type { ExpectedVersions } from "../precondition.js";
import { createFlatShape, refuseUnknownFields, type Shape } from "../unknown-fields.js";
import { checkColumnName } from "./columns.js";
import { HOOK_VERBS, type HookVerb } from "./sending-hooks.js";

/** Maximum nesting depth of an entry's data. Deeper values could overflow the stack in recursive code of pages and queries. */
const DATA_MAX_DEPTH = 100;
export const COLUMNS_PER_ENTRY_MAX = 1_000;

export type EntryData = Record<string, unknown>;

/** Matches JSON escapes of characters that PostgreSQL cannot store. Only entries with such an escape are searched for these characters. */
const SUSPECT_ESCAPE_PATTERN = /\\u(?:0000|[dD][89a-fA-F])/;

function hasUnstorableText(value: unknown): boolean {
  if (typeof value === "string") return findUnstorableCharacter(value) >= 0;
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, inner]) => findUnstorableCharacter(key) >= 0 || hasUnstorableText(inner));
}

/**
 * Validates an entry's data, and returns it as JSON text.
 * @throws REQUEST_INVALID, PAYLOAD_TOO_LARGE, whose messages contain `fieldPath`
 */
export function validateAndSerializeEntry(data: unknown, fieldPath: string): string {
  if (!isObject(data)) refuseField(fieldPath, "an object of column names and values", data);
  const columns = Object.keys(data);
  if (columns.length > COLUMNS_PER_ENTRY_MAX) {
    throw new ActionError(
      "REQUEST_INVALID",
      `${fieldPath} must have at most ${COLUMNS_PER_ENTRY_MAX} columns (got ${columns.length})`,
    );
  }
  for (const column of columns) {
    checkColumnName(column, fieldPath);
    const value = data[column];
    if (typeof value === "object" && value !== null && nestsDeeperThan(value, DATA_MAX_DEPTH)) {
      throw new ActionError(
        "REQUEST_INVALID",
        `the value of the column ${describeValue(column)} of ${fieldPath} must nest at most ${DATA_MAX_DEPTH} levels`,
      );
    }
    if (containsInfinity(value)) {
      throw new ActionError(
        "REQUEST_INVALID",
        `the value of the column ${describeValue(column)} of ${fieldPath} must not contain a number above 1.8e308 or below -1.8e308`,
      );
    }
  }
  const text = JSON.stringify(data);
  const bytes = Buffer.byteLength(text);
  if (bytes > ENTRY_MAX_BYTES) {
    throw new ActionError(
      "PAYLOAD_TOO_LARGE",
      `${fieldPath} must be at most ${ENTRY_MAX_BYTES} bytes (1 MB) of JSON (got ${bytes})`,
    );
  }
  if (SUSPECT_ESCAPE_PATTERN.test(text)) rejectUnstorableText(data, fieldPath);
  return text;
}

function rejectUnstorableText(data: EntryData, fieldPath: string): void {
  for (const [column, value] of Object.entries(data)) {
    if (!hasUnstorableText(value)) continue;
    throw new ActionError(
      "REQUEST_INVALID",
      `the value of the column ${describeValue(column)} of ${fieldPath} ${UNSTORABLE_TEXT_FAULT}`,
    );
  }
}

/** Fields of an entry in a response, besides `data`. Only the service sets them. */
const ENTRY_FIELDS = ["id", "dataSourceId", "createdAt", "updatedAt", "order"];

/** True if an object has the form of an entry in a response. It may have `joins` (results of joins) only together with all other fields. */
function looksLikeResponseEntry(body: Record<string, unknown>): body is { data: EntryData } {
  if (!isObject(body["data"])) return false;
  const isComplete = ENTRY_FIELDS.every((field) => Object.hasOwn(body, field));
  const fields = ["data", ...ENTRY_FIELDS, ...(isComplete ? ["joins"] : [])];
  return Object.keys(body).every((key) => fields.includes(key));
}

/**
 * Returns the columns of an entry in a request. They are in the body itself, or in its field `data` if the body looks like an entry of a
 * response.
 * @throws ActionError REQUEST_INVALID that names `fieldPath`
 */
export function parseEntryData(body: unknown, fieldPath: string): EntryData {
  if (!isObject(body)) {
    refuseField(fieldPath, "an object of column names and values", body);
  }
  if (looksLikeResponseEntry(body)) return body.data;
  const { data } = body;
  if (data === undefined || Object.keys(body).length > 1) return body;
  const remedy = 'to write a column with the name "data", send {"data": {"data": …}}';
  throw new ActionError(
    "REQUEST_INVALID",
    `the field "data" of ${fieldPath} must be an object of column names and values (got ${describeValue(data)}); ${remedy}`,
  );
}

/**
 * Converts the JSON text of an entry's data, so that `parseEntryData` returns the same data from the result. The result is `{"data": …}`
 * if `parseEntryData` would reject the data itself, or would treat the data as an entry in a response.
 */
export function toReadableEntryText(dataText: string): string {
  if (!dataText.includes('"data"')) return dataText;
  const data = JSON.parse(dataText) as EntryData;
  if (!Object.hasOwn(data, "data")) return dataText;
  const isAmbiguous = isObject(data["data"]) ? looksLikeResponseEntry(data) : Object.keys(data).length === 1;
  return isAmbiguous ? `{"data":${dataText}}` : dataText;
}

export function parseEntryList(value: unknown, field: string): unknown[] {
  if (!Array.isArray(value)) refuseField(field, "an array of entries", value);
  if (value.length <= ENTRIES_PER_COMMIT_MAX) return value;
  throw new ActionError(
    "REQUEST_INVALID",
    `${field} must have at most ${ENTRIES_PER_COMMIT_MAX} entries (got ${value.length})`,
  );
}

export interface ParsedEntryCommit {
  inserts: EntryData[];
  updates: { id: number; data: EntryData; precondition: ExpectedVersions }[];
  deletes: number[];
  /** False if the commit removes all entries whose IDs it does not contain. */
  append: boolean;
  /** True if an updated entry keeps the columns that the commit omits; false if it keeps only hashed and protected ones of them. */
  extend: boolean;
  returnEntries: boolean;
  /** Operations (insert, update) for which hooks of the data source may send messages. */
  runHooks: readonly HookVerb[];
}

const COMMIT_ENTRY_SHAPE = createFlatShape(["id", "data", "ifUpdatedAt"], [...ENTRY_FIELDS, "joins"]);

const COMMIT_SHAPE: Shape = {
  fields: {
    ...createFlatShape(["append", "extend", "delete", "returnEntries", "runHooks"]).fields,
    entries: [COMMIT_ENTRY_SHAPE],
  },
};

/** Parses the ID of an entry. @throws REQUEST_INVALID */
export function parseEntryId(value: unknown, field: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
  refuseField(field, "the ID of an entry, a positive whole number", value);
}

/** Parses `ifUpdatedAt`, the time `updatedAt` that the entry must still have; undefined if the field is absent. @throws REQUEST_INVALID */
export function parseIfUpdatedAt(value: unknown, field: string): ExpectedVersions {
  if (value === undefined || value === null) return undefined;
  const time = typeof value === "string" || value instanceof Date ? new Date(value).getTime() : Number.NaN;
  if (!Number.isNaN(time)) return [new Date(time).toISOString()];
  refuseField(field, "the time updatedAt of an entry", value);
}

function readFlag(body: Record<string, unknown>, name: string, defaultValue: boolean): boolean {
  const value = body[name] ?? defaultValue;
  if (typeof value === "boolean") return value;
  refuseField(name, "true or false", value);
}

/** Parses `runHooks`: the operations for which hooks may send messages, by default all. @throws ActionError REQUEST_INVALID */
function parseHookVerbs(value: unknown): readonly HookVerb[] {
  if (value === undefined || value === null) return HOOK_VERBS;
  if (!Array.isArray(value)) refuseField("runHooks", `an array that contains only ${HOOK_VERBS.join(" or ")}`, value);
  if (value.length > 0) requireListOf(HOOK_VERBS, value, "runHooks");
  return [...new Set<HookVerb>(value)];
}

function readEntryData(entry: Record<string, unknown>, field: string): EntryData {
  const { data } = entry;
  if (isObject(data)) return data;
  refuseField(`${field}.data`, "an object of column names and values", data);
}

/** Validates the body of a commit. @throws REQUEST_INVALID with the path of the invalid field */
export function parseEntryCommit(body: unknown): ParsedEntryCommit {
  if (!isObject(body)) refuseField("a commit", "an object", body);
  const entries = parseEntryList(body["entries"] ?? [], "entries");
  const deletes = parseEntryList(body["delete"] ?? [], "delete").map((id, index) =>
    parseEntryId(id, `delete[${index}]`),
  );
  if (entries.length + deletes.length > ENTRIES_PER_COMMIT_MAX) {
    const operationCount = entries.length + deletes.length;
    throw new ActionError(
      "REQUEST_INVALID",
      `"entries" and "delete" must have at most ${ENTRIES_PER_COMMIT_MAX} elements together (got ${operationCount})`,
    );
  }
  const inserts: EntryData[] = [];
  const updates: ParsedEntryCommit["updates"] = [];
  for (const [at, entry] of entries.entries()) {
    const field = `entries[${at}]`;
    if (!isObject(entry)) refuseField(field, "an object", entry);
    const data = readEntryData(entry, field);
    const { id, ifUpdatedAt } = entry;
    if (id === undefined || id === null) inserts.push(data);
    else
      updates.push({
        id: parseEntryId(id, `${field}.id`),
        data,
        precondition: parseIfUpdatedAt(ifUpdatedAt, `${field}.ifUpdatedAt`),
      });
  }
  refuseDuplicateIds([...updates.map(({ id }) => id), ...deletes]);
  const flags = {
    append: readFlag(body, "append", true),
    extend: readFlag(body, "extend", false),
    returnEntries: readFlag(body, "returnEntries", false),
  };
  const runHooks = parseHookVerbs(body["runHooks"]);
  refuseUnknownFields(body, COMMIT_SHAPE);
  return { inserts, updates, deletes, runHooks, ...flags };
}

function refuseDuplicateIds(ids: readonly number[]): void {
  const seenIds = new Set<number>();
  for (const id of ids) {
    if (seenIds.has(id))
      throw new ActionError(
        "REQUEST_INVALID",
        `a commit must not contain the same entry twice (got the ID ${id} twice)`,
      );
    seenIds.add(id);
  }
}
