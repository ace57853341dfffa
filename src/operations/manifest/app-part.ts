/**
 * Plans the changes to an app's fields that a manifest requires. A manifest does not contain the name and the starting
 * page, because these differ between apps.
 */
import { isDeepStrictEqual } from "node:util";
import type { EntityManager } from "typeorm";
import { AppRow } from "../../data/app.js";
import { APP_SHAPE, type Manifest } from "../../rules/manifest.js";
import { parseAppChanges, writeAppChanges } from "../apps/app-fields.js";
import { recordChange } from "../records/audit.js";
import { type PartPlan, type PlanContext, toFault } from "./part.js";

type AppDefinition = NonNullable<Manifest["app"]>;

const FIELDS = Object.keys(APP_SHAPE.fields);

/** Returns the fields of an app that a manifest contains. */
export async function readApp(manager: EntityManager, appId: number): Promise<AppDefinition> {
  const { icon, hooks, dependencies, isTemplate } = await manager.findOneByOrFail(AppRow, { id: appId });
  return { icon, hooks, dependencies, isTemplate };
}

/** Plans the changes of fields. @param changed receives the names of the changed fields when the plan is applied */
export function planApp(
  { manager, caller, appId }: PlanContext,
  definition: AppDefinition | undefined,
  current: AppDefinition,
  changed: (fields: string[]) => void,
): PartPlan {
  const plan: PartPlan = { changes: [], faults: [], requiredOperations: [], apply: async () => undefined };
  if (definition === undefined) return plan;
  const input = Object.entries(definition).filter(
    ([name, value]) => !isDeepStrictEqual(value, current[name as keyof AppDefinition]),
  );
  const wantedFields: Record<string, unknown> = {};
  for (const [name, value] of input) {
    try {
      Object.assign(wantedFields, parseAppChanges({ [name]: value }, { asAdmin: false }));
    } catch (error) {
      plan.faults.push(toFault("app", error, FIELDS));
    }
  }
  const names = Object.keys(wantedFields);
  if (names.length === 0) return plan;
  plan.changes = names.map((name) => ({ kind: "app", name, verb: "changed" }));
  plan.requiredOperations = ["updateApp"];
  plan.apply = async () => {
    await writeAppChanges(manager, appId, wantedFields);
    await recordChange(manager, caller, { appId, type: "app.update", data: { fields: names } });
    changed(names);
  };
  return plan;
}
