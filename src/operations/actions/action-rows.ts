/** Rows of actions: found, locked, named and shown to callers. Judges no input and writes nothing but through `uniquelyNamed`. */
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
import { type ActionInput, givenLimits, givenSource, NO_LIMITS } from "../../rules/action-input.js";
import { shownSource } from "../../rules/action-source.js";
import type { Addressed } from "../../rules/packages.js";
import { mustStand, type Precondition } from "../../rules/precondition.js";
import type { Endpoint } from "../http/endpoints.js";

/** An action as callers see it (specification, Action object). Times are ISO 8601. */
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
  /** For callers who may edit the action (operations/http/endpoints.ts). */
  endpoints?: Endpoint[];
}

export type ShowAction = (row: ActionRow) => Action;

export const createShowAction =
  (addressed: Addressed): ShowAction =>
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
    ...givenLimits({ concurrency, debounce, timeoutMs, jitterSeconds }),
    ...givenSource(source && shownSource(source)),
    assets: addressed(assets),
    lastRunAt: lastRunAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  });

export const copyOf = (row: ActionRow): Copy => (row.masterId === null ? "master" : "production");

/** Refuses an id that no row can have before the database is asked. */
export const storable = (id: number): boolean => Number.isSafeInteger(id) && id > 0;

/**
 * The app's action of that id, whichever copy it is.
 * @param lock hold the row until the transaction ends
 * @throws ACTION_NOT_FOUND, ACTION_NOT_V3
 */
export async function findAction(
  manager: EntityManager,
  appId: number,
  id: number,
  { lock = false }: { lock?: boolean } = {},
): Promise<ActionRow> {
  const row = storable(id)
    ? await manager.findOne(ActionRow, {
        where: { id, appId },
        ...(lock && { lock: { mode: "pessimistic_write" as const } }),
      })
    : null;
  if (!row) throw new ActionError("ACTION_NOT_FOUND");
  if (row.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  return row;
}

/** Whose master is to be changed, and from which state; `precondition` undefined: from whatever stands. */
export interface Target {
  appId: number;
  id: number;
  precondition?: Precondition;
}

export type LockMaster = (manager: EntityManager, target: Target, refusal: Status) => Promise<ActionRow>;

/**
 * What finds a master and locks it; `refusal` is what a production copy's id is answered with.
 * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_CHANGED with the action as it stands now
 */
export const createLockMaster =
  (show: ShowAction): LockMaster =>
  async (manager, { appId, id, precondition }, refusal) => {
    const row = await findAction(manager, appId, id, { lock: true });
    if (row.masterId !== null) throw new ActionError(refusal);
    mustStand(row.updatedAt, precondition, () => {
      const action = show(row);
      const message = `the action was changed at ${action.updatedAt}, after the state that this change started from`;
      return new ActionError("ACTION_CHANGED", message, { action });
    });
    return row;
  };

/**
 * A master as it stands, for what is asked of others ahead of the transaction that locks it; null where that is to refuse the id.
 */
export async function unlockedMaster(db: DataSource, { appId, id }: Target): Promise<ActionRow | null> {
  const where = { id, appId, masterId: IsNull(), actionVersion: "v3" };
  return storable(id) ? db.getRepository(ActionRow).findOneBy(where) : null;
}

/** The production copy of a master; null when it has none. */
export function productionOf(manager: EntityManager, masterId: number): Promise<ActionRow | null> {
  return manager.findOne(ActionRow, { where: { masterId } });
}

/** Whether a master of the app, other than `exceptId`, bears the name. */
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

/** NAME_ALREADY_EXISTS for drafts. */
export const nameTaken = (name: string) =>
  new ActionError("NAME_ALREADY_EXISTS", `name must be unique in the app; another action is named ${name}`);

/**
 * Turns the database's unique violation of a name into the specified error. `write` is of one row that is new or locked, so that it can
 * wait only at the index of names: two that swap their names wait for each other.
 */
export async function uniquelyNamed<T>(write: Promise<T>, refusal: ActionError): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw isDuplicate(error, "action_name") || isDeadlock(error) ? refusal : error;
  }
}

/**
 * Writes the row whole, new or known. Not by TypeORM's `save`, which merges JSON key by key on its way and loses those that every
 * object inherits, such as `toString`.
 */
export async function writeRow(manager: EntityManager, row: ActionRow): Promise<void> {
  if (row.id === undefined) {
    await manager.insert(ActionRow, row as object);
    return;
  }
  const { id, lastRunAt: _, createdAt: __, ...written } = row;
  await manager.update(ActionRow, id, written as object);
}

/** The author's fields of a row. */
export function inputOf(row: ActionRow): ActionInput {
  const { name, code, description, active, environment, triggers, dependencies, frequency, timezone } = row;
  const plain = { name, code, description, active, environment, triggers, dependencies, frequency, timezone };
  const { integrationOrigins, access } = row;
  return {
    ...plain,
    integrationOrigins,
    access: access ?? DEFAULT_ACCESS,
    ...givenSource(row.source),
    ...givenLimits(row),
  };
}

/** Gives a row an author's fields: what is not set of them is not set there either. */
export function assignInput(row: ActionRow, input: ActionInput): ActionRow {
  const access = input.access === DEFAULT_ACCESS ? null : input.access;
  return Object.assign(row, NO_LIMITS, { source: null }, input, { access });
}
