/** Reads the current definitions of an app, and builds the app's manifest from them. */
import { createHash } from "node:crypto";
import type { EntityManager } from "typeorm";
import { rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { MANIFEST_VERSION, type Manifest } from "../../rules/manifest.js";
import type { ExpectedVersions } from "../../rules/precondition.js";
import type { ActionImporter } from "../actions/import-steps.js";
import { readAlertRules } from "../alerts/alert-rows.js";
import { lockEmptyDataSourcesExcept } from "../data-sources/data-source-rows.js";
import { readStoredBindings } from "../requests/binding-definitions.js";
import { readSettingDefinitions, readSettingDefinitionsSize } from "../settings/setting-definitions.js";
import { toActionItem } from "./actions-part.js";
import { toAlertItem } from "./alerts-part.js";
import { readAppDefinition } from "./app-part.js";
import { sortBindings } from "./bindings-part.js";
import { listDataSourceNames, readDataSources, toDataSourceItem } from "./data-sources-part.js";

/** A manifest and its entity tag, which is a hash of the manifest's content. */
export interface ManifestWithEntityTag {
  tag: string;
  manifest: Manifest;
}

/** Returns a hash of the manifest. Hashes one item at a time, because the JSON text of all actions can exceed the maximum string length. */
function computeManifestTag(manifest: Manifest): string {
  const hash = createHash("sha256");
  let separator = "{";
  for (const [name, value] of Object.entries(manifest)) {
    if (value === undefined) continue;
    hash.update(`${separator}${JSON.stringify(name)}:`);
    separator = ",";
    if (!Array.isArray(value)) {
      hash.update(JSON.stringify(value));
      continue;
    }
    for (const [index, item] of value.entries()) hash.update(`${index === 0 ? "[" : ","}${JSON.stringify(item)}`);
    hash.update(value.length === 0 ? "[]" : "]");
  }
  return hash.update("}").digest("base64url").slice(0, 22);
}

const SELECT_MANIFEST_SIZE = `
  SELECT (SELECT coalesce(sum(octet_length(code) + octet_length(triggers::text) + coalesce(octet_length(source::text), 0)), 0) FROM action
           WHERE app_id = $1 AND master_id IS NULL AND action_version = 'v3')
       + (SELECT coalesce(sum(octet_length(columns::text) + octet_length(access_rules::text) + octet_length(hooks::text)), 0)
            FROM data_source WHERE app_id = $1) AS bytes`;

/** Returns the approximate size of an app's actions, data sources and settings in bytes, without loading them into this process. */
export async function readManifestSize(executor: SqlClient, appId: number): Promise<number> {
  const [size] = await rows<{ bytes: number }>(executor, SELECT_MANIFEST_SIZE, [appId]);
  return Number(size!.bytes) + (await readSettingDefinitionsSize(executor, appId));
}

/**
 * Reads the current definitions of the app.
 * @param lock true to lock the rows of data sources and drafts until the transaction ends; the transaction must already have locked the app
 * @param pruned manifest that will be applied with `prune`. If `lock` is true, no other transaction can add entries to the empty data
 *   sources that `prune` will remove
 */
export async function readStoredDefinitions(
  manager: EntityManager,
  actionImporter: ActionImporter,
  appId: number,
  lock: boolean,
  pruned?: Manifest,
) {
  if (lock && pruned) await lockEmptyDataSourcesExcept(manager, appId, listDataSourceNames(pruned));
  const app = await readAppDefinition(manager, appId);
  const sources = await readDataSources(manager, appId, lock);
  const drafts = lock
    ? await actionImporter.lockDrafts(manager, appId, null)
    : new Map((await actionImporter.listDrafts(manager, appId)).map((row) => [row.name, row]));
  const actionNames = new Map([...drafts.values()].map(({ id, name }) => [id, name]));
  const rules = (await readAlertRules(manager, appId)).map((rule) => ({
    rule,
    actionName: rule.actionId === null ? null : (actionNames.get(rule.actionId) ?? null),
  }));
  const bindings = sortBindings((await readStoredBindings(manager, appId))?.bindings ?? []);
  return { app, sources, drafts, rules, bindings, settings: await readSettingDefinitions(manager, appId) };
}

export type StoredDefinitions = Awaited<ReturnType<typeof readStoredDefinitions>>;

export function toManifest({
  app,
  sources,
  drafts,
  rules,
  bindings,
  settings: settingDefinitions,
}: StoredDefinitions): ManifestWithEntityTag {
  const sourceNames = new Map(sources.map(({ id, name }) => [id, name]));
  const actions = [...drafts.values()].filter(({ actionVersion }) => actionVersion === "v3");
  const manifest: Manifest = {
    version: MANIFEST_VERSION,
    app,
    settings: settingDefinitions,
    secretBindings: bindings,
    dataSources: sources.map(toDataSourceItem),
    actions: actions.map((row) => toActionItem(row, sourceNames)).sort((a, b) => (a.name < b.name ? -1 : 1)),
    alerts: rules.map(toAlertItem).sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
  return { tag: computeManifestTag(manifest), manifest };
}

/** Checks that the entity tag of the app's manifest is one of the expected tags. @throws ActionError MANIFEST_CHANGED */
export function checkManifestTag(state: StoredDefinitions, precondition: ExpectedVersions): void {
  if (precondition && !precondition.includes(toManifest(state).tag)) throw new ActionError("MANIFEST_CHANGED");
}
