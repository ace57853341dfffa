/**
 * Exports the definitions of an app (such as actions, data sources and alerts) as one manifest. Applies a manifest to an app in one
 * transaction, but publishes no actions.
 */

import { isDeepStrictEqual } from "node:util";
import type { EntityManager } from "typeorm";
import { type Db, isDeadlock, isUniqueViolation } from "../../data/database.js";
import { ActionError, type ManifestPathFault } from "../../errors.js";
import { JSON_MAX_DEPTH, MANIFEST_MAX_BYTES } from "../../limits.js";
import type { Caller, Operation } from "../../rules/access.js";
import { createAppUpdateEvent } from "../../rules/app-events.js";
import { describeType, isObject, nestsDeeperThan } from "../../rules/describe-value.js";
import {
  findManifestSchemaFaults,
  type Manifest,
  type ManifestItemKind,
  mergeSchemaFaults,
  REPORTED_FAULTS_MAX,
} from "../../rules/manifest.js";
import type { ReserveResponseBytes } from "../../rules/page.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import type { ActionImporter } from "../actions/import-steps.js";
import { type DataSourceRows } from "../data-sources/data-source-rows.js";
import type { DataSourceDefinitionStore, IndexReplacement } from "../data-sources/source-definitions.js";
import { recordChange } from "../records/audit.js";
import type { LogEventStore } from "../records/log-events.js";
import type { ReceivedDataLimiter } from "../records/received-data-limiter.js";
import { type BindingDefinitions } from "../requests/binding-definitions.js";
import { transactWithAppLock } from "../settings/app-lock.js";
import type { Settings } from "../settings/settings.js";
import { type PreparedManifestAction, planActionChanges, prepareManifestActions } from "./actions-part.js";
import { planAlertChanges } from "./alerts-part.js";
import { planAppFieldChanges } from "./app-part.js";
import { planBindingChanges } from "./bindings-part.js";
import {
  checkManifestTag,
  type ManifestWithEntityTag,
  readManifestSize,
  readStoredDefinitions,
  type StoredDefinitions,
  toManifest,
} from "./current-manifest.js";
import {
  type DataSourcesPlan,
  listDataSourceNames,
  planDataSourceChanges,
  readDataSources,
} from "./data-sources-part.js";
import type { DefinitionChange, DefinitionsPlan, ManifestApplyMode, ManifestPlanContext } from "./definitions-plan.js";
import { LargeManifestReadQueue } from "./large-reads.js";
import { planSettingChanges } from "./settings-part.js";

export interface DefinitionReference {
  kind: ManifestItemKind;
  name: string;
}

export interface ManifestPlan {
  created: DefinitionReference[];
  changed: DefinitionReference[];
  removed: DefinitionReference[];
  /** Secret bindings that do not work until the value of their setting is written; absent if there are none. */
  missing?: DefinitionReference[];
}

/**
 * Differences between a manifest and the app. The differences were applied, unless the request only asked for the plan. `tag` is the entity
 * tag of the app's manifest after the changes; for a plan, the tag of the unchanged manifest.
 */
export interface ManifestApplyResponse {
  plan: ManifestPlan;
  tag: string;
}

export interface ManifestApplyOptions extends ManifestApplyMode {
  appId: number;
  /** Entity tags that the request accepts for the app's current manifest; undefined accepts any manifest. */
  precondition: ExpectedVersions;
  /** True to return the differences without applying them (dry run). */
  isPlan: boolean;
  checkPermission: (operation: Operation) => void;
  /** Called in the transaction after the manifest was applied, also if the manifest changed nothing. */
  onApplied?: (manager: EntityManager, applied: AppliedManifestChange) => Promise<void>;
}

export interface AppliedManifestChange {
  plan: ManifestPlan;
  manifestBefore: Manifest;
  manifestAfter: Manifest;
}

/** Results of slow work that runs before the transaction, because the transaction holds locks. */
interface PreparedParts {
  preparedActions: readonly PreparedManifestAction[];
  /** Reserved IDs by name, for the data sources that the manifest creates. */
  reservedIds: ReadonlyMap<string, number>;
  /** IDs of all data sources by name, including new ones. Triggers in `preparedActions` contain these IDs. */
  idsByName: ReadonlyMap<string, number>;
  /** Indexes that were built for the new definitions of the data sources; absent in a dry run. */
  indexChanges?: readonly IndexReplacement[];
}

interface ApplyOutcome extends ManifestApplyResponse {
  sourcesPlan: DataSourcesPlan;
}

/**
 * Checks the structure of a manifest. Returns the manifest with its faults.
 * @throws REQUEST_INVALID if the structure is so wrong that the definitions cannot be checked
 */
function readManifest(document: unknown): { manifest: Manifest; faults: ManifestPathFault[] } {
  const createDocumentError = (error: string) => createManifestError([{ path: "", status: "REQUEST_INVALID", error }]);
  if (!isObject(document)) throw createDocumentError(`the manifest must be an object (got ${describeType(document)})`);
  if (nestsDeeperThan(document, JSON_MAX_DEPTH)) {
    throw createDocumentError(`the manifest must not be nested deeper than ${JSON_MAX_DEPTH} levels`);
  }
  const { faults, isReadable } = findManifestSchemaFaults(document);
  if (!isReadable) throw createManifestError(faults);
  return { manifest: document as unknown as Manifest, faults };
}

/** Creates the error for an invalid manifest. @param retryTimes seconds after which a retry may fix a fault, for each temporary fault */
function createManifestError(
  faults: readonly ManifestPathFault[],
  retryTimes: ReadonlyMap<ManifestPathFault, number> = new Map(),
): ActionError {
  const { path, error } = faults[0]!;
  const message =
    faults.length === 1
      ? `the manifest is invalid: ${error.startsWith(path) ? error : `${path}: ${error}`}`
      : `the manifest has ${faults.length} faults; the first is at ${path || "the top level"}: ${error}`;
  // A retry can only succeed if all faults are temporary.
  const retryAfter = Math.max(...faults.map((fault) => retryTimes.get(fault) ?? Number.POSITIVE_INFINITY));
  return new ActionError("REQUEST_INVALID", message, {
    faults: faults.slice(0, REPORTED_FAULTS_MAX),
    ...(Number.isFinite(retryAfter) && { retryAfter }),
  });
}

function toManifestPlan(changes: readonly DefinitionChange[]): ManifestPlan {
  const listNamesOfKind = (listedKind: DefinitionChange["changeKind"]) =>
    changes.filter(({ changeKind }) => changeKind === listedKind).map(({ kind, name }) => ({ kind, name }));
  return {
    created: listNamesOfKind("created"),
    changed: listNamesOfKind("changed"),
    removed: listNamesOfKind("removed"),
  };
}

/**
 * Checks that the prepared IDs and indexes of data sources are those that the plan needs.
 * @throws MANIFEST_CHANGED if they differ, because another request has changed the app since the preparation
 */
function requirePreparedParts(
  { idsByName: ids, indexChanges: indexes }: DataSourcesPlan,
  preparedParts: PreparedParts,
): void {
  const isSame = [...ids].every(([name, id]) => preparedParts.idsByName.get(name) === id);
  if (!isSame || (preparedParts.indexChanges && !isDeepStrictEqual(indexes, preparedParts.indexChanges))) {
    throw new ActionError("MANIFEST_CHANGED");
  }
}

/**
 * Returns `items`, a list of the manifest. If the manifest omits the list, returns an empty list with `prune`, so that all definitions of
 * this kind are removed. Without `prune`, returns undefined, so that nothing changes.
 */
const selectItemsToApply = <T>(
  items: readonly T[] | undefined,
  { prune }: ManifestApplyMode,
): readonly T[] | undefined => items ?? (prune ? [] : undefined);

interface ManifestsOptions {
  db: Db;
  actionImporter: ActionImporter;
  settings: Settings;
  sources: DataSourceRows;
  definitions: DataSourceDefinitionStore;
  logEvents: LogEventStore;
  receivedDataLimiter: ReceivedDataLimiter;
  bindings: { definitions: BindingDefinitions };
}

export class Manifests {
  private readonly largeReads = new LargeManifestReadQueue(this.options.db);

  constructor(private readonly options: ManifestsOptions) {}

  /**
   * Reserves memory for the definitions of apps before they are read. Reserves at most MANIFEST_MAX_BYTES, so that larger apps can also be
   * changed. @throws the errors of `reserve`
   */
  async reserveMemory(appIds: readonly number[], reserve: ReserveResponseBytes = async () => undefined): Promise<void> {
    const sizes = await Promise.all(appIds.map((appId) => readManifestSize(this.options.db, appId)));
    await reserve(
      Math.min(
        MANIFEST_MAX_BYTES,
        sizes.reduce((sum, bytes) => sum + bytes),
      ),
    );
  }

  private async planDefinitions(
    context: ManifestPlanContext,
    manifest: Manifest,
    state: StoredDefinitions,
    preparedParts: PreparedParts,
    updatedNames: { fields: string[]; keys: string[] },
  ): Promise<{ plans: DefinitionsPlan[]; sourcesPlan: DataSourcesPlan }> {
    const { actionImporter, settings, definitions, bindings } = this.options;
    const list = <T>(items: readonly T[] | undefined) => selectItemsToApply(items, context);
    const settingsPlan = planSettingChanges(settings, context, list(manifest.settings), state.settings, (keys) => {
      updatedNames.keys = keys;
    });
    const appPlan = planAppFieldChanges(context, manifest.app, state.app, (fields) => {
      updatedNames.fields = fields;
    });
    // A missing list of bindings removes no bindings, even with `prune`, because manifests of an old format version have no such list.
    const bindingsPlan = await planBindingChanges(
      bindings.definitions,
      context,
      manifest.secretBindings,
      state.bindings,
    );
    const sourcesPlan = await planDataSourceChanges(
      definitions,
      context,
      list(manifest.dataSources),
      state.sources,
      preparedParts.reservedIds,
    );
    const actionsPlan = await planActionChanges(
      actionImporter,
      context,
      list(manifest.actions),
      preparedParts.preparedActions,
      state.drafts,
    );
    const alertsPlan = planAlertChanges(context, list(manifest.alerts), state.rules, actionsPlan.names);
    return { plans: [settingsPlan, appPlan, bindingsPlan, sourcesPlan, actionsPlan, alertsPlan], sourcesPlan };
  }

  /** Compares the manifest with the app, and applies the differences unless `isPlan` is true, in one transaction. */
  private runInTransaction(
    caller: Caller,
    { manifest, faults: schemaFaults }: ReturnType<typeof readManifest>,
    options: ManifestApplyOptions,
    preparedParts: PreparedParts,
  ): Promise<ApplyOutcome> {
    const { appId, precondition, isPlan, checkPermission } = options;
    const { db } = this.options;
    const applyParts = async (manager: EntityManager): Promise<ApplyOutcome> => {
      const pruned = options.prune ? manifest : undefined;
      const state = await readStoredDefinitions(manager, this.options.actionImporter, appId, !isPlan, pruned);
      checkManifestTag(state, precondition);
      const updatedNames: { fields: string[]; keys: string[] } = { fields: [], keys: [] };
      const context = { ...options, manager, caller };
      const { plans, sourcesPlan } = await this.planDefinitions(context, manifest, state, preparedParts, updatedNames);
      const faults = mergeSchemaFaults(
        plans.flatMap((definitionsPlan) => definitionsPlan.faults),
        schemaFaults,
      );
      if (faults.length > 0)
        throw createManifestError(faults, new Map(plans.flatMap(({ retryTimes }) => [...(retryTimes ?? [])])));
      requirePreparedParts(sourcesPlan, preparedParts);
      const changes = plans.flatMap((definitionsPlan) => definitionsPlan.changes);
      for (const operation of new Set(plans.flatMap(({ requiredOperations: needs }) => needs)))
        checkPermission(operation);
      const missing = plans.flatMap((definitionsPlan) => definitionsPlan.missing ?? []);
      const plan: ManifestPlan = { ...toManifestPlan(changes), ...(missing.length > 0 && { missing }) };
      const before = toManifest(state);
      if (isPlan) return { plan, tag: before.tag, sourcesPlan };
      if (changes.length > 0) {
        for (const definitionsPlan of plans) await definitionsPlan.removeReferences?.();
        for (const definitionsPlan of plans) await definitionsPlan.apply();
        await this.emitUpdateEvent(manager, caller, appId, updatedNames);
        const counts = { created: plan.created.length, changed: plan.changed.length, removed: plan.removed.length };
        await recordChange(manager, caller, { appId, type: "app.manifest.apply", data: counts });
      }
      const after =
        changes.length > 0
          ? toManifest(await readStoredDefinitions(manager, this.options.actionImporter, appId, false))
          : before;
      await options.onApplied?.(manager, { plan, manifestBefore: before.manifest, manifestAfter: after.manifest });
      return { plan, tag: after.tag, sourcesPlan };
    };
    return this.largeReads.readInSlot(appId, () =>
      isPlan ? db.transaction(applyParts) : transactWithAppLock(db, appId, applyParts),
    );
  }

  /** Emits the log event about changed fields and settings of the app, if there are any. */
  private async emitUpdateEvent(
    manager: EntityManager,
    caller: Caller,
    appId: number,
    { fields, keys }: { fields: string[]; keys: string[] },
  ): Promise<void> {
    const change = keys.length > 0 ? { fields: [...fields, "settings"], keys } : { fields };
    if (change.fields.length > 0)
      await this.options.logEvents.emit(manager, caller, appId, createAppUpdateEvent(change));
  }

  private async reserveIds(appId: number, manifest: Manifest): Promise<Map<string, number>> {
    const { db, definitions } = this.options;
    const knownSources = new Set((await readDataSources(db.manager, appId)).map(({ name }) => name));
    const names = listDataSourceNames(manifest).filter((name) => !knownSources.has(name));
    const ids = await definitions.reserveIds(db.manager, names.length);
    return new Map(names.map((name, index) => [name, ids[index]!]));
  }

  /** Applies the manifest, and the changes of indexes that it requires. `withIndexes` decides which of them come first. */
  private async saveManifest(
    caller: Caller,
    manifestRead: ReturnType<typeof readManifest>,
    options: ManifestApplyOptions,
    preparedParts: PreparedParts,
    sourcesPlan: DataSourcesPlan,
  ): Promise<ApplyOutcome> {
    let outcome: ApplyOutcome | null = null;
    try {
      await this.options.definitions.withIndexes(sourcesPlan.indexChanges, async () => {
        outcome = await this.runInTransaction(caller, manifestRead, options, {
          ...preparedParts,
          indexChanges: sourcesPlan.indexChanges,
        });
      });
    } catch (error) {
      // A unique violation or a deadlock means that another request has written the same definitions at the same time.
      if (isUniqueViolation(error) || isDeadlock(error)) throw new ActionError("MANIFEST_CHANGED");
      throw error;
    }
    return outcome!;
  }

  /**
   * Exports the definitions of an app.
   * @param reserve reserves memory for the manifest's bytes
   * @throws ActionError REQUEST_INVALID if the manifest would exceed MANIFEST_MAX_BYTES; the errors of `reserve`
   */
  async get(appId: number, reserve: ReserveResponseBytes = async () => undefined): Promise<ManifestWithEntityTag> {
    const total = await readManifestSize(this.options.db, appId);
    if (total > MANIFEST_MAX_BYTES) {
      const sizeMessage = `the definitions of this app exceed ${MANIFEST_MAX_BYTES / 2 ** 20} MB`;
      throw new ActionError("REQUEST_INVALID", `${sizeMessage}, the maximum of a manifest; export its actions instead`);
    }
    await reserve(total);
    return this.readTaggedManifest(appId);
  }

  private readTaggedManifest(appId: number): Promise<ManifestWithEntityTag> {
    return this.options.db.transaction("REPEATABLE READ", async (manager) =>
      toManifest(await readStoredDefinitions(manager, this.options.actionImporter, appId, false)),
    );
  }

  /** Returns the entity tag of the app's manifest, also if the manifest is too large to be exported. */
  async readTag(appId: number): Promise<string> {
    return this.largeReads.readInSlot(appId, async () => (await this.readTaggedManifest(appId)).tag);
  }

  /**
   * Makes the app match the manifest, in one transaction. With `prune`, also removes the app's definitions that the manifest does not
   * contain.
   * @throws REQUEST_INVALID with `faults`, MANIFEST_CHANGED, DATA_SOURCE_NOT_EMPTY, ENTRY_ALREADY_EXISTS if entries have equal values in a
   * new unique index, errors of `checkPermission`
   */
  async apply(caller: Caller, document: unknown, options: ManifestApplyOptions): Promise<ManifestApplyResponse> {
    const { db, actionImporter, sources, definitions, receivedDataLimiter } = this.options;
    const { appId, isPlan } = options;
    const manifestRead = readManifest(document);
    const reservedIds = await this.reserveIds(appId, manifestRead.manifest);
    const currentSources = await readDataSources(db.manager, appId);
    const idsByName = new Map([...reservedIds, ...currentSources.map(({ name, id }): [string, number] => [name, id])]);
    const preparedActions = await prepareManifestActions(
      actionImporter,
      { caller, appId },
      manifestRead.manifest.actions ?? [],
      idsByName,
    );
    const preparedParts = { preparedActions, reservedIds, idsByName };
    const plannedResult = await this.runInTransaction(
      caller,
      manifestRead,
      { ...options, isPlan: true },
      preparedParts,
    );
    if (isPlan) return { plan: plannedResult.plan, tag: plannedResult.tag };
    const writtenSources = manifestRead.manifest.dataSources ?? [];
    const bytes = Buffer.byteLength(JSON.stringify(writtenSources));
    receivedDataLimiter.countRows(caller, appId, bytes, writtenSources.length + 1);
    const outcome = await this.saveManifest(caller, manifestRead, options, preparedParts, plannedResult.sourcesPlan);
    sources.clearCache();
    for (const { id } of outcome.sourcesPlan.removedSources) definitions.dropIndexes({ appId, id });
    return { plan: outcome.plan, tag: outcome.tag };
  }
}
