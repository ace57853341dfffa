/** Finds, locks and shows rows of actions. Checks that names are unique, but no other input. */
import { type DataSource, type EntityManager, IsNull } from "typeorm";
import { ActionRow } from "../../data/action.js";
import type {
  ActionAccess,
  ActionSource,
  Asset,
  Copy,
  Environment,
  RunLimits,
  Trigger,
} from "../../data/action-types.js";
import { isDeadlock, isDuplicate, rows } from "../../data/database.js";
import { ActionError, type Status } from "../../errors.js";
import { DEFAULT_ACCESS } from "../../rules/action-access.js";
import { type ActionInput, NO_LIMITS, presentLimits, presentSource } from "../../rules/action-input.js";
import { shownSource } from "../../rules/action-source.js";
import type { AddressAssets } from "../../rules/packages.js";
import { type ExpectedTags, requireUnchanged } from "../../rules/precondition.js";
import type { Endpoint } from "../http/endpoints.js";

/** Action as callers see it (specification, Action object). Times are ISO 8601. */
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
  /** Endpoints for callers who can edit the action (operations/http/endpoints.ts). */
  endpoints?: Endpoint[];
}

export type ShowAction = (row: ActionRow) => Action;

export const createShowAction =
  (addressed: AddressAssets): ShowAction =>
  ({
    masterId: _,
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
    access: access ?? DEFAULT_ACCESS,
    ...presentLimits({ concurrency, debounce, timeoutMs, jitterSeconds }),
    ...presentSource(source && shownSource(source)),
    assets: addressed(assets),
    lastRunAt: lastRunAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  });

export const copyOf = (row: ActionRow): Copy => (row.masterId === null ? "master" : "production");

/** True for an id that a row can have; other ids are rejected without a query. */
export const isStorableId = (id: number): boolean => Number.isSafeInteger(id) && id > 0;

/**
 * Returns the app's action of that id, draft or live.
 * @param lock locks the row until the transaction ends
 * @throws ACTION_NOT_FOUND, ACTION_NOT_V3
 */
export async function findAction(
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

/** The draft to change, and the versions on which the change may be based. Without a `precondition`, any version is allowed. */
export interface Target {
  appId: number;
  id: number;
  precondition?: ExpectedTags;
}

export type LockMaster = (manager: EntityManager, target: Target, refusal: Status) => Promise<ActionRow>;

/**
 * Returns a function that finds and locks a draft; `refusal` is the error for a live version's id.
 * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_CHANGED with the current action
 */
export const createLockMaster =
  (show: ShowAction): LockMaster =>
  async (manager, { appId, id, precondition }, refusal) => {
    const row = await findAction(manager, appId, id, { lock: true });
    if (row.masterId !== null) throw new ActionError(refusal);
    requireUnchanged(row.updatedAt, precondition, () => {
      const action = show(row);
      const message = `the action was changed at ${action.updatedAt}, after the state that this change started from`;
      return new ActionError("ACTION_CHANGED", message, { action });
    });
    return row;
  };

/**
 * Reads the draft without a lock, for requests to other hosts before the transaction starts. Returns null for an ID
 * that the transaction will reject.
 */
export async function unlockedMaster(db: DataSource, { appId, id }: Target): Promise<ActionRow | null> {
  const where = { id, appId, masterId: IsNull(), actionVersion: "v3" };
  return isStorableId(id) ? db.getRepository(ActionRow).findOneBy(where) : null;
}

/** Returns the live version of a draft; null if there is none. */
export function productionOf(manager: EntityManager, masterId: number): Promise<ActionRow | null> {
  return manager.findOne(ActionRow, { where: { masterId } });
}

/** True if a draft of the app other than `exceptId` has the name. */
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

/** Returns the error NAME_ALREADY_EXISTS for a draft. */
export const nameTaken = (name: string) =>
  new ActionError("NAME_ALREADY_EXISTS", `name must be unique in the app; another action is named ${name}`);

/**
 * Replaces the database error for a duplicate name by NAME_ALREADY_EXISTS. `write` must write one new or locked row, so that the statement
 * can only wait for the index of names.
 */
export async function uniquelyNamed<T>(write: Promise<T>, refusal: ActionError): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw isDuplicate(error, "action_name") || isDeadlock(error) ? refusal : error;
  }
}

/**
 * Writes the whole row, new or existing. TypeORM's `save` would merge JSON key by key, and would lose keys that every object inherits, such
 * as `toString`.
 */
export async function writeRow(manager: EntityManager, row: ActionRow): Promise<void> {
  if (row.id === undefined) {
    await manager.insert(ActionRow, row as object);
    return;
  }
  const { id, lastRunAt: _, createdAt: __, ...written } = row;
  await manager.update(ActionRow, id, written as object);
}

/** Returns the author's fields of a row. */
export function inputOf(row: ActionRow): ActionInput {
  const { name, code, description, active, environment, triggers, dependencies, frequency, timezone } = row;
  const draftFields = { name, code, description, active, environment, triggers, dependencies, frequency, timezone };
  const { integrationOrigins, access } = row;
  return {
    ...draftFields,
    integrationOrigins,
    access: access ?? DEFAULT_ACCESS,
    ...presentSource(row.source),
    ...presentLimits(row),
  };
}

/** Sets the author's fields of a row; absent fields are cleared. */
export function assignInput(row: ActionRow, input: ActionInput): ActionRow {
  const access = input.access === DEFAULT_ACCESS ? null : input.access;
  return Object.assign(row, NO_LIMITS, { source: null }, input, { access });
}
