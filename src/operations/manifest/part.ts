/**
 * Types and functions for the parts of a manifest. A part handles one kind of definitions, such as actions or settings.
 * It compares the manifest with the app, and returns a plan that is applied in the same transaction.
 */
import type { EntityManager } from "typeorm";
import { ActionError, type PathFault } from "../../errors.js";
import type { Caller, Operation } from "../../rules/access.js";
import type { ManifestKind } from "../../rules/manifest.js";

/** A difference between a manifest and the app. */
export interface PartChange {
  kind: ManifestKind;
  name: string;
  verb: "created" | "changed" | "removed";
}

/** Options for applying a manifest. */
export interface ApplyMode {
  /** True to remove definitions that the manifest does not contain. */
  prune: boolean;
  /**
   * True for a promotion from another stage: the app keeps its values of settings, its columns, and data sources with
   * entries.
   */
  keepsData: boolean;
  /** True to keep published actions, even with `prune`. */
  keepsLive?: boolean;
}

export interface PlanContext extends ApplyMode {
  manager: EntityManager;
  caller: Caller;
  appId: number;
}

/** Planned changes of one part. `apply` writes the changes; it is called only if no part has faults. */
export interface PartPlan {
  changes: PartChange[];
  faults: PathFault[];
  /** Operations for which the caller needs permission. */
  requiredOperations: Operation[];
  /** Items that cannot work before someone sets a value in this app, because a manifest contains no secrets. */
  missing?: { kind: ManifestKind; name: string }[];
  apply(): Promise<void>;
}

/** Field of an action to which an error status belongs, by the beginning of the status. */
const FIELD_OF_STATUS: readonly [prefix: string, field: string][] = [
  ["NAME_", "name"],
  ["DESCRIPTION_", "description"],
  ["CODE_", "code"],
  ["ENVIRONMENT_", "environment"],
  ["FREQUENCY_", "frequency"],
  ["TIMEZONE_", "timezone"],
  ["TRIGGER", "triggers"],
  ["DEPENDENC", "dependencies"],
  ["ACCESS_", "access"],
  ["INTEGRATION_ORIGINS_", "integrationOrigins"],
];

/** Matches a field's path at the start of a message, such as `hooks[0].runOn`. */
const LEADING_PATH = /^[a-zA-Z]\w{0,60}(?:\.\w{1,60}|\[\d{1,6}\]){0,20}/;

/**
 * Returns the path of a fault inside an item, with a leading dot. It is taken from the error's path, the beginning of
 * the message, or the status.
 */
function innerPath({ status, message, path: known }: ActionError, fields: readonly string[]): string {
  if (known !== undefined) return `.${known}`;
  const path = LEADING_PATH.exec(message)?.[0] ?? "";
  const [first = ""] = path.split(/[.[]/, 1);
  if (fields.includes(first)) return `.${path}`;
  const field = FIELD_OF_STATUS.find(([prefix]) => status.startsWith(prefix))?.[1];
  return field === undefined ? "" : `.${field}`;
}

/**
 * Converts an error about an item of the manifest to a fault with a path.
 * @param fieldPath path of the item, such as `actions[3]`
 * @param fields names of the item's fields
 * @throws FORBIDDEN, and all errors that are not ActionErrors
 */
export function toFault(fieldPath: string, error: unknown, fields: readonly string[]): PathFault {
  if (!(error instanceof ActionError) || error.status === "FORBIDDEN") throw error;
  return { path: fieldPath + innerPath(error, fields), status: error.status, error: error.message };
}

/** Returns a fault for each item whose name an earlier item of the list already has. */
export function repeatedNames(field: string, key: string, items: readonly Record<string, unknown>[]): PathFault[] {
  const names = new Set<unknown>();
  return items.flatMap((item, index) => {
    const name = item[key];
    if (typeof name !== "string") return [];
    if (!names.has(name)) {
      names.add(name);
      return [];
    }
    const error = `${key} must be unique in ${field} (got ${JSON.stringify(name.slice(0, 60)).toWellFormed()} twice)`;
    return [{ path: `${field}[${index}].${key}`, status: "NAME_ALREADY_EXISTS" as const, error }];
  });
}
