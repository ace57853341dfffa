/**
 * Compares the actions in a document (an import file or a manifest) with the app's drafts, and writes the changed drafts. An action in the
 * document changes the draft with the same name.
 */

import { type EntityManager, IsNull } from "typeorm";
import { ActionRow } from "../../data/action.js";
import type { LimitData, RunLimits, StoredAsset } from "../../data/action-types.js";
import type { Db } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import type { Caller } from "../../rules/access.js";
import { type ActionInput, NO_RUN_LIMITS, omitActionSourceIfNull } from "../../rules/action-input.js";
import { omitActionSourceMap } from "../../rules/action-source.js";
import { isObject } from "../../rules/describe-value.js";
import { isStoredScript } from "../../rules/packages.js";
import { deleteRoutes } from "../http/routes.js";
import type { DependencyResolver, ResolvedDependencies } from "../packages/packages.js";
import type { ScriptQuotaRequest } from "../packages/script-quota.js";
import { pickAuthoredFields } from "./action-rows.js";
import type { ActionValidation, ValidatedAction } from "./action-validation.js";
import { type DraftWriter, findChangedFields } from "./draft-writer.js";

/**
 * An exported action with all fields that authors can write. An empty field is included too, so that an import clears it. `assets`
 * identifies the scripts of the action's packages. An import uses exactly these scripts if the service has them.
 */
export type ExportedAction = Omit<ActionInput, keyof RunLimits> &
  LimitData & { assets?: { name: string; version?: string; integrity: string }[] };

/** Action in an import, before its validation, with its resolved dependencies. `data` is the action as received. */
export interface ImportedAction {
  data: unknown;
  resolved: ResolvedDependencies;
}

export interface ActionImportStep {
  /** The draft to replace; null to create a draft. */
  current: ActionRow | null;
  validated: ValidatedAction;
  /** Names of the draft's fields that the import changes; empty for a new draft. */
  fields: string[];
}

function toExportedAssets({ assets }: ActionRow): Pick<ExportedAction, "assets"> {
  const stored = assets
    .filter(isStoredScript)
    .map(({ name, version, integrity }) => ({ name, ...(version && { version }), integrity: integrity! }));
  return stored.length === 0 ? {} : { assets: stored };
}

export const toExportedAction = (row: ActionRow): ExportedAction => ({
  ...NO_RUN_LIMITS,
  ...pickAuthoredFields(row),
  ...omitActionSourceIfNull(row.source && omitActionSourceMap(row.source)),
  ...toExportedAssets(row),
});

const formatScriptList = (assets: readonly StoredAsset[]) =>
  assets.map(({ name, sha256 = "" }) => `${name} ${sha256}`).join("\n");
const hasSameScripts = (left: readonly StoredAsset[], right: readonly StoredAsset[]) =>
  formatScriptList(left) === formatScriptList(right);

export const getActionNameOrNull = (data: unknown): string | null =>
  isObject(data) && typeof data["name"] === "string" ? data["name"] : null;

/**
 * Returns the names of the actions in a document. Leaves out names with a NUL character, which PostgreSQL cannot store.
 * The validation of the actions rejects these names later.
 */
export const listStorableActionNames = (all: readonly unknown[]): string[] =>
  all.map(getActionNameOrNull).filter((name): name is string => name !== null && !name.includes("\0"));

interface ActionImporterOptions {
  db: Db;
  validation: ActionValidation;
  draftWriter: DraftWriter;
  packages: DependencyResolver;
}

export class ActionImporter {
  constructor(private readonly options: ActionImporterOptions) {}

  /** Returns all drafts of the app, sorted by name. */
  async listDrafts(manager: EntityManager, appId: number): Promise<ActionRow[]> {
    const actionRows = await manager
      .getRepository(ActionRow)
      .findBy({ appId, actionVersion: "v3", masterId: IsNull() });
    return actionRows.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Locks the app's drafts with these names until the transaction ends; if `names` is null, locks all drafts. Locks
   * them in the order of their IDs, so that two transactions cannot deadlock. Returns the locked drafts by name.
   */
  async lockDrafts(manager: EntityManager, appId: number, names: string[] | null): Promise<Map<string, ActionRow>> {
    const actionRows = await manager
      .createQueryBuilder(ActionRow, "action")
      .where("action.appId = :appId AND action.masterId IS NULL", { appId })
      .andWhere("(:all OR action.name = ANY (:names))", { all: names === null, names: names ?? [] })
      .orderBy("action.id")
      .setLock("for_no_key_update")
      .getMany();
    return new Map(actionRows.map((row) => [row.name, row]));
  }

  /**
   * Checks the code and resolves the dependencies of each action. These steps are slow, so call this method before the
   * transaction, which holds locks.
   */
  async prepare(author: ScriptQuotaRequest, all: readonly unknown[]): Promise<ImportedAction[]> {
    const { db, validation, packages } = this.options;
    const importedActions: ImportedAction[] = [];
    for (const data of all) {
      const [name] = listStorableActionNames([data]);
      const where = { appId: author.appId, name: name ?? "", masterId: IsNull(), actionVersion: "v3" };
      const row = name === undefined ? null : await db.getRepository(ActionRow).findOneBy(where);
      const exportedAssets = await packages.readExportedAssets(isObject(data) ? data["assets"] : undefined);
      importedActions.push({ data, resolved: await validation.prepare(author, data, row, exportedAssets) });
    }
    return importedActions;
  }

  /**
   * Validates one action of the document.
   * @param rewrittenIds IDs of the drafts that the import replaces or removes. Actions in the document may use the URL paths of these
   *   drafts
   * @throws ActionError the error statuses of invalid fields (rules/validation-table.ts), DEPENDENCY_UNRESOLVED, ACTION_NOT_V3
   */
  async validate(
    manager: EntityManager,
    appId: number,
    { data, resolved }: ImportedAction,
    row: ActionRow | null,
    rewrittenIds: readonly number[],
  ): Promise<ActionImportStep> {
    const { validation } = this.options;
    if (!row) {
      const createdAction = await validation.validateCreate(manager, appId, data, resolved, rewrittenIds);
      return { current: null, validated: createdAction, fields: [] };
    }
    if (row.actionVersion !== "v3") throw new ActionError("ACTION_NOT_V3");
    const validatedAction = await validation.validateUpdate(manager, row, data, resolved, rewrittenIds);
    const fields = findChangedFields(pickAuthoredFields(row), validatedAction.input);
    return {
      current: row,
      validated: validatedAction,
      fields: hasSameScripts(row.assets, validatedAction.assets) ? fields : [...fields, "assets"],
    };
  }

  /**
   * Writes the validated actions. The transaction must have locked the app.
   * @throws the errors of `DraftWriter.store`
   */
  async apply(
    manager: EntityManager,
    caller: Caller,
    appId: number,
    steps: readonly ActionImportStep[],
  ): Promise<void> {
    const { draftWriter } = this.options;
    // Actions are written in the order of their names, so that two imports cannot deadlock in the unique index of names.
    const sortedSteps = steps.toSorted((a, b) => (a.validated.input.name < b.validated.input.name ? -1 : 1));
    const rewrittenIds = steps.flatMap(({ current: row, fields }) => (row && fields.length > 0 ? [row.id] : []));
    await deleteRoutes(manager, rewrittenIds);
    for (const { current: row, validated: validatedAction, fields } of sortedSteps) {
      if (!row) await draftWriter.insert(manager, caller, appId, validatedAction);
      else if (fields.length > 0) await draftWriter.replace(manager, caller, row, validatedAction);
    }
  }
}
