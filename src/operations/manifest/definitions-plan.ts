/**
 * Types and functions for the modules that each handle one kind of definitions in a manifest, such as actions or settings. Each module
 * compares the manifest with the app and returns a plan. One transaction applies all plans.
 */
import type { EntityManager } from "typeorm";
import { ActionError, type ManifestPathFault } from "../../errors.js";
import type { Caller, Operation } from "../../rules/access.js";
import type { ManifestItemKind } from "../../rules/manifest.js";

export interface DefinitionChange {
  kind: ManifestItemKind;
  name: string;
  changeKind: "created" | "changed" | "removed";
}

export interface ManifestApplyMode {
  /** True to remove the app's definitions that the manifest does not contain. */
  prune: boolean;
  /**
   * True for a promotion from another stage: the app keeps its settings with their values, its secret bindings, the columns of its data
   * sources, and data sources that have entries.
   */
  keepsData: boolean;
  /** True to keep actions with a live version, even with `prune`. */
  keepsPublished?: boolean;
}

export interface ManifestPlanContext extends ManifestApplyMode {
  manager: EntityManager;
  caller: Caller;
  appId: number;
}

/** Planned changes to one kind of definitions. `apply` writes the changes, and is called only if no plan of the manifest has faults. */
export interface DefinitionsPlan {
  changes: DefinitionChange[];
  faults: ManifestPathFault[];
  /** Seconds after which a retry may fix a fault, for each temporary fault. */
  retryTimes?: ReadonlyMap<ManifestPathFault, number>;
  /** Operations that the plan performs. The caller needs the permission for each of them. */
  requiredOperations: Operation[];
  /** Definitions that do not work until a secret value is written in this app. A manifest contains no secrets. */
  missing?: { kind: ManifestItemKind; name: string }[];
  /** Called before the first plan is applied. Removes references to definitions that another plan removes. */
  removeReferences?(): Promise<void>;
  apply(): Promise<void>;
}

/** Prefixes of error statuses, each with the field of an action that causes errors with these statuses. */
const FIELD_BY_STATUS_PREFIX: readonly [prefix: string, field: string][] = [
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

/** Matches the path of a field at the start of an error message, such as `hooks[0].runOn`. */
const LEADING_PATH_PATTERN = /^[a-zA-Z]\w{0,60}(?:\.\w{1,60}|\[\d{1,6}\]){0,20}/;

/** Returns the path of the wrong field in its item, such as `.name`; "" if unknown. Uses the error's path, message or status. */
function findFaultPath({ status, message, path: errorPath }: ActionError, fields: readonly string[]): string {
  if (errorPath !== undefined) return `.${errorPath}`;
  const path = LEADING_PATH_PATTERN.exec(message)?.[0] ?? "";
  const [fieldName = ""] = path.split(/[.[]/, 1);
  if (fields.includes(fieldName)) return `.${path}`;
  const field = FIELD_BY_STATUS_PREFIX.find(([prefix]) => status.startsWith(prefix))?.[1];
  return field === undefined ? "" : `.${field}`;
}

/**
 * Converts an error about an item of the manifest to a fault with the path of the wrong field.
 * @param itemPath path of the item, such as `actions[3]`
 * @param fields names of the item's fields
 * @throws `error` if it is FORBIDDEN or not an ActionError
 */
export function toPathFault(itemPath: string, error: unknown, fields: readonly string[]): ManifestPathFault {
  if (!(error instanceof ActionError) || error.status === "FORBIDDEN") throw error;
  return { path: itemPath + findFaultPath(error, fields), status: error.status, error: error.message };
}

/** Returns the item with its name as the service stores it: without spaces around the name. */
export const trimItemName = <T extends { name: string }>(item: T): T =>
  typeof item.name === "string" ? { ...item, name: item.name.trim() } : item;

/** Returns a fault for each item with the same name as an earlier item. @param key field that contains the name */
export function findRepeatedNameFaults(
  field: string,
  key: string,
  items: readonly Record<string, unknown>[],
): ManifestPathFault[] {
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
