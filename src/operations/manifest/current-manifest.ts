/** Reads the current definitions of an app, and builds the app's manifest from them. */
import { createHash } from "node:crypto";
import type { EntityManager } from "typeorm";
import { MANIFEST_VERSION, type Manifest } from "../../rules/manifest.js";
import type { ImportSteps } from "../actions/import-steps.js";
import { readAlertRules } from "../alerts/alert-rows.js";
import { lockUnlistedDataSources } from "../data-sources/data-source-rows.js";
import { readStoredBindings } from "../requests/binding-definitions.js";
import { readDefinitions } from "../settings/setting-definitions.js";
import { toActionItem } from "./actions-part.js";
import { toAlertItem } from "./alerts-part.js";
import { readApp } from "./app-part.js";
import { sortBindings } from "./bindings-part.js";
import { listSourceNames, readSources, toDataSourceItem } from "./data-sources-part.js";

/** A manifest and its entity tag, which is a hash of the manifest's content. */
export interface TaggedManifest {
  tag: string;
  manifest: Manifest;
}

const manifestTag = (manifest: Manifest): string =>
  createHash("sha256").update(JSON.stringify(manifest)).digest("base64url").slice(0, 22);

/**
 * Reads the current definitions of the app.
 * @param lock true to lock their rows until the transaction ends; the transaction must have locked the app
 */
export async function readStoredParts(
  manager: EntityManager,
  steps: ImportSteps,
  appId: number,
  lock: boolean,
  pruned?: Manifest,
) {
  if (lock && pruned) await lockUnlistedDataSources(manager, appId, listSourceNames(pruned));
  const app = await readApp(manager, appId);
  const heldSources = await readSources(manager, appId, lock);
  const drafts = lock
    ? await steps.lock(manager, appId, null)
    : new Map((await steps.listDrafts(manager, appId)).map((row) => [row.name, row]));
  const actionNames = new Map([...drafts.values()].map(({ id, name }) => [id, name]));
  const rules = (await readAlertRules(manager, appId)).map((rule) => ({
    rule,
    actionName: rule.actionId === null ? null : (actionNames.get(rule.actionId) ?? null),
  }));
  const bindings = sortBindings((await readStoredBindings(manager, appId))?.bindings ?? []);
  return { app, held: heldSources, drafts, rules, bindings, settings: await readDefinitions(manager, appId) };
}

export type StoredDefinitions = Awaited<ReturnType<typeof readStoredParts>>;

export function documentOf({
  app,
  held: heldSources,
  drafts,
  rules,
  bindings,
  settings: settingDefinitions,
}: StoredDefinitions): TaggedManifest {
  const sourceNames = new Map(heldSources.map(({ id, name }) => [id, name]));
  const actions = [...drafts.values()].filter(({ actionVersion }) => actionVersion === "v3");
  const manifest: Manifest = {
    version: MANIFEST_VERSION,
    app,
    settings: settingDefinitions,
    secretBindings: bindings,
    dataSources: heldSources.map(toDataSourceItem),
    actions: actions.map((row) => toActionItem(row, sourceNames)).sort((a, b) => (a.name < b.name ? -1 : 1)),
    alerts: rules.map(toAlertItem).sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
  return { tag: manifestTag(manifest), manifest };
}
