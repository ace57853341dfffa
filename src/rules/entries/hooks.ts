/**
 * Validates the hooks of a data source, which change an entry or send a message when the entry is written. Applies `trim`, `lower` and
 * `upper`, but not `hash`.
 */

import { isDeepStrictEqual } from "node:util";
import { isObject } from "../describe-value.js";
import { refuseField, requireListOf } from "../fields.js";
import { createFlatShape, type Shape } from "../unknown-fields.js";
import { checkColumnName } from "./columns.js";
import {
  checkSendingHook,
  createSendingHookShape,
  HOOK_VERBS,
  type HookVerb,
  isSendingHook,
  SENDING_HOOK_TYPES,
  type SendingHook,
} from "./sending-hooks.js";

const HOOK_OPERATIONS = ["trim", "lower", "upper", "hash"] as const;
type FieldOperation = (typeof HOOK_OPERATIONS)[number];

export interface ColumnOperationsHook {
  type: "operations";
  runOn: readonly HookVerb[];
  fields: Readonly<Record<string, readonly FieldOperation[]>>;
}

export type EntryHook = ColumnOperationsHook | SendingHook;

const OPERATIONS_SHAPE = createFlatShape(["type", "runOn", "fields"]);

/** Returns the allowed fields of a hook, which depend on its `type`. */
export const getAllowedHookFields = (hook: Record<string, unknown>): Shape =>
  SENDING_HOOK_TYPES.includes(hook["type"] as string)
    ? createSendingHookShape(hook["type"] as SendingHook["type"])
    : OPERATIONS_SHAPE;

const HOOKS_MAX = 50;
const FIELDS_MAX = 200;

function checkOperations(hook: Record<string, unknown>, field: string): void {
  const { runOn, fields } = hook;
  requireListOf(HOOK_VERBS, runOn, `${field}.runOn`);
  if (!isObject(fields) || Object.keys(fields).length > FIELDS_MAX)
    refuseField(`${field}.fields`, `an object with operations for at most ${FIELDS_MAX} columns`, fields);
  for (const [column, operations] of Object.entries(fields)) {
    checkColumnName(column, `${field}.fields`);
    requireListOf(HOOK_OPERATIONS, operations, `${field}.fields.${column}`);
  }
}

/**
 * Validates the hooks of a data source; null means no hooks.
 * @param storedHooks current hooks. An unchanged hook that sends messages is not checked again, because the rules for addresses may be
 *   stricter now
 * @throws REQUEST_INVALID with the path of the invalid field
 */
export function parseHooks(value: unknown, storedHooks: readonly EntryHook[] = []): EntryHook[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > HOOKS_MAX)
    refuseField("hooks", `an array of at most ${HOOKS_MAX} hooks`, value);
  for (const [at, hook] of value.entries()) {
    const field = `hooks[${at}]`;
    if (!isObject(hook)) refuseField(field, "an object", hook);
    const { type } = hook;
    if (type !== "operations" && !SENDING_HOOK_TYPES.includes(type as string))
      refuseField(`${field}.type`, '"operations", "email" or "sms"', type);
    if (type === "operations") checkOperations(hook, field);
    else if (!storedHooks.some((stored) => isDeepStrictEqual(stored, hook))) checkSendingHook(hook, field);
  }
  return value as EntryHook[];
}

const isOperationsHook = (hook: EntryHook): hook is ColumnOperationsHook => !isSendingHook(hook);

export function listHashedColumns(hooks: readonly EntryHook[]): string[] {
  const matchingHooks = hooks
    .filter(isOperationsHook)
    .flatMap(({ fields }) => Object.entries(fields).filter(([, operations]) => operations.includes("hash")));
  return matchingHooks.map(([column]) => column);
}

/** Returns the operations trim, lower and upper of each column, in order. If `verb` is null, merges those of insert and update. */
function collectTextOperations(hooks: readonly EntryHook[], verb: HookVerb | null): Map<string, FieldOperation[]> {
  const operationsByColumn = new Map<string, FieldOperation[]>();
  for (const { runOn, fields } of hooks.filter(isOperationsHook)) {
    if (verb !== null && !runOn.includes(verb)) continue;
    for (const [column, operations] of Object.entries(fields)) {
      operationsByColumn.set(column, [
        ...(operationsByColumn.get(column) ?? []),
        ...operations.filter((operation) => operation !== "hash"),
      ]);
    }
  }
  return operationsByColumn;
}

function applyOperations(text: string, operations: readonly FieldOperation[]): string {
  let result = text;
  for (const operation of operations) {
    if (operation === "trim") result = result.trim();
    else if (operation === "lower") result = result.toLowerCase();
    else result = result.toUpperCase();
  }
  return result;
}

/**
 * Creates a function that applies trim, lower and upper to the data of an entry.
 * @param verb insert or update; null to prepare values for a comparison, which uses the hooks of both
 */
export function createTextNormalizer(
  hooks: readonly EntryHook[],
  verb: HookVerb | null,
): (data: Record<string, unknown>) => Record<string, unknown> {
  const columnOperations = [...collectTextOperations(hooks, verb)].filter(([, operations]) => operations.length > 0);
  if (columnOperations.length === 0) return (data) => data;
  return (data) => {
    const changedData = { ...data };
    for (const [column, operations] of columnOperations) {
      const value = Object.hasOwn(changedData, column) ? changedData[column] : undefined;
      if (typeof value === "string") changedData[column] = applyOperations(value, operations);
    }
    return changedData;
  };
}
