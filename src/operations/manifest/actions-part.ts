/**
 * Plans how an app's actions (drafts) must change to match a manifest. In a manifest, a log trigger contains the name
 * of its data source instead of the ID.
 */
import type { EntityManager } from "typeorm";
import { ActionRow } from "../../data/action.js";
import { rows } from "../../data/database.js";
import { ActionError, type ManifestPathFault } from "../../errors.js";
import { ACTION_SHAPE, ActionInputError } from "../../rules/action-input.js";
import { describeValue, isObject } from "../../rules/describe-value.js";
import type { Manifest } from "../../rules/manifest.js";
import {
  type ActionImporter,
  type ActionImportStep,
  type ExportedAction,
  type ImportedAction,
  toExportedAction,
} from "../actions/import-steps.js";
import { createDuplicateRouteCheck } from "../http/routes.js";
import { recordChange } from "../records/audit.js";
import {
  type DefinitionsPlan,
  findRepeatedNameFaults,
  type ManifestPlanContext,
  toPathFault,
} from "./definitions-plan.js";

type ActionItem = NonNullable<Manifest["actions"]>[number];

const ACTION_FIELDS = Object.keys(ACTION_SHAPE.fields);

/** Returns the triggers, with the condition (`where`) of each log trigger replaced by the result of `changeCondition`. */
function mapLogConditions(
  triggers: unknown,
  changeCondition: (where: Record<string, unknown>, itemPath: string) => Record<string, unknown>,
): unknown {
  if (!Array.isArray(triggers)) return triggers;
  return triggers.map((trigger: unknown, index) => {
    if (!isObject(trigger) || trigger["trigger"] !== "log" || !isObject(trigger["where"])) return trigger;
    return { ...trigger, where: changeCondition(trigger["where"], `triggers[${index}].where`) };
  });
}

/** Converts a draft to an action of a manifest. */
export function toActionItem(row: ActionRow, sourceNamesById: ReadonlyMap<number, string>): ActionItem {
  const action: ExportedAction = toExportedAction(row);
  const triggers = mapLogConditions(action.triggers, ({ dataSourceId, ...where }) => {
    const name = sourceNamesById.get(dataSourceId as number);
    if (name !== undefined) return { ...where, dataSource: name };
    return dataSourceId === undefined ? where : { ...where, dataSourceId };
  });
  return { ...action, triggers } as ActionItem;
}

/**
 * Converts an action of a manifest to the form that the API accepts: replaces the names of data sources in log triggers by IDs. Calls
 * `onFault` for a name that no data source has.
 */
function toActionData(
  item: ActionItem,
  sourceIdsByName: ReadonlyMap<string, number>,
  onFault: (fault: ManifestPathFault) => void,
): object {
  if (item.triggers === undefined) return item;
  const triggers = mapLogConditions(item.triggers, ({ dataSource, ...where }, itemPath) => {
    if (dataSource === undefined || dataSource === null) return where;
    const id = typeof dataSource === "string" ? sourceIdsByName.get(dataSource.trim()) : undefined;
    if (id !== undefined) return { ...where, dataSourceId: id };
    const path = `${itemPath}.dataSource`;
    const error = `${path} must be the name of a data source of the app (got ${describeValue(dataSource)})`;
    onFault({ path, status: "DATA_SOURCE_NOT_FOUND", error });
    return where;
  });
  return { ...item, triggers };
}

/** An action of a manifest in the form that the API accepts, and the faults of its references to data sources. */
export interface PreparedManifestAction {
  entry: ImportedAction;
  faults: ManifestPathFault[];
}

/**
 * Checks the code and resolves the dependencies of all actions in a manifest. Call this function before the
 * transaction, because it is slow and the transaction holds locks.
 * @param sourceIdsByName IDs of the app's data sources by name
 */
export async function prepareManifestActions(
  actionImporter: ActionImporter,
  { caller, appId }: Pick<ManifestPlanContext, "caller" | "appId">,
  items: readonly ActionItem[],
  sourceIdsByName: ReadonlyMap<string, number>,
): Promise<PreparedManifestAction[]> {
  const faults: ManifestPathFault[][] = [];
  const data = items.map((item, index) => {
    const itemFaults: ManifestPathFault[] = [];
    faults.push(itemFaults);
    return toActionData(item, sourceIdsByName, ({ path, ...fault }) =>
      itemFaults.push({ ...fault, path: `actions[${index}].${path}` }),
    );
  });
  const importedActions = await actionImporter.prepare({ caller, appId }, data);
  return importedActions.map((entry, index) => ({ entry, faults: faults[index]! }));
}

function toPathFaults(index: number, error: unknown): ManifestPathFault[] {
  const itemPath = `actions[${index}]`;
  if (error instanceof ActionInputError) {
    return error.fieldFaults.map(({ field, status, error: message }) => {
      const innerFault = toPathFault(itemPath, new ActionError(status, message), ACTION_FIELDS);
      return innerFault.path === itemPath ? { ...innerFault, path: `${itemPath}.${field}` } : innerFault;
    });
  }
  return [toPathFault(itemPath, error, ACTION_FIELDS)];
}

async function removeActions(
  { manager, caller, appId }: ManifestPlanContext,
  removedDrafts: readonly ActionRow[],
): Promise<void> {
  for (const { id, name } of removedDrafts) {
    await manager.delete(ActionRow, id);
    await recordChange(manager, caller, { appId, type: "appAction.v3.remove", actionId: id, data: { name } });
  }
}

async function readPublishedActionIds(manager: EntityManager, appId: number): Promise<Set<number>> {
  const sql = `SELECT master_id AS id FROM action WHERE app_id = $1 AND master_id IS NOT NULL`;
  return new Set((await rows<{ id: number }>(manager, sql, [appId])).map(({ id }) => Number(id)));
}

export interface ActionsPlan extends DefinitionsPlan {
  /** Names of all actions that exist after the manifest has been applied. */
  names: ReadonlySet<string>;
}

/**
 * Plans how the app's actions change.
 * @param currentDrafts the app's drafts by name, also those that are not version 3 actions; their rows must be locked
 */
export async function planActionChanges(
  actionImporter: ActionImporter,
  context: ManifestPlanContext,
  items: readonly ActionItem[] | undefined,
  preparedActions: readonly PreparedManifestAction[],
  currentDrafts: ReadonlyMap<string, ActionRow>,
): Promise<ActionsPlan> {
  const { manager, caller, appId, prune, keepsPublished } = context;
  const faults: ManifestPathFault[] = findRepeatedNameFaults("actions", "name", items ?? []);
  const retryTimes = new Map<ManifestPathFault, number>();
  const importSteps: ActionImportStep[] = [];
  const namesInManifest = new Set((items ?? []).map(({ name }) => name));
  const v3Drafts = [...currentDrafts.values()].filter(({ actionVersion }) => actionVersion === "v3");
  const liveIds = keepsPublished ? await readPublishedActionIds(manager, appId) : new Set<number>();
  const isRemoved = ({ id, name }: ActionRow) => !namesInManifest.has(name) && !liveIds.has(id);
  const removedDrafts = items && prune ? v3Drafts.filter(isRemoved) : [];
  const rewrittenIds = v3Drafts
    .filter((row) => namesInManifest.has(row.name) || removedDrafts.includes(row))
    .map(({ id }) => id);
  const checkRoutes = createDuplicateRouteCheck();
  for (const [at, { entry, faults: itemFaults }] of preparedActions.entries()) {
    faults.push(...itemFaults);
    try {
      const step = await actionImporter.validate(
        manager,
        appId,
        entry,
        currentDrafts.get(items![at]!.name) ?? null,
        rewrittenIds,
      );
      checkRoutes(step.validated.input.triggers);
      if (step.current === null || step.fields.length > 0) importSteps.push(step);
    } catch (error) {
      const actionFaults = toPathFaults(at, error);
      faults.push(...actionFaults);
      const { retryAfter } = (error as ActionError).details;
      if (retryAfter !== undefined) for (const fault of actionFaults) retryTimes.set(fault, retryAfter);
    }
  }
  const names = new Set([
    ...v3Drafts.filter((row) => !removedDrafts.includes(row)).map(({ name }) => name),
    ...namesInManifest,
  ]);
  return {
    changes: [
      ...importSteps.map(({ current: row, validated }) => ({
        ...{ kind: "action" as const, name: validated.input.name },
        changeKind: row ? ("changed" as const) : ("created" as const),
      })),
      ...removedDrafts.map(({ name }) => ({ kind: "action" as const, name, changeKind: "removed" as const })),
    ],
    faults,
    retryTimes,
    requiredOperations: [
      ...(importSteps.length > 0 ? (["importActions"] as const) : []),
      ...(removedDrafts.length > 0 ? (["removeAction"] as const) : []),
    ],
    names,
    async apply() {
      await removeActions(context, removedDrafts);
      await actionImporter.apply(manager, caller, appId, importSteps);
    },
  };
}
