/**
 * Plans how an app's settings must change to match a manifest. A manifest contains the keys and tiers of all settings
 * and the values of public settings, but never private or protected values.
 */

import { isDeepStrictEqual } from "node:util";
import { ActionError, type ManifestPathFault } from "../../errors.js";
import { refuseField } from "../../rules/fields.js";
import type { Manifest } from "../../rules/manifest.js";
import { SETTING_SHAPE } from "../../rules/manifest.js";
import { getSettingTier, parseSettingsBody } from "../../rules/setting-tiers.js";
import { declareSettings, type SettingDefinition } from "../settings/setting-definitions.js";
import type { Settings } from "../settings/settings.js";
import {
  type DefinitionsPlan,
  findRepeatedNameFaults,
  type ManifestPlanContext,
  toPathFault,
} from "./definitions-plan.js";

type SettingItem = NonNullable<Manifest["settings"]>[number];

const SETTING_FIELDS = Object.keys(SETTING_SHAPE.fields);

function checkSettingItem({ key, tier, value, secret }: SettingItem): void {
  parseSettingsBody(Object.fromEntries([[key, value ?? null]]));
  const actualTier = getSettingTier(key);
  if (tier !== undefined && tier !== actualTier) {
    refuseField("tier", `${actualTier}, because the key has this tier`, tier);
  }
  if (value !== undefined && actualTier !== "public") {
    const advice = "remove it, and set the value with the settings API";
    const error = `a ${actualTier} setting cannot have the field "value" in a manifest; ${advice}`;
    throw new ActionError("REQUEST_INVALID", error, {}, "value");
  }
  if (secret !== undefined && actualTier !== "private") {
    const error = `a ${actualTier} setting cannot have the field "secret"; remove it`;
    throw new ActionError("REQUEST_INVALID", error, {}, "secret");
  }
}

interface SettingWrites {
  publicValues: [string, unknown][];
  /**
   * Keys of settings that are written without a value: new settings that have no value in the manifest, and private settings whose field
   * `secret` changes. `secret` lists public settings, and the settings whose values logs mask. `shown` lists private settings whose values
   * logs show.
   */
  declaredKeys: { secret: string[]; shown: string[] };
  /** Keys of settings to remove. */
  removedKeys: string[];
}

/** Compares `item` with the setting, and adds the differences to `writes`. Returns true if there is a difference. */
function collectWrites(
  item: SettingItem,
  currentDefinition: SettingDefinition | undefined,
  keepsData: boolean,
  writes: SettingWrites,
): boolean {
  const { key, value, secret } = item;
  if (getSettingTier(key) === "public") {
    const staysUnchanged =
      currentDefinition !== undefined && (value === undefined || (keepsData && "value" in currentDefinition));
    if (
      staysUnchanged ||
      (currentDefinition && "value" in currentDefinition && isDeepStrictEqual(currentDefinition.value, value))
    )
      return false;
    if (value === undefined) writes.declaredKeys.secret.push(key);
    else writes.publicValues.push([key, value]);
    return true;
  }
  const wantedSecrecy = secret ?? currentDefinition?.secret ?? true;
  if (
    currentDefinition !== undefined &&
    (currentDefinition.tier !== "private" || currentDefinition.secret === wantedSecrecy)
  )
    return false;
  writes.declaredKeys[wantedSecrecy ? "secret" : "shown"].push(key);
  return true;
}

/**
 * Plans how the app's settings change.
 * @param onChanged receives the keys of the settings whose values were written or removed, when the plan is applied
 */
export function planSettingChanges(
  settings: Settings,
  context: ManifestPlanContext,
  items: readonly SettingItem[] | undefined,
  currentDefinitions: readonly SettingDefinition[],
  onChanged: (keys: string[]) => void,
): DefinitionsPlan {
  const { manager, caller, appId, prune, keepsData } = context;
  const plan: DefinitionsPlan = { changes: [], faults: [], requiredOperations: [], apply: async () => undefined };
  if (items === undefined) return plan;
  const currentByKey = new Map(currentDefinitions.map((definition) => [definition.key, definition]));
  const writes: SettingWrites = { publicValues: [], declaredKeys: { secret: [], shown: [] }, removedKeys: [] };
  const faults: ManifestPathFault[] = findRepeatedNameFaults("settings", "key", items);
  for (const [at, item] of items.entries()) {
    try {
      checkSettingItem(item);
      const { key } = item;
      const changeKind = currentByKey.has(key) ? "changed" : "created";
      if (collectWrites(item, currentByKey.get(key), keepsData, writes))
        plan.changes.push({ kind: "setting", name: key, changeKind });
    } catch (error) {
      faults.push(toPathFault(`settings[${at}]`, error, SETTING_FIELDS));
    }
  }
  const keysInManifest = new Set(items.map(({ key }) => key));
  if (prune && !keepsData) writes.removedKeys = [...currentByKey.keys()].filter((key) => !keysInManifest.has(key));
  plan.changes.push(
    ...writes.removedKeys.map((name) => ({ kind: "setting" as const, name, changeKind: "removed" as const })),
  );
  const changesMarks =
    writes.declaredKeys.shown.length > 0 || writes.declaredKeys.secret.some((key) => currentByKey.has(key));
  plan.requiredOperations =
    plan.changes.length === 0 ? [] : changesMarks ? ["writeSettings", "markSettings"] : ["writeSettings"];
  plan.faults = faults;
  plan.apply = async () => {
    const { publicValues: values, declaredKeys: declared, removedKeys: removed } = writes;
    if (declared.secret.length > 0) await declareSettings(manager, appId, declared.secret, { secret: true });
    if (declared.shown.length > 0) await declareSettings(manager, appId, declared.shown, { secret: false });
    await settings.write(manager, caller, appId, values);
    const removedKeys = removed.length > 0 ? await settings.removeKeys(manager, caller, appId, removed) : [];
    onChanged([...values.map(([key]) => key), ...removedKeys]);
  };
  return plan;
}
