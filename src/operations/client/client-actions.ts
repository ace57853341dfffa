/**
 * Reads the actions that clients run in a browser: active `client` and `any` actions of one version, draft or live,
 * without settings.
 */
import { createHash } from "node:crypto";
import type { DataSource } from "typeorm";
import type { Asset, Copy, Environment, StoredAsset, Trigger } from "../../data/action-types.js";
import { type Executor, preparedRows, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { type Caller, isPersonCaller, isVisitor } from "../../rules/access.js";
import { compileScript } from "../../rules/compile-script.js";
import type { AddressAssets } from "../../rules/packages.js";
import { runAccessOf, type UserOf } from "../runs/run-access.js";

/** An action that a client may start on events, as the client receives it. The code has a separate URL. */
export interface ClientAction {
  id: number;
  /** Subresource integrity of the compiled script: `sha256-` and the hash in base64. */
  integrity: string;
  /** Analytics triggers only. */
  triggers: Trigger[];
  assets: Asset[];
}

/** An action as a script for browsers. */
export interface CompiledScript {
  id: number;
  name: string;
  script: string;
  integrity: string;
  assets: Asset[];
}

interface ClientRow {
  id: number;
  copy: Copy;
  name: string;
  code: string;
  active: boolean;
  environment: Environment;
  actionVersion: string;
  triggers: Trigger[];
  assets: StoredAsset[];
  /** True for a live version whose app is unpublished, so that the action cannot run. */
  isPaused: boolean;
  /** Access rule of the action as JSON text; null if everyone may run it. */
  access: string | null;
}

const IS_PAUSED = `master_id IS NOT NULL AND EXISTS (SELECT FROM app WHERE app.id = action.app_id AND published_at IS NULL)`;
const COLUMNS = `id, CASE WHEN master_id IS NULL THEN 'master' ELSE 'production' END AS copy, name, code, active, environment,
  action_version AS "actionVersion", triggers, assets, ${IS_PAUSED} AS "isPaused", access::text AS access`;

/* Condition for actions that a client can run. $2 is the client's version, draft or live. */
const IS_RUNNABLE = `app_id = $1 AND active AND environment <> 'server' AND action_version = 'v3'
  AND (master_id IS NULL) = ($2 = 'master') AND NOT (${IS_PAUSED})`;

type AccessRow = Pick<ClientRow, "access" | "triggers">;

/* Selects the access of an action; $3 is the caller's version, draft or live. */
const FIND_ACCESS = `SELECT access::text AS access, triggers FROM action
  WHERE app_id = $1 AND id = $2 AND (master_id IS NULL) = ($3 = 'master') AND access IS NOT NULL`;

const integrityOf = (script: string): string => `sha256-${createHash("sha256").update(script).digest("base64")}`;

const isAnalytics = ({ trigger }: Trigger): boolean => trigger === "analytics";

async function rowOf(db: Executor, appId: number, id: number): Promise<ClientRow> {
  const [row] = await rows<ClientRow>(db, `SELECT ${COLUMNS} FROM action WHERE app_id = $1 AND id = $2`, [appId, id]);
  if (!row) throw new ActionError("ACTION_NOT_FOUND");
  if (row.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  return row;
}

/**
 * True if a client of the version `copy` (draft or live) can run the action. Clients get ACTION_NOT_FOUND for all other
 * actions.
 */
const isOfClient = (row: ClientRow, copy: Copy): boolean =>
  row.copy === copy && row.active && !row.isPaused && row.environment !== "server";

/**
 * Returns the action whose run in a browser the caller may report. The action must be able to run there, on an event or
 * by hand.
 * @throws ActionError ACTION_NOT_FOUND, APP_NOT_PUBLISHED, ACTION_NOT_V3, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED
 */
export async function findReported(db: Executor, { copy }: Caller, appId: number, id: number): Promise<ClientRow> {
  const row = await rowOf(db, appId, id);
  if (row.copy !== copy) throw new ActionError("ACTION_NOT_FOUND");
  if (row.isPaused) throw new ActionError("APP_NOT_PUBLISHED");
  if (row.environment === "server") {
    throw new ActionError(
      "TRIGGER_NOT_ALLOWED",
      `the action ${row.name} is a server action, which runs in the service and not in a page`,
    );
  }
  if (!row.active) throw new ActionError("ACTION_INACTIVE");
  if (!row.triggers.some(({ trigger }) => trigger === "analytics" || trigger === "manual")) {
    throw new ActionError(
      "TRIGGER_NOT_ALLOWED",
      `the action ${row.name} has no "manual" or "analytics" trigger, so no page can run the action`,
    );
  }
  return row;
}

/**
 * Returns the error if the caller's page may not run the action by hand, otherwise null. An action with an analytics
 * trigger runs in every page, so access does not apply to it.
 */
async function refusalOf(caller: Caller, { access, triggers }: AccessRow, userOf: UserOf): Promise<ActionError | null> {
  if (access === null || triggers.some(isAnalytics)) return null;
  const { granted, isGranted } = runAccessOf(caller, userOf);
  return granted === null || (await isGranted(access)) ? null : new ActionError("ACTION_ACCESS_DENIED");
}

export type ClientActions = ReturnType<typeof createClientActions>;

export function createClientActions(options: { db: DataSource; addressed: AddressAssets; userOf: UserOf }) {
  const { db, addressed, userOf } = options;

  function toClientAction(row: ClientRow): ClientAction | null {
    const triggers = row.triggers.filter(isAnalytics);
    if (triggers.length === 0) return null;
    return { id: row.id, integrity: integrityOf(compileScript(row)), triggers, assets: addressed(row.assets) };
  }

  return {
    /** Returns all actions that a client of that version can start on events, ordered by ID. */
    async list(appId: number, copy: Copy): Promise<ClientAction[]> {
      const sql = `SELECT ${COLUMNS} FROM action WHERE ${IS_RUNNABLE} ORDER BY id`;
      const clientRows = await rows<ClientRow>(db, sql, [appId, copy]);
      return clientRows.flatMap((row) => toClientAction(row) ?? []);
    },

    /** Returns the client action with this ID; null if clients of that version cannot run such an action. */
    async find(appId: number, copy: Copy, id: number): Promise<ClientAction | null> {
      const sql = `SELECT ${COLUMNS} FROM action WHERE ${IS_RUNNABLE} AND id = $3`;
      const [row] = await rows<ClientRow>(db, sql, [appId, copy, id]);
      return row ? toClientAction(row) : null;
    },

    /** Returns ACTION_ACCESS_DENIED or null. Uses its own connection: call it outside of transactions. */
    async accessRefusal(caller: Caller, appId: number, id: number): Promise<ActionError | null> {
      if (!isVisitor(caller)) return null;
      const [row] = await preparedRows<AccessRow>(db, "client-run-access", FIND_ACCESS, [appId, id, caller.copy]);
      return row ? refusalOf(caller, row, userOf) : null;
    },

    /**
     * Returns the compiled script of an action. Editors, administrators and the action's debug page always get it;
     * clients only if they can run the action.
     * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_ACCESS_DENIED
     */
    async readCompiled(caller: Caller, appId: number, id: number): Promise<CompiledScript> {
      const row = await rowOf(db, appId, id);
      const isDebugging = isPersonCaller(caller) || caller.debugs === id;
      if (!isDebugging && !isOfClient(row, caller.copy)) throw new ActionError("ACTION_NOT_FOUND");
      const refusal = isDebugging ? null : await refusalOf(caller, row, userOf);
      if (refusal) throw refusal;
      const script = compileScript(row);
      return { id, name: row.name, script, integrity: integrityOf(script), assets: addressed(row.assets) };
    },
  };
}
