/** Writes a draft ("master" in the API), a new saved version and an audit entry in one transaction. Does not validate the draft. */
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import { ActionRow } from "../../data/action.js";
import type { StoredAsset } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { ACTIONS_PER_APP_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { type ActionInput, omitActionSourceIfNull } from "../../rules/action-input.js";
import { isStoredScript, type StoredScriptAsset } from "../../rules/packages.js";
import { computeNextUpdatedAt } from "../../rules/precondition.js";
import type { TriggerEndpoints } from "../http/endpoints.js";
import { writeRoutes } from "../http/routes.js";
import type { ScriptQuota } from "../packages/script-quota.js";
import { type NewAuditEntry, recordChange } from "../records/audit.js";
import {
  assignAuthoredFields,
  createNameTakenError,
  pickAuthoredFields,
  rejectDuplicateName,
  writeActionRow,
} from "./action-rows.js";
import type { ValidatedAction } from "./action-validation.js";
import { storeDraftVersion } from "./versions.js";

export function findChangedFields(before: ActionInput, after: ActionInput): string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof ActionInput>;
  return [...fields].filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
}

function findAddedScripts(assets: readonly StoredAsset[], before: readonly StoredAsset[]): StoredScriptAsset[] {
  const scriptsBefore = new Set(before.map(({ name, sha256 }) => `${name} ${sha256}`));
  return assets.filter(isStoredScript).filter(({ name, sha256 }) => !scriptsBefore.has(`${name} ${sha256}`));
}

/**
 * Returns an audit entry for each script that a change of the draft adds to the action.
 * @param before scripts that the action had before the change
 */
export function createAddedScriptAuditEntries(
  { assets }: Pick<ActionRow, "assets">,
  before: readonly StoredAsset[],
): NewAuditEntry[] {
  return findAddedScripts(assets, before).map(({ name, version = null, licence = null, integrity }) => ({
    type: "appAction.v3.dependency",
    data: { dependency: name, version, licence, integrity },
  }));
}

/** Estimated size in bytes of an action's fields other than `code` and `source`. */
const OTHER_FIELDS_BYTES = 1_000;

const SUM_OTHER_ACTIONS_BYTES = `
  SELECT coalesce(sum(octet_length(code) + coalesce(octet_length(source::text), 0) + ${OTHER_FIELDS_BYTES}), 0)::float8 AS bytes FROM action WHERE app_id = $1 AND id <> $2`;

const measureActionBytes = ({ code, source }: Pick<ActionInput, "code" | "source">): number =>
  Buffer.byteLength(code) + (source ? Buffer.byteLength(JSON.stringify(source)) : 0) + OTHER_FIELDS_BYTES;

/**
 * Checks the total size of the app's actions before a row is written. A row that does not become larger is always
 * accepted. The transaction must have locked the app.
 * @param row the stored draft or live version; without an ID if it is new
 * @param after the values that will be written to the row
 * @throws REQUEST_INVALID if the total exceeds ACTIONS_PER_APP_MAX_BYTES
 */
export async function checkTotalActionSize(
  manager: EntityManager,
  row: Pick<ActionRow, "appId"> & Partial<Pick<ActionRow, "id" | "code" | "source">>,
  after: Pick<ActionInput, "code" | "source">,
): Promise<void> {
  const { appId, id, code, source = null } = row;
  const size = measureActionBytes(after);
  if (code !== undefined && size <= measureActionBytes({ code, ...omitActionSourceIfNull(source) })) return;
  const [others] = await rows<{ bytes: number }>(manager, SUM_OTHER_ACTIONS_BYTES, [appId, id ?? 0]);
  const total = others!.bytes + size;
  if (total <= ACTIONS_PER_APP_MAX_BYTES) return;
  const message =
    `the drafts and live versions of one app can use at most ${ACTIONS_PER_APP_MAX_BYTES} bytes, ` +
    `but would use ${total} after this change; delete or shorten actions`;
  throw new ActionError("REQUEST_INVALID", message);
}

export class DraftWriter {
  constructor(
    private readonly options: {
      log: Logger;
      endpoints: TriggerEndpoints;
      quota: Pick<ScriptQuota, "checkSavedScripts">;
    },
  ) {}

  /**
   * Writes a validated action to its row, and its URL paths to the table of routes. Creates the secret of the HTTP endpoints if a trigger
   * needs one and the draft has none. Call this method in a transaction that has locked the app. After an error, roll the transaction back.
   * @throws NAME_ALREADY_EXISTS, TRIGGERS_INVALID; REQUEST_INVALID or DEPENDENCY_UNRESOLVED if the app's actions or scripts are too large
   */
  async store(manager: EntityManager, row: ActionRow, { input, assets }: ValidatedAction): Promise<void> {
    await checkTotalActionSize(manager, row, input);
    const addedScripts = findAddedScripts(assets, row.assets ?? []);
    Object.assign(assignAuthoredFields(row, input), { assets, updatedAt: computeNextUpdatedAt(row.updatedAt) });
    await rejectDuplicateName(writeActionRow(manager, row), createNameTakenError(input.name));
    await this.options.quota.checkSavedScripts(manager, row.appId, addedScripts);
    await writeRoutes(manager, row);
    await this.options.endpoints.ensureSecret(manager, row.appId, row.id, input.triggers);
  }

  /**
   * Inserts a new draft and its first version. The transaction must have locked the app.
   * @throws the same errors as `store`
   */
  async insert(manager: EntityManager, caller: Caller, appId: number, validated: ValidatedAction): Promise<ActionRow> {
    const row = Object.assign(new ActionRow(), { appId, masterId: null, actionVersion: "v3" });
    await this.store(manager, row, validated);
    const { id: actionId, name } = row;
    await storeDraftVersion(manager, this.options.log, row, { ...caller, occasion: "create" });
    const entry = { appId, type: "appAction.v3.create", actionId, data: { name } };
    await recordChange(manager, caller, entry, createAddedScriptAuditEntries(row, []));
    return row;
  }

  /**
   * Writes the changed draft and saves it as a new version. The transaction must have locked the app, and then `row`.
   * @throws the same errors as `store`
   */
  async replace(
    manager: EntityManager,
    caller: Caller,
    row: ActionRow,
    validated: ValidatedAction,
  ): Promise<ActionRow> {
    const fields = findChangedFields(pickAuthoredFields(row), validated.input);
    const { assets: before } = row;
    await this.store(manager, row, validated);
    const { appId, id: actionId } = row;
    await storeDraftVersion(manager, this.options.log, row, { ...caller, occasion: "update" });
    const entry = { appId, type: "appAction.v3.update", actionId, data: { fields } };
    await recordChange(manager, caller, entry, createAddedScriptAuditEntries(row, before));
    return row;
  }
}
