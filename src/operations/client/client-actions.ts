/**
 * Reads the actions that clients run in a browser: active actions with the environment `client` or `any`, either their
 * drafts or their live versions. Reads no settings.
 */
import { createHash } from "node:crypto";
import type { Asset, DraftOrLive, Environment, StoredAsset, Trigger } from "../../data/action-types.js";
import { type Db, queryPreparedRows, rows, type SqlClient } from "../../data/database.js";
import { createBoundedCache } from "../../engine/bounded-cache.js";
import { ActionError } from "../../errors.js";
import { type Caller, isPageCaller, isPersonCaller } from "../../rules/access.js";
import { compileActionScript } from "../../rules/compile-script.js";
import type { AddAssetUrls } from "../../rules/packages.js";
import { createCallerActionAccess, type FindAppUser } from "../runs/run-access.js";

/**
 * An action that a client can start on analytics events, in the form that the client receives. The client loads the
 * code from a separate URL.
 */
export interface ClientAction {
  id: number;
  /** Subresource Integrity value of the compiled script: `sha256-` and the SHA-256 hash in base64. */
  integrity: string;
  /** Triggers of the type `analytics`. Other triggers are left out. */
  triggers: Trigger[];
  assets: Asset[];
}

export interface CompiledClientAction {
  id: number;
  name: string;
  script: string;
  integrity: string;
  assets: Asset[];
}

interface ClientActionRow {
  id: number;
  copy: DraftOrLive;
  name: string;
  code: string;
  active: boolean;
  environment: Environment;
  actionVersion: string;
  triggers: Trigger[];
  assets: StoredAsset[];
  /** True if the row is a live version and the app is not published, so that the action cannot run. */
  lacksPublishedApp: boolean;
  /** Access rule that decides who may run the action, as JSON text; null if everyone may run it. */
  access: string | null;
}

const LACKS_PUBLISHED_APP = `master_id IS NOT NULL AND EXISTS (SELECT FROM app WHERE app.id = action.app_id AND published_at IS NULL)`;
const COLUMNS_WITHOUT_CODE = `id, CASE WHEN master_id IS NULL THEN 'master' ELSE 'production' END AS copy, name, active, environment,
  action_version AS "actionVersion", triggers, assets, ${LACKS_PUBLISHED_APP} AS "lacksPublishedApp", access::text AS access`;
const CLIENT_ROW_COLUMNS = `${COLUMNS_WITHOUT_CODE}, code`;

/* SQL condition for actions that a client can run. $2 is "master" for a client that runs drafts, otherwise "production". */
const IS_RUNNABLE = `app_id = $1 AND active AND environment <> 'server' AND action_version = 'v3'
  AND (master_id IS NULL) = ($2 = 'master') AND NOT (${LACKS_PUBLISHED_APP})`;

/** `version` is the time of the action's last change, for example of the code. Runs do not change `version`. */
type ListedRow = Omit<ClientActionRow, "code"> & { version: string; codeBytes: number };

const IS_STARTED_BY_EVENTS = `${IS_RUNNABLE} AND EXISTS (SELECT FROM json_array_elements(triggers) AS t WHERE t ->> 'trigger' = 'analytics')`;
const VERSION_COLUMNS = 'updated_at::text AS version, octet_length(code) AS "codeBytes"';
const SELECT_ANALYTICS_ACTIONS = `SELECT ${COLUMNS_WITHOUT_CODE}, ${VERSION_COLUMNS} FROM action
  WHERE ${IS_STARTED_BY_EVENTS} ORDER BY id`;
const SELECT_WITH_CODE = `SELECT ${CLIENT_ROW_COLUMNS}, ${VERSION_COLUMNS} FROM action
  WHERE ${IS_STARTED_BY_EVENTS} AND id = ANY ($3::bigint[])`;
/** Maximum total size in bytes of the code that one statement reads. A single larger action is read by a separate statement. */
const CODE_BYTES_PER_STATEMENT = 2 * 1024 * 1024;
/** Number of actions whose integrity value stays in memory, so that the service reads their code only once. */
const CACHED_INTEGRITIES_MAX = 50_000;

type AccessRow = Pick<ClientActionRow, "access" | "triggers">;

/* Selects the access rule and the triggers of an action that has an access rule. $3 is "master" for the draft, otherwise "production". */
const SELECT_ACCESS = `SELECT access::text AS access, triggers FROM action
  WHERE app_id = $1 AND id = $2 AND (master_id IS NULL) = ($3 = 'master') AND access IS NOT NULL`;

const computeIntegrity = (script: string): string => `sha256-${createHash("sha256").update(script).digest("base64")}`;

const isAnalyticsTrigger = ({ trigger }: Trigger): boolean => trigger === "analytics";

const createIntegrityKey = ({ id, version }: Pick<ListedRow, "id" | "version">): string => `${id}:${version}`;

/** Groups the IDs of rows, so that each group has at most CODE_BYTES_PER_STATEMENT of code. A larger action gets a group of its own. */
function groupByCodeBytes(listedRows: readonly Pick<ListedRow, "id" | "codeBytes">[]): number[][] {
  const groups: number[][] = [];
  let groupBytes = Number.POSITIVE_INFINITY;
  for (const { id, codeBytes } of listedRows) {
    groupBytes += codeBytes;
    if (groupBytes <= CODE_BYTES_PER_STATEMENT) groups.at(-1)!.push(id);
    else {
      groups.push([id]);
      groupBytes = codeBytes;
    }
  }
  return groups;
}

async function findClientActionRow(db: SqlClient, appId: number, id: number): Promise<ClientActionRow> {
  const [row] = await rows<ClientActionRow>(
    db,
    `SELECT ${CLIENT_ROW_COLUMNS} FROM action WHERE app_id = $1 AND id = $2`,
    [appId, id],
  );
  if (!row) throw new ActionError("ACTION_NOT_FOUND");
  if (row.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
  return row;
}

/** True if a client that uses `copy` (drafts or live versions) can run the action. If false, the client gets the error ACTION_NOT_FOUND. */
const canClientRun = (row: ClientActionRow, copy: DraftOrLive): boolean =>
  row.copy === copy && row.active && !row.lacksPublishedApp && row.environment !== "server";

/**
 * Returns the action of a run that a page reports. Checks that the page can run this action: by a call or on analytics events.
 * @throws ActionError ACTION_NOT_FOUND, APP_NOT_PUBLISHED, ACTION_NOT_V3, ACTION_INACTIVE, TRIGGER_NOT_ALLOWED
 */
export async function requireActionOfReportedRun(
  db: SqlClient,
  { copy }: Caller,
  appId: number,
  id: number,
): Promise<ClientActionRow> {
  const row = await findClientActionRow(db, appId, id);
  if (row.copy !== copy) throw new ActionError("ACTION_NOT_FOUND");
  if (row.lacksPublishedApp) throw new ActionError("APP_NOT_PUBLISHED");
  if (row.environment === "server") {
    throw new ActionError(
      "TRIGGER_NOT_ALLOWED",
      `the action ${row.name} is a server action, so a page cannot run its code`,
    );
  }
  if (!row.active) throw new ActionError("ACTION_INACTIVE");
  if (!row.triggers.some(({ trigger }) => trigger === "analytics" || trigger === "manual")) {
    throw new ActionError(
      "TRIGGER_NOT_ALLOWED",
      `the action ${row.name} has no "manual" or "analytics" trigger, so no page can run the action; add one of these triggers`,
    );
  }
  return row;
}

/**
 * Returns ACTION_ACCESS_DENIED if the action's access rule excludes the caller, otherwise null. Access rules do not apply to an action with
 * an analytics trigger, because every page of the app runs this action.
 */
async function findRuleError(
  caller: Caller,
  { access, triggers }: AccessRow,
  findAppUser: FindAppUser,
): Promise<ActionError | null> {
  if (access === null || triggers.some(isAnalyticsTrigger)) return null;
  const { metRules, meetsRule } = createCallerActionAccess(caller, findAppUser);
  return metRules === null || (await meetsRule(access)) ? null : new ActionError("ACTION_ACCESS_DENIED");
}

interface ClientActionsOptions {
  db: Db;
  addAssetUrls: AddAssetUrls;
  findAppUser: FindAppUser;
}

export class ClientActions {
  constructor(private readonly options: ClientActionsOptions) {}

  private readonly integrities = createBoundedCache<string, string>(CACHED_INTEGRITIES_MAX);

  private toClientAction({ id, triggers, assets }: ListedRow, integrity: string): ClientAction {
    return {
      id,
      integrity,
      triggers: triggers.filter(isAnalyticsTrigger),
      assets: this.options.addAssetUrls(assets),
    };
  }

  /** Reads actions with their code, and stores their integrity values. */
  private async readWithCode(appId: number, copy: DraftOrLive, ids: readonly number[]): Promise<ClientAction[]> {
    const codeRows = await rows<ListedRow & ClientActionRow>(this.options.db, SELECT_WITH_CODE, [appId, copy, ids]);
    return codeRows.map((row) => {
      const integrity = computeIntegrity(compileActionScript(row));
      this.integrities.set(createIntegrityKey(row), integrity);
      return this.toClientAction(row, integrity);
    });
  }

  /**
   * Returns all actions that a client can start on analytics events, sorted by ID. `copy` selects drafts or live versions. Reads the code
   * only of those actions whose integrity value is not cached.
   */
  async list(appId: number, copy: DraftOrLive): Promise<ClientAction[]> {
    const listedRows = await rows<ListedRow>(this.options.db, SELECT_ANALYTICS_ACTIONS, [appId, copy]);
    const actions: ClientAction[] = [];
    const changedRows: ListedRow[] = [];
    for (const row of listedRows) {
      const integrity = this.integrities.get(createIntegrityKey(row));
      if (integrity === undefined) changedRows.push(row);
      else actions.push(this.toClientAction(row, integrity));
    }
    for (const ids of groupByCodeBytes(changedRows)) actions.push(...(await this.readWithCode(appId, copy, ids)));
    return actions.sort((one, other) => one.id - other.id);
  }

  /** Returns the action with this ID if clients can start it on analytics events; otherwise null. */
  async find(appId: number, copy: DraftOrLive, id: number): Promise<ClientAction | null> {
    const [action] = await this.readWithCode(appId, copy, [id]);
    return action ?? null;
  }

  /**
   * Returns the error ACTION_ACCESS_DENIED if the access rule does not allow the caller to run the action; otherwise
   * null. Uses a separate database connection, so do not call this method in a transaction.
   */
  async findAccessError(caller: Caller, appId: number, id: number): Promise<ActionError | null> {
    const { db, findAppUser } = this.options;
    if (!isPageCaller(caller)) return null;
    const [row] = await queryPreparedRows<AccessRow>(db, "client-run-access", SELECT_ACCESS, [appId, id, caller.copy]);
    return row ? findRuleError(caller, row, findAppUser) : null;
  }

  /**
   * Returns the compiled script of an action. Editors, administrators and the action's debug page always get the
   * script. Other clients get it only if they can run the action.
   * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_ACCESS_DENIED
   */
  async readCompiled(caller: Caller, appId: number, id: number): Promise<CompiledClientAction> {
    const { db, addAssetUrls, findAppUser } = this.options;
    const row = await findClientActionRow(db, appId, id);
    const isDebugging = isPersonCaller(caller) || caller.debugActionId === id;
    if (!isDebugging && !canClientRun(row, caller.copy)) throw new ActionError("ACTION_NOT_FOUND");
    const refusal = isDebugging ? null : await findRuleError(caller, row, findAppUser);
    if (refusal) throw refusal;
    const script = compileActionScript(row);
    return { id, name: row.name, script, integrity: computeIntegrity(script), assets: addAssetUrls(row.assets) };
  }
}
