/** The authoring verbs: list, get, create, update, remove of master actions (specification, Action operations). Knows no transport and runs nothing. */
import type { DataSource, EntityManager } from "typeorm";
import { ActionRow, type Asset, type Copy, type Environment, type Trigger } from "../data/action.js";
import { isDuplicate } from "../data/database.js";
import { ActionError, type Status } from "../errors.js";
import type { Caller } from "../rules/access.js";
import { type ActionInput, parseCreate, parseUpdate } from "../rules/action-input.js";
import { audit } from "./audit.js";
import { page } from "./logs.js";
import { recordVersion } from "./versions.js";

/** An action as callers see it (specification, Action object). Times are ISO 8601. */
export interface Action {
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
  lastRunAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export function toAction(row: ActionRow): Action {
  const { masterId: _, lastRunAt, createdAt, updatedAt, ...fields } = row;
  return {
    ...fields,
    lastRunAt: lastRunAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

export const copyOf = (row: ActionRow): Copy => (row.masterId === null ? "master" : "production");

/** Refuses an id that no action can have before the database is asked. */
const storable = (id: number): boolean => Number.isSafeInteger(id) && id > 0;

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

/** The master of that id, locked; `refusal` is what a production copy's id is answered with. */
export async function lockMaster(
  manager: EntityManager,
  appId: number,
  id: number,
  refusal: Status,
): Promise<ActionRow> {
  const row = await findAction(manager, appId, id, { lock: true });
  if (row.masterId !== null) throw new ActionError(refusal);
  return row;
}

/** Turns the database's refusal of a second action of that name into the specified one. */
export async function uniquelyNamed<T>(name: string, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!isDuplicate(error, "action_name")) throw error;
    throw new ActionError("NAME_ALREADY_EXISTS", `another action of this app is named ${name}`);
  }
}

/** The author's fields of a row. */
export function inputOf(row: ActionRow): ActionInput {
  const { name, code, description, active, environment, triggers, dependencies, frequency, timezone } = row;
  return { name, code, description, active, environment, triggers, dependencies, frequency, timezone } as ActionInput;
}

/** The names of the fields in which two inputs differ. */
export function changedFields(before: ActionInput, after: ActionInput): string[] {
  const fields = Object.keys(after) as (keyof ActionInput)[];
  return fields.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
}

export interface Authoring {
  db: DataSource;
  /** Compiles the code without running it; throws CODE_VALIDATION_FAILED. */
  checkCode: (code: string) => Promise<void>;
  /** What the dependencies load; throws DEPENDENCIES_INVALID. */
  resolveAssets: (dependencies: readonly string[]) => Asset[];
}

export type Actions = ReturnType<typeof createActions>;

export function createActions({ db, checkCode, resolveAssets }: Authoring) {
  return {
    /** The app's masters, newest first. */
    async list(
      appId: number,
      options: { limit?: unknown; offset?: unknown },
    ): Promise<{ actions: Action[]; pagination: { total: number; hasMore: boolean } }> {
      const { limit, offset } = page(options);
      const [found, total] = await db
        .getRepository(ActionRow)
        .createQueryBuilder("action")
        .where("action.appId = :appId AND action.masterId IS NULL AND action.actionVersion = 'v3'", { appId })
        .orderBy("action.id", "DESC")
        .take(limit)
        .skip(offset)
        .getManyAndCount();
      return { actions: found.map(toAction), pagination: { total, hasMore: offset + found.length < total } };
    },

    /** @throws ACTION_NOT_FOUND, ACTION_NOT_V3 */
    async get(appId: number, id: number): Promise<Action> {
      return toAction(await findAction(db.manager, appId, id));
    },

    /** @throws a status of the validation table, NAME_ALREADY_EXISTS */
    async create(caller: Caller, appId: number, data: unknown): Promise<Action> {
      const input = parseCreate(data);
      const assets = resolveAssets(input.dependencies);
      await checkCode(input.code);
      return db.transaction(async (manager) => {
        const row = Object.assign(new ActionRow(), input, {
          appId,
          assets,
          actionVersion: "v3",
          updatedAt: new Date(),
        });
        await uniquelyNamed(input.name, manager.save(row));
        await recordVersion(manager, row, "create", caller.personId);
        await audit(manager, caller, {
          appId,
          type: "appAction.v3.create",
          actionId: row.id,
          data: { name: row.name },
        });
        return toAction(row);
      });
    },

    /** @throws a status of the validation table, NAME_ALREADY_EXISTS, CANNOT_UPDATE_PRODUCTION, ACTION_NOT_FOUND, ACTION_NOT_V3 */
    async update(caller: Caller, appId: number, id: number, data: unknown): Promise<Action> {
      return db.transaction(async (manager) => {
        const current = await lockMaster(manager, appId, id, "CANNOT_UPDATE_PRODUCTION");
        const input = parseUpdate(data, inputOf(current));
        const assets = resolveAssets(input.dependencies);
        if (input.code !== current.code) await checkCode(input.code);
        const fields = changedFields(inputOf(current), input);
        Object.assign(current, input, { assets, updatedAt: new Date() });
        await uniquelyNamed(input.name, manager.save(current));
        await recordVersion(manager, current, "update", caller.personId);
        await audit(manager, caller, { appId, type: "appAction.v3.update", actionId: id, data: { fields } });
        return toAction(current);
      });
    },

    /** Removes the master, its production copy and its history. @throws CANNOT_DELETE_PRODUCTION, ACTION_NOT_FOUND, ACTION_NOT_V3 */
    async remove(caller: Caller, appId: number, id: number): Promise<void> {
      await db.transaction(async (manager) => {
        const { name } = await lockMaster(manager, appId, id, "CANNOT_DELETE_PRODUCTION");
        await manager.delete(ActionRow, id);
        await audit(manager, caller, { appId, type: "appAction.v3.remove", actionId: id, data: { name } });
      });
    },
  };
}
