/**
 * Plans the changes to an app's settings that a manifest requires. A manifest contains the keys and tiers of settings,
 * and public values, but never private or protected values.
 */

import { isDeepStrictEqual } from "node:util";
import { ActionError, type PathFault } from "../../errors.js";
import { refuseField } from "../../rules/fields.js";
import type { Manifest } from "../../rules/manifest.js";
import { SETTING_SHAPE } from "../../rules/manifest.js";
import { checkSettingKeys, tierOf } from "../../rules/setting-tiers.js";
import { declareSettings, type SettingDefinition } from "../settings/setting-definitions.js";
import type { Settings } from "../settings/settings.js";
import { type PartPlan, type PlanContext, repeatedNames, toFault } from "./part.js";

type Item = NonNullable<Manifest["settings"]>[number];

const FIELDS = Object.keys(SETTING_SHAPE.fields);

/** Validates one setting of the manifest. @throws SETTINGS_INVALID, REQUEST_INVALID */
function checkItem({ key, tier, value, secret }: Item): void {
  checkSettingKeys(Object.fromEntries([[key, value ?? null]]));
  const actualTier = tierOf(key);
  if (tier !== undefined && tier !== actualTier) {
    refuseField("tier", `${actualTier} for this key`, tier);
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

/** Changes of settings that a plan makes. */
interface SettingWrites {
  /** Keys and values of public settings to write. */
  values: [string, unknown][];
  /** Keys of settings to define without a value: values of `secret` are masked in logs, those of `shown` are not. */
  declared: { secret: string[]; shown: string[] };
  /** Keys of settings to remove. */
  removed: string[];
}

/**
 * Compares a setting of the manifest with the app, and adds the changes to `writes`. Returns true if the setting
 * changes.
 */
function collectWrites(
  item: Item,
  current: SettingDefinition | undefined,
  keepsData: boolean,
  writes: SettingWrites,
): boolean {
  const { key, value, secret } = item;
  if (tierOf(key) === "public") {
    const staysUnchanged = current !== undefined && (value === undefined || (keepsData && "value" in current));
    if (staysUnchanged || (current && "value" in current && isDeepStrictEqual(current.value, value))) return false;
    if (value === undefined) writes.declared.secret.push(key);
    else writes.values.push([key, value]);
    return true;
  }
  const wantedSecrecy = secret ?? current?.secret ?? true;
  if (current !== undefined && (current.tier !== "private" || current.secret === wantedSecrecy)) return false;
  writes.declared[wantedSecrecy ? "secret" : "shown"].push(key);
  return true;
}

/**
 * Plans the changes of settings. @param changed receives the keys whose values were written or removed, when the plan
 * is applied
 */
export function planSettings(
  settings: Settings,
  context: PlanContext,
  items: readonly Item[] | undefined,
  current: readonly SettingDefinition[],
  changed: (keys: string[]) => void,
): PartPlan {
  const { manager, caller, appId, prune, keepsData } = context;
  const plan: PartPlan = { changes: [], faults: [], requiredOperations: [], apply: async () => undefined };
  if (items === undefined) return plan;
  const currentByKey = new Map(current.map((definition) => [definition.key, definition]));
  const writes: SettingWrites = { values: [], declared: { secret: [], shown: [] }, removed: [] };
  const faults: PathFault[] = repeatedNames("settings", "key", items);
  for (const [at, item] of items.entries()) {
    try {
      checkItem(item);
      const { key } = item;
      const verb = currentByKey.has(key) ? "changed" : "created";
      if (collectWrites(item, currentByKey.get(key), keepsData, writes))
        plan.changes.push({ kind: "setting", name: key, verb });
    } catch (error) {
      faults.push(toFault(`settings[${at}]`, error, FIELDS));
    }
  }
  const keysInManifest = new Set(items.map(({ key }) => key));
  if (prune && !keepsData) writes.removed = [...currentByKey.keys()].filter((key) => !keysInManifest.has(key));
  plan.changes.push(...writes.removed.map((name) => ({ kind: "setting" as const, name, verb: "removed" as const })));
  const changesMarks = writes.declared.shown.length > 0 || writes.declared.secret.some((key) => currentByKey.has(key));
  plan.requiredOperations =
    plan.changes.length === 0 ? [] : changesMarks ? ["writeSettings", "markSettings"] : ["writeSettings"];
  plan.faults = faults;
  plan.apply = async () => {
    const { values, declared, removed } = writes;
    if (declared.secret.length > 0) await declareSettings(manager, appId, declared.secret, { secret: true });
    if (declared.shown.length > 0) await declareSettings(manager, appId, declared.shown, { secret: false });
    await settings.write(manager, caller, appId, values);
    const removedKeys = removed.length > 0 ? await settings.removeKeys(manager, caller, appId, removed) : [];
    changed([...values.map(([key]) => key), ...removedKeys]);
  };
  return plan;
}
