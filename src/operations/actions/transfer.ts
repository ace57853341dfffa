/**
 * Exports an app's actions as one document, and imports documents of this format. A document contains no IDs of actions, so that any app
 * can import it. The log trigger of an action keeps the ID of its data source, which only the exported app has.
 */

import type { EntityManager } from "typeorm";
import { type Db, rows } from "../../data/database.js";
import { ActionError, type ActionImportFault } from "../../errors.js";
import { GRAPHQL_RESPONSE_MAX_BYTES } from "../../limits.js";
import type { Caller } from "../../rules/access.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import { refuseField } from "../../rules/fields.js";
import type { ReserveResponseBytes } from "../../rules/page.js";
import { createFlatShape, refuseUnknownFields } from "../../rules/unknown-fields.js";
import { createDuplicateRouteCheck } from "../http/routes.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import {
  type ActionImporter,
  type ActionImportStep,
  type ExportedAction,
  getActionNameOrNull,
  type ImportedAction,
  listStorableActionNames,
  toExportedAction,
} from "./import-steps.js";

/** Field "format" of an exported document. Each incompatible change increases the version. */
export const TRANSFER_FORMAT = "svc-app-actions/1";

const IMPORT_MAX_ACTIONS = 1_000;
/** Fields that an imported document may have. The fields of the actions in the document are checked separately. */
const DOCUMENT_SHAPE = createFlatShape(["format", "actions"]);

const SUM_EXPORTED_BYTES = `
  SELECT coalesce(sum(octet_length(code) + octet_length(triggers::text) + coalesce(octet_length(source::text), 0)), 0)::bigint AS bytes FROM action
   WHERE app_id = $1 AND master_id IS NULL AND action_version = 'v3'`;

/**
 * Document that an export returns. The actions are sorted by name, and contain only the fields that authors can write.
 * They contain no times, and no IDs except `dataSourceId` of log triggers.
 */
export interface ActionTransferDocument {
  format: typeof TRANSFER_FORMAT;
  actions: ExportedAction[];
}

/** Result of an import or of a dry run. `faults` is empty after an import, because an import with an invalid action throws. */
export interface ImportReport {
  dryRun: boolean;
  created: string[];
  updated: { name: string; fields: string[] }[];
  unchanged: string[];
  faults: ActionImportFault[];
}

interface ValidatedImport {
  steps: ActionImportStep[];
  faults: ActionImportFault[];
  /** Seconds after which a retry may fix all faults; Infinity if a retry cannot fix one of them. */
  retryAfter: number;
}

/** Returns the actions in a document. @throws REQUEST_INVALID if `document` does not have the format TRANSFER_FORMAT */
function readActions(document: unknown): unknown[] {
  const { format, actions } = isObject(document) ? document : {};
  if (format !== TRANSFER_FORMAT) {
    refuseField("format", `"${TRANSFER_FORMAT}"`, format);
  }
  if (!Array.isArray(actions) || actions.length > IMPORT_MAX_ACTIONS) {
    const expected = `an array of at most ${IMPORT_MAX_ACTIONS} actions`;
    refuseField("actions", expected, actions);
  }
  return actions;
}

function createImportReport({ steps, faults }: ValidatedImport, dryRun: boolean): ImportReport {
  const namesOfSteps = (isListed: (step: ActionImportStep) => boolean) =>
    steps.filter(isListed).map(({ validated }) => validated.input.name);
  return {
    dryRun,
    created: namesOfSteps(({ current }) => current === null),
    updated: steps
      .filter(({ current, fields }) => current !== null && fields.length > 0)
      .map(({ validated, fields }) => ({ name: validated.input.name, fields })),
    unchanged: namesOfSteps(({ current, fields }) => current !== null && fields.length === 0),
    faults,
  };
}

function createImportError({ steps, faults, retryAfter }: ValidatedImport): ActionError {
  const all = steps.length + faults.length;
  const [{ name, error }] = faults as [ActionImportFault];
  const message =
    `nothing was imported, because ${faults.length} of ${all} actions are invalid; ` +
    `the first is ${name === null ? "an action without a name" : JSON.stringify(name)}: ${error}`;
  return new ActionError("REQUEST_INVALID", message, { faults, ...(Number.isFinite(retryAfter) && { retryAfter }) });
}

export class ActionTransfer {
  constructor(private readonly options: { db: Db; actionImporter: ActionImporter }) {}

  private async createPlan(
    manager: EntityManager,
    appId: number,
    importedActions: ImportedAction[],
  ): Promise<ValidatedImport> {
    const { actionImporter } = this.options;
    const knownActions = await actionImporter.lockDrafts(
      manager,
      appId,
      listStorableActionNames(importedActions.map(({ data }) => data)),
    );
    const rewrittenIds = [...knownActions.values()].map(({ id }) => id);
    const seenNames = new Set<string>();
    const claimRoutes = createDuplicateRouteCheck();
    const plan: ValidatedImport = { steps: [], faults: [], retryAfter: 0 };
    for (const [index, entry] of importedActions.entries()) {
      const name = getActionNameOrNull(entry.data);
      try {
        if (name !== null && seenNames.has(name)) {
          throw new ActionError(
            "NAME_ALREADY_EXISTS",
            `"name" must be unique in the document (got ${describeValue(name)} twice)`,
          );
        }
        if (name !== null) seenNames.add(name);
        const plannedStep = await actionImporter.validate(
          manager,
          appId,
          entry,
          knownActions.get(name ?? "") ?? null,
          rewrittenIds,
        );
        claimRoutes(plannedStep.validated.input.triggers);
        plan.steps.push(plannedStep);
      } catch (error) {
        if (!(error instanceof ActionError)) throw error;
        plan.faults.push({ index, name, status: error.status, error: error.message });
        plan.retryAfter = Math.max(plan.retryAfter, error.details.retryAfter ?? Number.POSITIVE_INFINITY);
      }
    }
    return plan;
  }

  /**
   * Exports all drafts of an app.
   * @param reserve reserves memory for the response
   * @throws REQUEST_INVALID if the document would be larger than GRAPHQL_RESPONSE_MAX_BYTES, and the errors of `reserve`
   */
  async export(appId: number, reserve: ReserveResponseBytes = async () => undefined): Promise<ActionTransferDocument> {
    const { db, actionImporter } = this.options;
    const [{ bytes }] = (await rows<{ bytes: number }>(db, SUM_EXPORTED_BYTES, [appId])) as [{ bytes: number }];
    if (bytes > GRAPHQL_RESPONSE_MAX_BYTES) {
      const sizeMessage = `the app's actions exceed ${GRAPHQL_RESPONSE_MAX_BYTES / 2 ** 20} MB, the maximum of an export`;
      throw new ActionError("REQUEST_INVALID", `${sizeMessage}; list the actions page by page instead`);
    }
    await reserve(bytes);
    return {
      format: TRANSFER_FORMAT,
      actions: (await actionImporter.listDrafts(db.manager, appId)).map(toExportedAction),
    };
  }

  /**
   * Imports a document in one transaction: creates actions with new names, and updates the drafts whose names are in the document. Fields
   * that the document omits keep their values. A dry run writes nothing and returns the validation errors.
   * @throws REQUEST_INVALID with `faults` if an action is invalid, also with `retryAfter` if a retry may fix all faults;
   * NAME_ALREADY_EXISTS if another request has just used one of the names; the other errors of `DraftWriter.store`
   */
  async import(caller: Caller, appId: number, document: unknown, dryRun: boolean): Promise<ImportReport> {
    const { db, actionImporter } = this.options;
    const importedActions = await actionImporter.prepare({ caller, appId }, readActions(document));
    return transactWithAppLock(db, appId, async (manager) => {
      const plan = await this.createPlan(manager, appId, importedActions);
      if (plan.faults.length === 0) refuseUnknownFields(document, DOCUMENT_SHAPE);
      else if (!dryRun) throw createImportError(plan);
      if (dryRun) return createImportReport(plan, true);
      await actionImporter.apply(manager, caller, appId, plan.steps);
      return createImportReport(plan, false);
    });
  }
}
