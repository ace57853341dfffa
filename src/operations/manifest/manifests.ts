/** Exports the definitions of an app as one manifest, and applies a manifest in one transaction. Publishes nothing. */

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { DataSource, EntityManager } from "typeorm";
import { isDeadlock, isDuplicate, rows } from "../../data/database.js";
import { ActionError, type PathFault } from "../../errors.js";
import { JSON_MAX_DEPTH, MANIFEST_MAX_BYTES } from "../../limits.js";
import type { Caller, Operation } from "../../rules/access.js";
import { appUpdate } from "../../rules/app-events.js";
import { isObject, kindOf, nestsDeeperThan } from "../../rules/described.js";
import {
  FAULTS_MAX,
  MANIFEST_VERSION,
  type Manifest,
  type ManifestKind,
  mergedFaults,
  shapeFaults,
} from "../../rules/manifest.js";
import type { ReserveBytes } from "../../rules/page.js";
import type { ExpectedTags } from "../../rules/precondition.js";
import type { ImportSteps } from "../actions/import-steps.js";
import { readRules } from "../alerts/alert-rows.js";
import type { DataSourceRows } from "../data-sources/data-source-rows.js";
import type { IndexReplacement, SourceDefinitions } from "../data-sources/source-definitions.js";
import { recordChange } from "../records/audit.js";
import type { IntakeLimiter } from "../records/intake.js";
import type { LogEvents } from "../records/log-events.js";
import { type BindingDefinitions, storedBindings } from "../requests/binding-definitions.js";
import { definitionBytes, readDefinitions } from "../settings/setting-definitions.js";
import { lockApp, type Settings } from "../settings/settings.js";
import { actionItem, planActions, type ReadyAction, readyActions } from "./actions-part.js";
import { alertItem, planAlerts } from "./alerts-part.js";
import { planApp, readApp } from "./app-part.js";
import { bindingItems, planBindings } from "./bindings-part.js";
import { planSources, type SourcesPlan, sourceItem, storedSources } from "./data-sources-part.js";
import type { ApplyMode, PartChange, PartPlan, PlanContext } from "./part.js";
import { planSettings } from "./settings-part.js";

/** A manifest with its entity tag, a digest of its content. */
export interface TaggedManifest {
  tag: string;
  manifest: Manifest;
}

export interface ManifestItem {
  kind: ManifestKind;
  name: string;
}

export interface ManifestPlan {
  created: ManifestItem[];
  changed: ManifestItem[];
  removed: ManifestItem[];
  /** Secret bindings whose setting has no value in this app yet; absent if there are none. */
  missing?: ManifestItem[];
}

/** Differences that were found or applied, and the app's entity tag afterwards. */
export interface ManifestResult {
  plan: ManifestPlan;
  tag: string;
}

export interface ApplyOptions extends ApplyMode {
  appId: number;
  /** Tags of manifests on which the change may be based; undefined for any. */
  precondition: ExpectedTags;
  /** True to report the differences without applying them. */
  isPlan: boolean;
  /** Checks a permission. @throws ActionError FORBIDDEN for an operation that the caller may not do */
  may: (operation: Operation) => void;
  /** Called in the transaction of the change, also if nothing changes. */
  onApplied?: (manager: EntityManager, applied: ApplyResult) => Promise<void>;
}

/** Result of applying a manifest: the states before and after it. */
export interface ApplyResult {
  plan: ManifestPlan;
  before: Manifest;
  after: Manifest;
}

/** Results of the work that is done before anything is locked. */
interface PreparedParts {
  ready: readonly ReadyAction[];
  /** IDs for the data sources that are created, by name. */
  reserved: ReadonlyMap<string, number>;
  /** IDs of all data sources by name; the triggers in `ready` use them. */
  ids: ReadonlyMap<string, number>;
  /** Indexes that have been built. */
  indexes?: readonly IndexReplacement[];
}

/** Outcome of one transaction. */
interface ApplyOutcome extends ManifestResult {
  sources: SourcesPlan;
}

const SIZE = `
  SELECT (SELECT coalesce(sum(octet_length(code) + octet_length(triggers::text) + coalesce(octet_length(source::text), 0)), 0) FROM action
           WHERE app_id = $1 AND master_id IS NULL AND action_version = 'v3')
       + (SELECT coalesce(sum(octet_length(columns::text) + octet_length(access_rules::text) + octet_length(hooks::text)), 0)
            FROM data_source WHERE app_id = $1) AS bytes`;

const tagOf = (manifest: Manifest): string =>
  createHash("sha256").update(JSON.stringify(manifest)).digest("base64url").slice(0, 22);

/** @throws REQUEST_INVALID with faults if the document cannot be read */
function readManifest(document: unknown): { manifest: Manifest; faults: PathFault[] } {
  const wholeFault = (error: string) => manifestError([{ path: "", status: "REQUEST_INVALID", error }]);
  if (!isObject(document)) throw wholeFault(`the manifest must be an object (got ${kindOf(document)})`);
  if (nestsDeeperThan(document, JSON_MAX_DEPTH)) {
    throw wholeFault(`the manifest nests deeper than ${JSON_MAX_DEPTH} levels`);
  }
  const { faults, isReadable } = shapeFaults(document);
  if (!isReadable) throw manifestError(faults);
  return { manifest: document as unknown as Manifest, faults };
}

function manifestError(faults: readonly PathFault[]): ActionError {
  const { path, error } = faults[0]!;
  const message =
    faults.length === 1
      ? `the manifest has a fault: ${error.startsWith(path) ? error : `${path}: ${error}`}`
      : `the manifest has ${faults.length} faults, first at ${path || "its top"}: ${error}`;
  return new ActionError("REQUEST_INVALID", message, { faults: faults.slice(0, FAULTS_MAX) });
}

function planOf(changes: readonly PartChange[]): ManifestPlan {
  const namesByVerb = (listedVerb: PartChange["verb"]) =>
    changes.filter(({ verb }) => verb === listedVerb).map(({ kind, name }) => ({ kind, name }));
  return { created: namesByVerb("created"), changed: namesByVerb("changed"), removed: namesByVerb("removed") };
}

/** @throws ActionError MANIFEST_CHANGED if the app's data sources have changed since they were prepared */
function checkPrepared({ ids, indexes }: SourcesPlan, preparedParts: PreparedParts): void {
  const isSame = [...ids].every(([name, id]) => preparedParts.ids.get(name) === id);
  if (!isSame || (preparedParts.indexes && !isDeepStrictEqual(indexes, preparedParts.indexes))) {
    throw new ActionError("MANIFEST_CHANGED");
  }
}

/** Returns the items of a list. A list that the manifest leaves out counts as empty with `prune`; otherwise it is not compared. */
const listOf = <T>(items: readonly T[] | undefined, { prune }: ApplyMode): readonly T[] | undefined =>
  items ?? (prune ? [] : undefined);

export type Manifests = ReturnType<typeof createManifests>;

export function createManifests(options: {
  db: DataSource;
  importSteps: ImportSteps;
  settings: Settings;
  sources: DataSourceRows;
  definitions: SourceDefinitions;
  logEvents: LogEvents;
  intake: IntakeLimiter;
  bindings: { definitions: BindingDefinitions };
}) {
  const { db, importSteps: steps, settings, sources, definitions, logEvents, intake, bindings } = options;

  /** Returns the current definitions of the app. @param lock true to lock them until the end of the transaction */
  async function readStoredParts(manager: EntityManager, appId: number, lock: boolean) {
    if (lock) await lockApp(manager, appId);
    const app = await readApp(manager, appId);
    const heldSources = await storedSources(manager, appId, lock);
    const drafts = lock
      ? await steps.lock(manager, appId, null)
      : new Map((await steps.listDrafts(manager, appId)).map((row) => [row.name, row]));
    const actionNames = new Map([...drafts.values()].map(({ id, name }) => [id, name]));
    const rules = (await readRules(manager, appId)).map((rule) => ({
      rule,
      action: rule.actionId === null ? null : (actionNames.get(rule.actionId) ?? null),
    }));
    const bindings = bindingItems((await storedBindings(manager, appId))?.bindings ?? []);
    return { app, held: heldSources, drafts, rules, bindings, settings: await readDefinitions(manager, appId) };
  }

  type Stored = Awaited<ReturnType<typeof readStoredParts>>;

  function documentOf({
    app,
    held: heldSources,
    drafts,
    rules,
    bindings,
    settings: settingDefinitions,
  }: Stored): TaggedManifest {
    const sourceNames = new Map(heldSources.map(({ id, name }) => [id, name]));
    const actions = [...drafts.values()].filter(({ actionVersion }) => actionVersion === "v3");
    const manifest: Manifest = {
      version: MANIFEST_VERSION,
      app,
      settings: settingDefinitions,
      secretBindings: bindings,
      dataSources: heldSources.map(sourceItem),
      actions: actions.map((row) => actionItem(row, sourceNames)).sort((a, b) => (a.name < b.name ? -1 : 1)),
      alerts: rules.map(alertItem).sort((a, b) => (a.name < b.name ? -1 : 1)),
    };
    return { tag: tagOf(manifest), manifest };
  }

  /** @throws MANIFEST_CHANGED */
  function checkTag(state: Stored, precondition: ExpectedTags): void {
    if (precondition && !precondition.includes(documentOf(state).tag)) throw new ActionError("MANIFEST_CHANGED");
  }

  async function planParts(
    context: PlanContext,
    manifest: Manifest,
    state: Stored,
    preparedParts: PreparedParts,
    auditedKeys: { fields: string[]; keys: string[] },
  ): Promise<{ parts: PartPlan[]; sources: SourcesPlan }> {
    const list = <T>(items: readonly T[] | undefined) => listOf(items, context);
    const settingsPlan = planSettings(settings, context, list(manifest.settings), state.settings, (keys) => {
      auditedKeys.keys = keys;
    });
    const appPlan = planApp(context, manifest.app, state.app, (fields) => {
      auditedKeys.fields = fields;
    });
    // Documents from before bindings were part of manifests have no list of them, so `prune` does not remove bindings then.
    const bindingsPlan = await planBindings(bindings.definitions, context, manifest.secretBindings, state.bindings);
    const sourcesPlan = await planSources(
      definitions,
      context,
      list(manifest.dataSources),
      state.held,
      preparedParts.reserved,
    );
    const actionsPlan = await planActions(steps, context, list(manifest.actions), preparedParts.ready, state.drafts);
    const alertsPlan = planAlerts(context, list(manifest.alerts), state.rules, actionsPlan.names);
    return { parts: [settingsPlan, appPlan, bindingsPlan, sourcesPlan, actionsPlan, alertsPlan], sources: sourcesPlan };
  }

  /** Compares the manifest with the app and, unless it is only a plan, applies the differences in the same transaction. */
  function runInTransaction(
    caller: Caller,
    { manifest, faults: shape }: ReturnType<typeof readManifest>,
    options: ApplyOptions,
    preparedParts: PreparedParts,
  ): Promise<ApplyOutcome> {
    const { appId, precondition, isPlan, may } = options;
    return db.transaction(async (manager) => {
      const state = await readStoredParts(manager, appId, !isPlan);
      checkTag(state, precondition);
      const auditedKeys: { fields: string[]; keys: string[] } = { fields: [], keys: [] };
      const context = { ...options, manager, caller };
      const { parts, sources: sourcesPlan } = await planParts(context, manifest, state, preparedParts, auditedKeys);
      const faults = mergedFaults(
        parts.flatMap((part) => part.faults),
        shape,
      );
      if (faults.length > 0) throw manifestError(faults);
      checkPrepared(sourcesPlan, preparedParts);
      const changes = parts.flatMap((part) => part.changes);
      for (const operation of new Set(parts.flatMap(({ needs }) => needs))) may(operation);
      const missing = parts.flatMap((part) => part.missing ?? []);
      const plan: ManifestPlan = { ...planOf(changes), ...(missing.length > 0 && { missing }) };
      const before = documentOf(state);
      if (isPlan) return { plan, tag: before.tag, sources: sourcesPlan };
      if (changes.length > 0) {
        for (const part of parts) await part.apply();
        await recordChanges(manager, caller, appId, auditedKeys);
        const counts = { created: plan.created.length, changed: plan.changed.length, removed: plan.removed.length };
        await recordChange(manager, caller, { appId, type: "app.manifest.apply", data: counts });
      }
      const after = changes.length > 0 ? documentOf(await readStoredParts(manager, appId, false)) : before;
      await options.onApplied?.(manager, { plan, before: before.manifest, after: after.manifest });
      return { plan, tag: after.tag, sources: sourcesPlan };
    });
  }

  async function recordChanges(
    manager: EntityManager,
    caller: Caller,
    appId: number,
    { fields, keys }: { fields: string[]; keys: string[] },
  ): Promise<void> {
    const change = keys.length > 0 ? { fields: [...fields, "settings"], keys } : { fields };
    if (change.fields.length > 0) await logEvents.emit(manager, caller, appId, appUpdate(change));
  }

  /** Reserves IDs by name for the data sources that the manifest creates. */
  async function reserveIds(appId: number, manifest: Manifest): Promise<Map<string, number>> {
    const knownSources = new Set((await storedSources(db.manager, appId)).map(({ name }) => name));
    const names = (manifest.dataSources ?? [])
      .map(({ name }) => String(name).trim())
      .filter((name) => !knownSources.has(name));
    const ids = await definitions.reserveIds(db.manager, names.length);
    return new Map(names.map((name, index) => [name, ids[index]!]));
  }

  return {
    /** @throws ActionError REQUEST_INVALID if the document would be larger than MANIFEST_MAX_BYTES; errors of `reserve` */
    async get(appId: number, reserve: ReserveBytes = async () => undefined): Promise<TaggedManifest> {
      const [{ bytes }] = (await rows<{ bytes: number }>(db, SIZE, [appId])) as [{ bytes: number }];
      const total = Number(bytes) + (await definitionBytes(db, appId));
      if (total > MANIFEST_MAX_BYTES) {
        const sizeMessage = `a manifest has at most ${MANIFEST_MAX_BYTES / 2 ** 20} MB`;
        throw new ActionError("REQUEST_INVALID", `${sizeMessage}, and this app's definitions are larger`);
      }
      await reserve(total);
      return db.transaction("REPEATABLE READ", async (manager) =>
        documentOf(await readStoredParts(manager, appId, false)),
      );
    },

    /**
     * Creates, changes and, with `prune`, removes definitions until the app matches the manifest, in one transaction.
     * @throws REQUEST_INVALID with `faults`, MANIFEST_CHANGED, DATA_SOURCE_NOT_EMPTY, ENTRY_ALREADY_EXISTS for a unique
     *   index, errors of `may`
     */
    async apply(caller: Caller, document: unknown, options: ApplyOptions): Promise<ManifestResult> {
      const { appId, isPlan } = options;
      const manifestRead = readManifest(document);
      const reserved = await reserveIds(appId, manifestRead.manifest);
      const heldSources = await storedSources(db.manager, appId);
      const ids = new Map([...reserved, ...heldSources.map(({ name, id }): [string, number] => [name, id])]);
      const ready = await readyActions(steps, { caller, appId }, manifestRead.manifest.actions ?? [], ids);
      const preparedParts = { ready, reserved, ids };
      const plannedResult = await runInTransaction(caller, manifestRead, { ...options, isPlan: true }, preparedParts);
      if (isPlan) return { plan: plannedResult.plan, tag: plannedResult.tag };
      const writtenSources = manifestRead.manifest.dataSources ?? [];
      intake.takeRows(caller, appId, Buffer.byteLength(JSON.stringify(writtenSources)), writtenSources.length + 1);
      const outcome = await saveManifest(caller, manifestRead, options, preparedParts, plannedResult.sources);
      sources.clearCache();
      for (const { id } of outcome.sources.removed) definitions.dropIndexes({ appId, id });
      return { plan: outcome.plan, tag: outcome.tag };
    },
  };

  /** Builds new indexes, applies the manifest, then drops the old indexes. */
  async function saveManifest(
    caller: Caller,
    manifestRead: ReturnType<typeof readManifest>,
    options: ApplyOptions,
    preparedParts: PreparedParts,
    plannedResult: SourcesPlan,
  ): Promise<ApplyOutcome> {
    let outcome: ApplyOutcome | null = null;
    try {
      await definitions.withIndexes(plannedResult.indexes, async () => {
        outcome = await runInTransaction(caller, manifestRead, options, {
          ...preparedParts,
          indexes: plannedResult.indexes,
        });
      });
    } catch (error) {
      // Another request created a part of the same name in the meantime.
      if (isDuplicate(error) || isDeadlock(error)) throw new ActionError("MANIFEST_CHANGED");
      throw error;
    }
    return outcome!;
  }
}
