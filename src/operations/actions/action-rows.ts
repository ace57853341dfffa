/**
 * Finds, locks and writes rows of actions, and converts them to the form that callers receive. Validates no fields,
 * except that the name must be unique.
 */
import { type EntityManager, IsNull } from "typeorm";
import { ActionRow } from "../../data/action.js";
import type { ActionAccess, ActionSource, Asset, Environment, RunLimits, Trigger } from "../../data/action-types.js";
import { type Db, isDeadlock, isUniqueViolation, rows } from "../../data/database.js";
import { ActionError, type Status } from "../../errors.js";
import { DEFAULT_ACTION_ACCESS } from "../../rules/action-access.js";
import {
  type ActionInput,
  NO_RUN_LIMITS,
  omitActionSourceIfNull,
  omitUnsetRunLimits,
} from "../../rules/action-input.js";
import { omitActionSourceMap } from "../../rules/action-source.js";
import type { AddAssetUrls } from "../../rules/packages.js";
import { type ExpectedVersions, requireExpectedRowVersion } from "../../rules/precondition.js";
import type { TriggerEndpoint } from "../http/endpoints.js";

/** An action in the form that callers receive. Times are ISO 8601. */
export interface Action extends RunLimits {
  id: number;
  appId: number;
  name: string;
  description: string | null;
  code: string;
  active: boolean;
  environment: Environment;
  actionVersion: string;
  triggers: Trigger[];
  dependencies: string[];
  assets: Asset[];
  frequency: string | null;
  timezone: string | null;
  integrationOrigins: string[];
  access: ActionAccess;
  source?: ActionSource;
  lastRunAt: string | null;
  createdAt: string;
  updatedAt: string;
  /** HTTP endpoints of the action. Present only for callers who can edit the action. */
  endpoints?: TriggerEndpoint[];
}

export type ConvertActionRow = (row: ActionRow) => Action;

export const createActionRowConverter =
  (addAssetUrls: AddAssetUrls): ConvertActionRow =>
  ({
    masterId: _,
    liveId: __,
    lastRunAt,
    createdAt,
    updatedAt,
    assets,
    concurrency,
    debounce,
    timeoutMs,
    jitterSeconds,
    access,
    source,
    ...fields
  }) => ({
    ...fields,
    access: access ?? DEFAULT_ACTION_ACCESS,
    ...omitUnsetRunLimits({ concurrency, debounce, timeoutMs, jitterSeconds }),
    ...omitActionSourceIfNull(source && omitActionSourceMap(source)),
    assets: addAssetUrls(assets),
    lastRunAt: lastRunAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  });

/** True if a row can have this ID. Other IDs are rejected without a database query. */
export const isStorableId = (id: number): boolean => Number.isSafeInteger(id) && id > 0;

/**
 * Returns the draft or live version with this ID.
 * @param lock true to lock the row until the transaction ends
 * @throws ACTION_NOT_FOUND, ACTION_NOT_V3
 */
export async function requireAction(
  manager: EntityManager,
  appId: number,
  id: number,
  { lock = false }: { lock?: boolean } = {},
): Promise<ActionRow> {
  const row = isStorableId(id)
    ? await manager.findOne(ActionRow, {
        where: { id, appId },
        ...(lock && { lock: { mode: "for_no_key_update" as const } }),
      })
    : null;
  if (!row) throw new ActionError("ACTION_NOT_FOUND");
  if (row.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  return row;
}

/**
 * The draft to change. If the draft's ETag is not in `precondition`, the change is rejected. Without `precondition`,
 * the change is always made.
 */
export interface DraftChangeTarget {
  appId: number;
  id: number;
  precondition?: ExpectedVersions;
}

export type LockDraft = (manager: EntityManager, target: DraftChangeTarget, refusal: Status) => Promise<ActionRow>;

/**
 * Returns a function that finds and locks a draft. The function throws `refusal` for the ID of a live version. It throws ACTION_CHANGED,
 * with the current action, if the draft does not meet the precondition. It also throws ACTION_NOT_FOUND and ACTION_NOT_V3.
 */
export const createLockDraft =
  (convertRow: ConvertActionRow): LockDraft =>
  async (manager, { appId, id, precondition }, refusal) => {
    const row = await requireAction(manager, appId, id, { lock: true });
    if (row.masterId !== null) throw new ActionError(refusal);
    requireExpectedRowVersion(row.updatedAt, precondition, () => {
      const action = convertRow(row);
      const message = `the action was changed at ${action.updatedAt}, after you loaded it; load it again and repeat your change`;
      return new ActionError("ACTION_CHANGED", message, { action });
    });
    return row;
  };

/**
 * Reads a draft without a lock, for slow work before the transaction, such as requests to package registries. Returns null if no draft has
 * this ID.
 */
export async function readDraft(db: Db, { appId, id }: DraftChangeTarget): Promise<ActionRow | null> {
  const where = { id, appId, masterId: IsNull(), actionVersion: "v3" };
  return isStorableId(id) ? db.getRepository(ActionRow).findOneBy(where) : null;
}

/** Returns the live version of a draft; null if the draft is not published. */
export function findLiveVersion(manager: EntityManager, masterId: number): Promise<ActionRow | null> {
  return manager.findOne(ActionRow, { where: { masterId } });
}

/** True if another draft of the app has this name. Ignores the draft `exceptId`. */
export async function isNameTaken(
  manager: EntityManager,
  appId: number,
  name: string,
  exceptId: number | null,
): Promise<boolean> {
  const sql =
    "SELECT 1 FROM action WHERE app_id = $1 AND name = $2 AND master_id IS NULL AND id IS DISTINCT FROM $3::bigint";
  return (await rows(manager, sql, [appId, name, exceptId])).length > 0;
}

export const createNameTakenError = (name: string) =>
  new ActionError(
    "NAME_ALREADY_EXISTS",
    `another action of this app is already named ${JSON.stringify(name)}; choose another name`,
  );

/**
 * Waits for `write`, and throws `refusal` if the name is a duplicate. A deadlock also counts as a duplicate name. So `write` must write
 * only one row, which is new or already locked: then only the unique index of names can cause a deadlock.
 */
export async function rejectDuplicateName<T>(write: Promise<T>, refusal: ActionError): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw isUniqueViolation(error, "action_name") || isDeadlock(error) ? refusal : error;
  }
}

/**
 * Inserts a row, or updates all its columns except `lastRunAt` and `createdAt`. TypeORM's `save` is not used, because it merges JSON key by
 * key, and loses keys that every object inherits, such as `toString`.
 * @param isNew true to insert the row; a new live version can have an ID already: the ID of a removed live version
 */
export async function writeActionRow(
  manager: EntityManager,
  row: ActionRow,
  isNew = row.id === undefined,
): Promise<void> {
  if (isNew) {
    await manager.insert(ActionRow, row as object);
    return;
  }
  const { id, lastRunAt: _, createdAt: __, ...written } = row;
  await manager.update(ActionRow, id, written as object);
}

export function pickAuthoredFields(row: ActionRow): ActionInput {
  const { name, code, description, active, environment, triggers, dependencies, frequency, timezone } = row;
  const draftFields = { name, code, description, active, environment, triggers, dependencies, frequency, timezone };
  const { integrationOrigins, access } = row;
  return {
    ...draftFields,
    integrationOrigins,
    access: access ?? DEFAULT_ACTION_ACCESS,
    ...omitActionSourceIfNull(row.source),
    ...omitUnsetRunLimits(row),
  };
}

/** Copies `input` to the row. Clears the run limits and source files that are missing in `input`. */
export function assignAuthoredFields(row: ActionRow, input: ActionInput): ActionRow {
  const access = input.access === DEFAULT_ACTION_ACCESS ? null : input.access;
  return Object.assign(row, NO_RUN_LIMITS, { source: null }, input, { access });
}
