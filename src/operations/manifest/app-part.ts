/**
 * Plans how the fields of an app (such as icon and hooks) must change to match a manifest. A manifest contains neither
 * the app's name nor its starting page, because these differ between the apps to which it is applied.
 */
import { isDeepStrictEqual } from "node:util";
import type { EntityManager } from "typeorm";
import { AppRow } from "../../data/app.js";
import { ActionError } from "../../errors.js";
import { APP_SHAPE, type Manifest } from "../../rules/manifest.js";
import { parseAppChanges, writeAppChanges } from "../apps/app-fields.js";
import { recordChange } from "../records/audit.js";
import { type DefinitionsPlan, type ManifestPlanContext, toPathFault } from "./definitions-plan.js";

type AppDefinition = NonNullable<Manifest["app"]>;

const APP_FIELDS = Object.keys(APP_SHAPE.fields);

export async function readAppDefinition(manager: EntityManager, appId: number): Promise<AppDefinition> {
  const app = await manager.findOneBy(AppRow, { id: appId });
  if (!app) throw new ActionError("APP_NOT_FOUND");
  const { icon, hooks, dependencies, isTemplate } = app;
  return { icon, hooks, dependencies, isTemplate };
}

/**
 * Plans how the app's fields change.
 * @param onChanged receives the names of the changed fields when the plan is applied
 */
export function planAppFieldChanges(
  { manager, caller, appId }: ManifestPlanContext,
  definition: AppDefinition | undefined,
  currentFields: AppDefinition,
  onChanged: (fields: string[]) => void,
): DefinitionsPlan {
  const plan: DefinitionsPlan = { changes: [], faults: [], requiredOperations: [], apply: async () => undefined };
  if (definition === undefined) return plan;
  // Ignores unknown fields. The schema check of the manifest reports them.
  const input = Object.entries(definition).filter(
    ([name, value]) =>
      Object.hasOwn(currentFields, name) && !isDeepStrictEqual(value, currentFields[name as keyof AppDefinition]),
  );
  const wantedFields: Record<string, unknown> = {};
  for (const [name, value] of input) {
    try {
      Object.assign(wantedFields, parseAppChanges({ [name]: value }, { mayChangeAdminFields: false }));
    } catch (error) {
      plan.faults.push(toPathFault("app", error, APP_FIELDS));
    }
  }
  const names = Object.keys(wantedFields);
  if (names.length === 0) return plan;
  plan.changes = names.map((name) => ({ kind: "app", name, changeKind: "changed" }));
  plan.requiredOperations = ["updateApp"];
  plan.apply = async () => {
    await writeAppChanges(manager, appId, wantedFields);
    await recordChange(manager, caller, { appId, type: "app.update", data: { fields: names } });
    onChanged(names);
  };
  return plan;
}
