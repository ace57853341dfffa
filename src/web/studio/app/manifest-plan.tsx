/**
 * Shows the plan of an import, a pull or a promotion (a copy of definitions from another stage of the app). It lists the parts of the app
 * that would be created, changed and removed. It also lists the secret bindings whose setting has no value yet.
 */
import type { ReactNode } from "react";
import type { ManifestPlan } from "../shared/model.js";

const PLAN_VERBS = ["created", "changed", "removed"] as const;
export type PlanVerb = (typeof PLAN_VERBS)[number];

/** Names of the parts of an app, such as actions, as the page shows them. */
const PART_KIND_NAMES: Record<string, string> = {
  app: "app",
  setting: "setting",
  secretBinding: "secret binding",
  dataSource: "data source",
  action: "action",
  alert: "alert",
};

export type PlanItem = ManifestPlan["created"][number];

interface PlanListProps {
  plan: ManifestPlan;
  label: string;
  /** Renders additional content at the end of a list item, such as a diff. */
  renderDetails?: (item: PlanItem, verb: PlanVerb) => ReactNode;
}

export const isEmptyPlan = (plan: ManifestPlan): boolean => PLAN_VERBS.every((verb) => plan[verb].length === 0);

export function PlanList({ plan, label, renderDetails }: PlanListProps) {
  return (
    <ul className="records" aria-label={label}>
      {PLAN_VERBS.flatMap((verb) =>
        plan[verb].map((item) => (
          <li key={`${verb} ${item.kind} ${item.name}`}>
            <span className="chip">{verb}</span>
            <span className="grow">
              {PART_KIND_NAMES[item.kind] ?? item.kind} <b>{item.name}</b>
            </span>
            {renderDetails?.(item, verb)}
          </li>
        )),
      )}
      {plan.missing?.map(({ name }) => (
        <li key={`missing ${name}`}>
          <span className="chip">value missing</span>
          <span className="grow">
            secret binding <b>{name}</b>
          </span>
          <span className="hint">Set the value of the key in this app.</span>
        </li>
      ))}
    </ul>
  );
}
