/**
 * Writes a draft ("master" in the API), a new saved version and an audit entry in one transaction. Does not validate
 * the draft.
 */
import type { Logger } from "pino";
import type { EntityManager } from "typeorm";
import { ActionRow } from "../../data/action.js";
import type { StoredAsset } from "../../data/action-types.js";
import { rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { ACTIONS_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import type { ActionInput } from "../../rules/action-input.js";
import { isStoredScript } from "../../rules/packages.js";
import { computeUpdatedAt } from "../../rules/precondition.js";
import type { TriggerEndpoints } from "../http/endpoints.js";
import { writeRoutes } from "../http/routes.js";
import { type AuditRecord, recordChange } from "../records/audit.js";
import {
  assignAuthoredFields,
  authoredFieldsOf,
  nameTakenError,
  rejectDuplicateName,
  writeActionRow,
} from "./action-rows.js";
import type { ValidatedAction } from "./action-validation.js";
import { recordVersion } from "./versions.js";

/** Returns the names of those fields whose values differ between `before` and `after`. */
export function findChangedFields(before: ActionInput, after: ActionInput): string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof ActionInput>;
  return [...fields].filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
}

/**
 * Returns an audit entry for each script that the change adds to the action: the script of a new package, or of another
 * version of a package.
 * @param before scripts that the action had before the change
 */
export function auditFactsOfAddedScripts(
  { assets }: Pick<ActionRow, "assets">,
  before: readonly StoredAsset[],
): AuditRecord[] {
  const had = new Set(before.map(({ name, sha256 }) => `${name} ${sha256}`));
  const addedAssets = assets.filter(isStoredScript).filter(({ name, sha256 }) => !had.has(`${name} ${sha256}`));
  return addedAssets.map(({ name, version = null, licence = null, integrity }) => ({
    type: "appAction.v3.dependency",
    data: { dependency: name, version, licence, integrity },
  }));
}

/** Estimated size in bytes of an action's fields other than `code` and `source`. */
const OTHER_FIELDS_BYTES = 1_000;

const SUM_OTHER_ACTIONS_BYTES = `
  SELECT coalesce(sum(octet_length(code) + coalesce(octet_length(source::text), 0) + ${OTHER_FIELDS_BYTES}), 0)::float8 AS bytes FROM action WHERE app_id = $1 AND id <> $2`;

/**
 * Checks the total size of the app's actions, including this action's new code.
 * @throws REQUEST_INVALID if the total exceeds ACTIONS_MAX_BYTES
 */
async function checkTotalSize(
  manager: EntityManager,
  appId: number,
  { code, source }: ActionInput,
  id = 0,
): Promise<void> {
  const [others] = await rows<{ bytes: number }>(manager, SUM_OTHER_ACTIONS_BYTES, [appId, id]);
  const sourceBytes = source ? Buffer.byteLength(JSON.stringify(source)) : 0;
  const total = others!.bytes + Buffer.byteLength(code) + sourceBytes + OTHER_FIELDS_BYTES;
  if (total <= ACTIONS_MAX_BYTES) return;
  const message = `the actions of one app can use at most ${ACTIONS_MAX_BYTES} bytes; this change would make ${total}`;
  throw new ActionError("REQUEST_INVALID", message);
}

export class DraftWriter {
  constructor(private readonly options: { log: Logger; endpoints: TriggerEndpoints }) {}

  /**
   * Writes a validated action to its row, and its URL paths to the table of routes. Creates a secret for the action's
   * HTTP endpoints if there is none yet. After an error, the transaction must be rolled back.
   * @throws NAME_ALREADY_EXISTS, TRIGGERS_INVALID
   */
  async store(manager: EntityManager, row: ActionRow, { input, assets }: ValidatedAction): Promise<void> {
    Object.assign(assignAuthoredFields(row, input), { assets, updatedAt: computeUpdatedAt(row.updatedAt) });
    await rejectDuplicateName(writeActionRow(manager, row), nameTakenError(input.name));
    await writeRoutes(manager, row);
    await this.options.endpoints.ensureSecret(manager, row.appId, row.id, input.triggers);
  }

  /**
   * Inserts a new draft and its first version.
   * @throws NAME_ALREADY_EXISTS, REQUEST_INVALID if the app's actions together are too large
   */
  async insert(manager: EntityManager, caller: Caller, appId: number, validated: ValidatedAction): Promise<ActionRow> {
    await checkTotalSize(manager, appId, validated.input);
    const row = Object.assign(new ActionRow(), { appId, masterId: null, actionVersion: "v3" });
    await this.store(manager, row, validated);
    const { id: actionId, name } = row;
    await recordVersion(manager, this.options.log, row, { ...caller, occasion: "create" });
    const entry = { appId, type: "appAction.v3.create", actionId, data: { name } };
    await recordChange(manager, caller, entry, auditFactsOfAddedScripts(row, []));
    return row;
  }

  /**
   * Writes the changed draft and saves it as a new version. Lock `row` before the call.
   * @throws the same errors as `insert`
   */
  async replace(
    manager: EntityManager,
    caller: Caller,
    row: ActionRow,
    validated: ValidatedAction,
  ): Promise<ActionRow> {
    const fields = findChangedFields(authoredFieldsOf(row), validated.input);
    const { assets: before } = row;
    if (validated.input.source || validated.input.code.length > row.code.length)
      await checkTotalSize(manager, row.appId, validated.input, row.id);
    await this.store(manager, row, validated);
    const { appId, id: actionId } = row;
    await recordVersion(manager, this.options.log, row, { ...caller, occasion: "update" });
    const entry = { appId, type: "appAction.v3.update", actionId, data: { fields } };
    await recordChange(manager, caller, entry, auditFactsOfAddedScripts(row, before));
    return row;
  }
}
