/** Reads and plans the app's own properties in a manifest. Name and starting page are excluded, because each app keeps its own. */
import { isDeepStrictEqual } from "node:util";
import type { EntityManager } from "typeorm";
import { AppRow } from "../../data/app.js";
import { APP_SHAPE, type Manifest } from "../../rules/manifest.js";
import { applyChanges, changesIn } from "../apps/app-fields.js";
import { recordChange } from "../records/audit.js";
import { faultAt, type PartPlan, type PlanContext } from "./part.js";

type AppDefinition = NonNullable<Manifest["app"]>;

const FIELDS = Object.keys(APP_SHAPE.fields);

export async function readApp(manager: EntityManager, appId: number): Promise<AppDefinition> {
  const { icon, hooks, dependencies, isTemplate } = await manager.findOneByOrFail(AppRow, { id: appId });
  return { icon, hooks, dependencies, isTemplate };
}

/** @param changed receives the names of the fields that are written */
export function planApp(
  { manager, caller, appId }: PlanContext,
  definition: AppDefinition | undefined,
  current: AppDefinition,
  changed: (fields: string[]) => void,
): PartPlan {
  const plan: PartPlan = { changes: [], faults: [], needs: [], apply: async () => undefined };
  if (definition === undefined) return plan;
  const input = Object.entries(definition).filter(
    ([name, value]) => !isDeepStrictEqual(value, current[name as keyof AppDefinition]),
  );
  const wantedFields: Record<string, unknown> = {};
  for (const [name, value] of input) {
    try {
      Object.assign(wantedFields, changesIn({ [name]: value }, { asAdmin: false }));
    } catch (error) {
      plan.faults.push(faultAt("app", error, FIELDS));
    }
  }
  const names = Object.keys(wantedFields);
  if (names.length === 0) return plan;
  plan.changes = names.map((name) => ({ kind: "app", name, verb: "changed" }));
  plan.needs = ["updateApp"];
  plan.apply = async () => {
    await applyChanges(manager, appId, wantedFields);
    await recordChange(manager, caller, { appId, type: "app.update", data: { fields: names } });
    changed(names);
  };
  return plan;
}
